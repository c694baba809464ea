//! Samples that are drawn from exact counts: stacks of last branches as a CPU records them, or
//! instructions.
//!
//! A recording counts blocks and branches and keeps no order in time. [`BranchRecords`] turns its
//! counts into runs from a branch's target to the next taken branch. A stack is a random walk
//! backward over these runs: a taken branch is drawn by its count, then a run that ends at it by the
//! run's count, which began with the branch before, and so on. Which branch led to which through
//! common code is not in the counts: [`BranchRecords`] assigns runs to branches, and the walk can stay
//! in a loop for longer than the kernel did. Code that is entered without a branch is then in fewer
//! samples than its count says.
//!
//! Interrupts, exceptions and system calls lead to code without a branch, and leave code without
//! one. The walk connects such an entry with an exit that is drawn by its count, by way of user code.

use super::WrittenBranch;
use crate::autofdo::{BranchRecord, BranchRecords};
use kerntune_profile::Block;
use kerntune_stats::SplitMix64;
use std::collections::HashMap;

/// Address of user code from which the walk enters the kernel.
const USER: u64 = 0x40_0000;

/// Error for counts whose sum is above 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sum of the profile's counts overflows 64 bits")]
pub struct OverflowingCounts;

/// Indices that are drawn by their weights.
#[derive(Debug, Clone, Default)]
struct WeightedIndices {
    /// Sum of the weights up to each index, and the index.
    sums: Vec<(u64, u32)>,
}

impl WeightedIndices {
    fn total(&self) -> u64 {
        self.sums.last().map_or(0, |last| last.0)
    }

    fn push(&mut self, index: u32, weight: u64) -> Result<(), OverflowingCounts> {
        if weight > 0 {
            self.sums.push((self.total().checked_add(weight).ok_or(OverflowingCounts)?, index));
        }
        Ok(())
    }

    fn draw(&self, random: &mut SplitMix64) -> Option<usize> {
        let total = Some(self.total()).filter(|total| *total > 0)?;
        let at = random.below(total);
        self.sums.get(self.sums.partition_point(|sum| sum.0 <= at)).map(|sum| sum.1 as usize)
    }
}

/// Random walk backward over the branches of a recording.
#[derive(Debug, Clone)]
pub struct BranchWalk {
    records: Vec<BranchRecord>,
    /// Taken branches.
    taken: WeightedIndices,
    /// Runs by their last instruction.
    by_last: HashMap<u64, WeightedIndices>,
    /// Runs that no branch ended.
    exits: WeightedIndices,
    random: SplitMix64,
}

impl BranchWalk {
    /// Prepares the walk. `seed` chooses among its repeatable outcomes.
    ///
    /// # Errors
    /// [`OverflowingCounts`].
    pub fn new(of: &BranchRecords, seed: u64) -> Result<Self, OverflowingCounts> {
        let mut records = Vec::new();
        let mut collect = |record: BranchRecord| -> Result<(), OverflowingCounts> {
            records.push(record);
            Ok(())
        };
        of.each(&mut collect)?;
        let (mut taken, mut taken_at) = (WeightedIndices::default(), HashMap::<u64, u64>::new());
        let mut by_last = HashMap::<u64, WeightedIndices>::new();
        for (record, index) in records.iter().zip(0..) {
            if let Some(source) = record.source {
                taken.push(index, record.count)?;
                let sum = taken_at.entry(source).or_default();
                *sum = sum.saturating_add(record.count);
            }
            if let Some(last) = record.last {
                by_last.entry(last).or_default().push(index, record.count)?;
            }
        }
        let mut exits = WeightedIndices::default();
        for (record, index) in records.iter().zip(0..) {
            let Some(last) = record.last else {
                exits.push(index, record.count)?;
                continue;
            };
            // Runs with one end share its exits in the order of the records.
            let by_branch = taken_at.entry(last).or_default();
            let exited = record.count.saturating_sub(*by_branch);
            *by_branch = by_branch.saturating_sub(record.count);
            exits.push(index, exited)?;
        }
        Ok(Self { records, taken, by_last, exits, random: SplitMix64(seed) })
    }

    /// Returns the number of taken branches.
    pub fn branches(&self) -> u64 {
        self.taken.total()
    }

    /// Draws a stack of up to `depth` branches, newest first, into `stack`. It is shorter where the
    /// counts do not say how control came (a branch from a module).
    pub fn stack(&mut self, depth: usize, stack: &mut Vec<WrittenBranch>) {
        stack.clear();
        let Self { records, taken, by_last, exits, random, .. } = self;
        let mut next = taken.draw(random);
        while let Some(record) = next.and_then(|at| records.get(at)).filter(|_| stack.len() < depth) {
            stack.push((record.source.unwrap_or(USER), record.target, 0));
            next = match record.source {
                Some(source) => by_last.get(&source).and_then(|runs| runs.draw(random)),
                None => {
                    let exit = exits.draw(random);
                    let left = exit.and_then(|at| records.get(at));
                    if let Some(left) = left.filter(|_| stack.len() < depth) {
                        stack.push((left.last.unwrap_or(left.target), USER, 0));
                    }
                    exit
                }
            };
        }
    }
}

