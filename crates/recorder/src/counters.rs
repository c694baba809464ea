//! Execution counts of blocks.

/// Counters by block number, added up over all CPUs. Counters of blocks that were never translated
/// take no memory.
pub struct BlockCounters(Vec<u64>);

impl BlockCounters {
    /// Creates counters of 0 for this many blocks.
    pub fn new(blocks: usize) -> Self {
        Self(vec![0; blocks])
    }

    /// Returns the number of blocks that can be counted.
    pub fn room(&self) -> usize {
        self.0.len()
    }

    /// Returns the counter of a block.
    #[inline]
    pub fn of(&mut self, block: u32) -> Option<&mut u64> {
        self.0.get_mut(block as usize)
    }

    /// Sets the counters of the first `blocks` blocks to 0.
    pub fn clear(&mut self, blocks: usize) {
        let blocks = blocks.min(self.room());
        self.0[..blocks].fill(0);
    }

    /// Returns number and count of each block that ran, among the first `blocks`.
    pub fn ran(&self, blocks: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().take(blocks).filter(|&(_, count)| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_ran_are_listed_until_they_are_cleared() {
        let mut counters = BlockCounters::new(4);
        for block in [3, 1, 3, 9] {
            if let Some(count) = counters.of(block) {
                *count += 1;
            }
        }
        assert_eq!(counters.ran(9).collect::<Vec<_>>(), [(1, 1), (3, 2)]);
        assert_eq!(counters.ran(3).collect::<Vec<_>>(), [(1, 1)]);
        counters.clear(2);
        assert_eq!(counters.ran(9).collect::<Vec<_>>(), [(3, 2)]);
        counters.clear(9);
        assert_eq!(counters.ran(9).count(), 0);
    }
}
