//! Blocks and edges of a profile, for `llvm-bolt --pa` and `perf2bolt --pa` (out).
//!
//! The format is LLVM's pre-aggregated one (`bolt/docs/profiles.md`, `DataAggregator.cpp`), with
//! three kinds of lines. Addresses are hexadecimal without `0x`, counts are decimal:
//!
//! | line | meaning |
//! |---|---|
//! | `B from to count mispredicted` | a branch was taken this often |
//! | `F start last count` | code ran straight on from `start` to the instruction at `last` this often |
//! | `f start last count` | the same, entered by a return: BOLT extends it back to the call |
//!
//! LLVM 19 has no line for a branch with the run behind it (`T`, since LLVM 21), which would match
//! [`BranchRecord`]. The sums that BOLT computes from `B` and `F` are the same.
//!
//! Mispredictions are not in the counts. They are written as 0, which BOLT uses only for a
//! conversion of indirect calls that is off.
//!
//! ```
//! use kerntune_convert::bolt::PreAggregated;
//! use kerntune_profile::{Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, Symbol, Tables};
//! let (function, address) = (FunctionIndex(0), Address(0x1000));
//! let symbol = Symbol { function, name: "spin".into(), address, size: 8, file: None, module: None };
//! let (last, instructions) = (Address(0x1006), Instructions(3));
//! let block = Block { start: address, last, count: 9, instructions, bytes: 8 };
//! let back = Edge { source: last, target: address, count: 8, kind: EdgeKind::Conditional };
//! let tables = Tables { symbols: vec![symbol], blocks: vec![block], edges: vec![back], ..Tables::default() };
//! let mut text = Vec::new();
//! PreAggregated::of(&tables)?.write(&mut text)?;
//! assert_eq!(text, b"B 1006 1000 8 0\nF 1000 1006 9\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod tests;

use crate::autofdo::{BranchRecord, BranchRecords, NoCounts};
use kerntune_profile::{EdgeKind, Tables};
use std::collections::HashSet;
use std::io::{self, Write};

/// Branches and straight runs in the kernel's image.
#[derive(Debug, Clone)]
pub struct PreAggregated {
    records: BranchRecords,
    /// Addresses of return instructions.
    returns: HashSet<u64>,
}

/// Totals of the lines that [`PreAggregated::write`] wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreAggregatedTotals {
    /// Number of lines of branches.
    pub branch_lines: u64,
    /// Number of lines of straight runs.
    pub run_lines: u64,
    /// Sum of the branches' counts.
    pub branches: u128,
    /// Sum of the straight runs' counts.
    pub runs: u128,
}

/// Straight runs that share a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StraightRun {
    start: u64,
    last: u64,
    returned: bool,
    count: u128,
}

impl PreAggregated {
    /// Collects blocks and edges of the kernel's image, like [`BranchRecords::of`].
    ///
    /// # Errors
    /// [`NoCounts`] if nothing of the image was executed.
    pub fn of(tables: &Tables) -> Result<Self, NoCounts> {
        let returns = tables.edges.iter().filter(|edge| edge.kind == EdgeKind::Return);
        let returns = returns.map(|edge| edge.source.get()).collect();
        Ok(Self { records: BranchRecords::of(tables)?, returns })
    }

    /// Returns the executed bytes of the image's code: over all blocks, bytes times count.
    pub fn executed_bytes(&self) -> u128 {
        self.records.executed_bytes
    }

    /// Returns the executed bytes of other code (modules, generated code), which is left out.
    pub fn outside_bytes(&self) -> u128 {
        self.records.outside_bytes
    }

    /// Writes the text: branches by target, then runs in an order that depends only on the counts.
    ///
    /// Adjacent runs of one extent share a line; BOLT adds up the others.
    ///
    /// # Errors
    /// Those of `to`, which should be buffered.
    pub fn write(&self, to: &mut impl Write) -> io::Result<PreAggregatedTotals> {
        let mut written = PreAggregatedTotals::default();
        for (source, target, count) in self.records.branches() {
            writeln!(to, "B {source:x} {target:x} {} 0", number(u128::from(count)))?;
            written.branch_lines += 1;
            written.branches += u128::from(count);
        }
        let mut open: Option<StraightRun> = None;
        self.records.each(&mut |record: BranchRecord| {
            let Some(last) = record.last else { return Ok(()) };
            let returned = record.source.is_some_and(|source| self.returns.contains(&source));
            let count = u128::from(record.count);
            let run = StraightRun { start: record.target, last, returned, count };
            match &mut open {
                Some(open) if open.is_like(&run) => open.count += count,
                _ => {
                    if let Some(before) = open.replace(run) {
                        before.write(to, &mut written)?;
                    }
                }
            }
            Ok::<(), io::Error>(())
        })?;
        if let Some(last) = open {
            last.write(to, &mut written)?;
        }
        Ok(written)
    }
}

impl StraightRun {
    fn is_like(&self, other: &StraightRun) -> bool {
        (self.start, self.last, self.returned) == (other.start, other.last, other.returned)
    }

    fn write(self, to: &mut impl Write, written: &mut PreAggregatedTotals) -> io::Result<()> {
        let StraightRun { start, last, returned, count } = self;
        let kind = if returned { 'f' } else { 'F' };
        writeln!(to, "{kind} {start:x} {last:x} {}", number(count))?;
        written.run_lines += 1;
        written.runs += count;
        Ok(())
    }
}

/// Limits a count to BOLT's range.
fn number(count: u128) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