/// Instructions that are drawn by how often they were executed.
#[derive(Debug, Clone)]
pub struct InstructionDraw<'a> {
    blocks: &'a [Block],
    executed: WeightedIndices,
    random: SplitMix64,
}

impl<'a> InstructionDraw<'a> {
    /// Prepares the draw from those of `blocks` that `is_wanted`. `seed` chooses among its repeatable
    /// outcomes.
    ///
    /// # Errors
    /// [`OverflowingCounts`].
    pub fn new(
        blocks: &'a [Block],
        is_wanted: impl Fn(&Block) -> bool,
        seed: u64,
    ) -> Result<Self, OverflowingCounts> {
        let mut executed = WeightedIndices::default();
        for (block, index) in blocks.iter().zip(0..) {
            let instructions = block.count.checked_mul(block.instructions.get()).ok_or(OverflowingCounts)?;
            executed.push(index, if is_wanted(block) { instructions } else { 0 })?;
        }
        Ok(Self { blocks, executed, random: SplitMix64(seed) })
    }

    /// Returns the number of executed instructions.
    pub fn instructions(&self) -> u64 {
        self.executed.total()
    }

    /// Draws an instruction: its block, and its number in it from 0. `None` if nothing ran.
    pub fn draw(&mut self) -> Option<(&'a Block, u64)> {
        let block = self.blocks.get(self.executed.draw(&mut self.random)?)?;
        Some((block, self.random.below(block.instructions.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, Edge, EdgeKind, FunctionIndex, Instructions, Symbol, Tables};

    /// A loop that is left every tenth time, by a jump back to its entry from outside.
    fn tables() -> Tables {
        let symbol = Symbol {
            function: FunctionIndex(0),
            name: "looping".into(),
            address: Address(0x1000),
            size: 0x100,
            file: None,
            module: None,
        };
        let block = |start, last, count| Block {
            start: Address(start),
            last: Address(last),
            count,
            instructions: Instructions(4),
            bytes: last + 2 - start,
        };
        let edge = |source, target, count, kind| Edge {
            source: Address(source),
            target: Address(target),
            count,
            kind,
        };
        Tables {
            symbols: vec![symbol],
            blocks: vec![block(0x1000, 0x100e, 1000), block(0x1010, 0x101e, 100), block(0x1040, 0x104e, 50)],
            edges: vec![
                edge(0x100e, 0x1000, 900, EdgeKind::Conditional),
                edge(0x101e, 0x1000, 50, EdgeKind::Conditional),
                edge(0x101e, 0x1040, 0, EdgeKind::Conditional),
            ],
            ..Tables::default()
        }
    }

    #[test]
    fn stacks_are_drawn_of_branches_and_runs_that_happened() {
        let records = BranchRecords::of(&tables()).unwrap();
        let mut walk = BranchWalk::new(&records, 1).unwrap();
        assert_eq!(walk.branches(), 950);
        let (mut stack, mut newest, mut runs) = (Vec::new(), HashMap::new(), HashMap::new());
        for _ in 0..4000 {
            walk.stack(32, &mut stack);
            assert_eq!(stack.len(), 32);
            let (source, target, _) = stack[0];
            *newest.entry((source, target)).or_insert(0.0) += 1.0;
            for pair in stack.windows(2) {
                let ((last, ..), (_, first, _)) = (pair[0], pair[1]);
                *runs.entry((first, last)).or_insert(0.0) += 1.0;
            }
        }
        // 900 times around, 50 times from the block behind: 18 to 1, with a standard error of 1.3.
        let ratio = newest[&(0x100e, 0x1000)] / newest[&(0x101e, 0x1000)];
        assert!((ratio - 18.0_f64).abs() < 5.0, "{newest:?}");
        assert_eq!(newest.len(), 2, "{newest:?}");
        // No run that the code does not have; user code is between an exit and an entry.
        let mut found: Vec<(u64, u64)> = runs.into_keys().collect();
        found.sort_unstable();
        assert_eq!(found, [(0x1000, 0x100e), (0x1000, 0x101e), (0x1040, 0x104e), (USER, USER)]);
        let mut again = BranchWalk::new(&records, 1).unwrap();
        let mut first = Vec::new();
        again.stack(3, &mut first);
        assert_eq!(first.len(), 3);
    }

    #[test]
    fn instructions_are_drawn_by_how_often_they_ran() {
        let tables = tables();
        let is_wanted = |block: &Block| block.start.get() < 0x1040;
        let mut draw = InstructionDraw::new(&tables.blocks, is_wanted, 7).unwrap();
        assert_eq!(draw.instructions(), 4400);
        let mut counts = [[0.0; 4]; 2];
        for _ in 0..44_000 {
            let (block, at) = draw.draw().unwrap();
            counts[usize::from(block.start.get() == 0x1010)][at as usize] += 1.0;
        }
        // Standard errors of about 96 and 31.
        assert!(counts[0].iter().all(|count: &f64| (count - 10_000.0).abs() < 400.0), "{counts:?}");
        assert!(counts[1].iter().all(|count: &f64| (count - 1_000.0).abs() < 130.0), "{counts:?}");
        let forged = [Block { count: u64::MAX, ..tables.blocks[0].clone() }];
        assert!(InstructionDraw::new(&forged, |_| true, 1).is_err());
    }
}
