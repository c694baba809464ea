//! A profile's blocks and edges as `llvm-bolt --pa` and `perf2bolt --pa` take them (out).
//!
//! The form is LLVM's pre-aggregated one (`bolt/docs/profiles.md`, `DataAggregator.cpp`). Lines of three kinds,
//! addresses hexadecimal without `0x`, counts decimal:
//!
//! | line | what it says |
//! |---|---|
//! | `B from to count mispredicted` | a branch was taken so often |
//! | `F start last count` | code ran straight on from `start` to the instruction at `last` so often |
//! | `f start last count` | the same, and a return brought control there: BOLT extends it back to the call |
//!
//! LLVM 19 has no line for a branch with what ran behind it (`T`, since LLVM 21), which would be what
//! [`BranchRecord`] is. The sums that BOLT makes of `B` and `F` are the same.
//!
//! How many branches a CPU would predict wrongly is not in the counts: 0, which BOLT uses for nothing but a
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

/// What [`PreAggregated::write`] wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines of branches.
    pub branch_lines: u64,
    /// Lines of straight runs.
    pub run_lines: u64,
    /// Branches, by their counts.
    pub branches: u128,
    /// Straight runs, by their counts.
    pub runs: u128,
}

/// The straight runs of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    start: u64,
    last: u64,
    returned: bool,
    count: u128,
}

impl PreAggregated {
    /// Of the blocks and edges of the kernel's image, as [`BranchRecords::of`] has them.
    ///
    /// # Errors
    /// [`NoCounts`] if nothing of the image was executed.
    pub fn of(tables: &Tables) -> Result<Self, NoCounts> {
        let returns = tables.edges.iter().filter(|edge| edge.kind == EdgeKind::Return);
        let returns = returns.map(|edge| edge.source.get()).collect();
        Ok(Self { records: BranchRecords::of(tables)?, returns })
    }

    /// Bytes of the image's code that were executed: over all blocks, bytes times count.
    pub fn executed_bytes(&self) -> u128 {
        self.records.executed_bytes
    }

    /// The same of code outside of the image (modules, generated code), which is left out.
    pub fn outside_bytes(&self) -> u128 {
        self.records.outside_bytes
    }

    /// Writes the text: branches by where they go, then runs in an order that depends on the counts alone.
    ///
    /// Runs of one extent have a line in common where they follow each other; BOLT adds up what is left.
    ///
    /// # Errors
    /// Those of `to`, which is best buffered.
    pub fn write(&self, to: &mut impl Write) -> io::Result<Written> {
        let mut written = Written::default();
        for (source, target, count) in self.records.branches() {
            writeln!(to, "B {source:x} {target:x} {} 0", number(u128::from(count)))?;
            written.branch_lines += 1;
            written.branches += u128::from(count);
        }
        let mut open: Option<Run> = None;
        self.records.each(&mut |record: BranchRecord| {
            let Some(last) = record.last else { return Ok(()) };
            let returned = record.source.is_some_and(|source| self.returns.contains(&source));
            let count = u128::from(record.count);
            let run = Run { start: record.target, last, returned, count };
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

impl Run {
    fn is_like(&self, other: &Run) -> bool {
        (self.start, self.last, self.returned) == (other.start, other.last, other.returned)
    }

    fn write(self, to: &mut impl Write, written: &mut Written) -> io::Result<()> {
        let Run { start, last, returned, count } = self;
        let kind = if returned { 'f' } else { 'F' };
        writeln!(to, "{kind} {start:x} {last:x} {}", number(count))?;
        written.run_lines += 1;
        written.runs += count;
        Ok(())
    }
}

/// What BOLT reads a count into. One that has no room there is the largest number there is.
fn number(count: u128) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
