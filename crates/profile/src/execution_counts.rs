//! Numbers of executions of each instruction, from the blocks of a recording.

use crate::Block;

/// Numbers of executions by address.
pub struct ExecutionCounts {
    /// Executions from each address on, sorted.
    from: Vec<(u64, u64)>,
}

impl ExecutionCounts {
    /// Adds up the executions of blocks, which may overlap.
    pub fn of(blocks: &[Block]) -> Self {
        let begins = blocks.iter().map(|block| (block.start.get(), i128::from(block.count)));
        let ends = blocks.iter().map(|block| (block.last.get().wrapping_add(1), -i128::from(block.count)));
        let mut changes: Vec<(u64, i128)> = begins.chain(ends).collect();
        changes.sort_unstable();
        let mut sum = 0_i128;
        let mut from: Vec<(u64, u64)> = Vec::with_capacity(changes.len());
        for (address, change) in changes {
            sum += change;
            let count = u64::try_from(sum).unwrap_or(if sum < 0 { 0 } else { u64::MAX });
            match from.last_mut().filter(|last| last.0 == address) {
                Some(last) => last.1 = count,
                None => from.push((address, count)),
            }
        }
        Self { from }
    }

    /// Returns the executions of the instruction at an address.
    pub fn at(&self, address: u64) -> u64 {
        let behind = self.from.partition_point(|(from, _)| *from <= address);
        behind.checked_sub(1).map_or(0, |at| self.from[at].1)
    }
}
