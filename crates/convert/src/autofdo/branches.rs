//! Branch records made from a profile's blocks and edges, in the format in which `perf script -F
//! ip,brstack` prints a CPU's last branches (LBR), for tools that take nothing else.
//!
//! The format follows `llvm/tools/llvm-profgen/PerfReader.cpp` (`parseAggregatedCount`,
//! `extractLBRStack`): a line with a decimal count, then a line ` ip 0xFROM/0xTO/P/-/-/0 …` with
//! the newest branch first. For each entry the reader counts the branch, if its target is code of
//! the binary, and the range from its target to the `FROM` of the entry before it in the line,
//! which is the next branch in time. An address outside of the binary stands for everything
//! outside.
//!
//! Blocks and edges have no ranges from branch to branch; [`super::flow`] computes ranges that give
//! every block and edge its count. Each becomes a stack of two: ` 0 0xLAST/0x0/P/-/-/0
//! 0xSOURCE/0xTARGET/P/-/-/0`. The newer entry ends the range and leads outside, so that it is not
//! counted itself; the branch out of `LAST` is the older entry of the next range. So every range
//! and every branch is in the text exactly as often as it happened. If control did not come by a
//! branch, `SOURCE` is 0: an entry from outside, as LBR has for an `iret`. If `TARGET` is the start
//! of a function, the reader counts such an entry as a call, which [`super::UnsymbolizedProfile`]
//! does not have. A branch to code that did not run is a stack of its own.
//!
//! The first line is the record of the kernel's load address, which `llvm-profgen --kernel`
//! requires. A kernel runs where it was linked; its start is aligned to 2 MiB
//! (`CONFIG_PHYSICAL_ALIGN`).

use super::flow::{self, BranchExit, BranchRecord, StraightCode, TakenBranch};
use super::unsymbolized::{image, NoCounts};
use kerntune_profile::{EdgeKind, Tables};
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;

/// Ranges and branches in the kernel's image, to be written as branch records.
#[derive(Debug, Clone)]
pub struct BranchRecords {
    image: Range<u64>,
    stretches: Vec<StraightCode>,
    arrivals: Vec<TakenBranch>,
    departures: HashMap<u64, BranchExit>,
    /// Executed bytes of the image's code: over all blocks, bytes times count.
    pub executed_bytes: u128,
    /// Executed bytes of other code (modules, generated code), which is left out.
    pub outside_bytes: u128,
}

/// Totals of the records that [`BranchRecords::write`] wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BranchRecordTotals {
    /// Number of stacks, each with its count.
    pub stacks: u64,
    /// Sum of the branches' counts.
    pub branches: u128,
    /// Sum of the counts of runs: straight code from a branch's target or another entry to the next
    /// taken branch.
    pub runs: u128,
    /// Part of `runs` that no recorded branch led to: after interrupts, exceptions and system
    /// calls, and each iteration of a `rep movs` or its like.
    pub unexplained: u128,
}

impl BranchRecords {
    /// Collects blocks and edges of the kernel's image, which reaches from the first to the last
    /// function of its symbol table. An edge counts if its target is in the image.
    ///
    /// # Errors
    /// [`NoCounts`] if nothing of the image was executed.
    pub fn of(tables: &Tables) -> Result<Self, NoCounts> {
        let image = image(tables);
        let (mut executed_bytes, mut outside_bytes) = (0u128, 0u128);
        let mut stretches = Vec::new();
        for block in tables.blocks.iter().filter(|block| block.count > 0) {
            let (start, last) = (block.start.get(), block.last.get());
            let bytes = u128::from(block.bytes) * u128::from(block.count);
            if image.contains(&start) && image.contains(&last) && start <= last {
                let end = start.saturating_add(block.bytes);
                stretches.push(StraightCode { start, last, end, count: block.count });
                executed_bytes = executed_bytes.saturating_add(bytes);
            } else {
                outside_bytes = outside_bytes.saturating_add(bytes);
            }
        }
        if stretches.is_empty() {
            return Err(NoCounts);
        }
        stretches.sort_unstable();
        let mut arrivals = Vec::new();
        let mut departures: HashMap<u64, BranchExit> = HashMap::new();
        for edge in tables.edges.iter().filter(|edge| edge.count > 0) {
            let (source, target) = (edge.source.get(), edge.target.get());
            if image.contains(&source) {
                let departure =
                    departures.entry(source).or_insert(BranchExit { taken: 0, falls_through: true });
                departure.taken += u128::from(edge.count);
                departure.falls_through &= edge.kind == EdgeKind::Conditional;
            }
            if image.contains(&target) {
                arrivals.push(TakenBranch { target, source, count: edge.count });
            }
        }
        arrivals.sort_unstable();
        Ok(Self { image, stretches, arrivals, departures, executed_bytes, outside_bytes })
    }

    /// Returns every branch as source, target and count, sorted by target and source.
    pub(crate) fn branches(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.arrivals.iter().map(|arrival| (arrival.source, arrival.target, arrival.count))
    }

    /// Passes every record to `take`, in an order that depends only on the counts.
    ///
    /// # Errors
    /// The first error of `take`, which ends the iteration.
    pub fn each<E>(&self, take: &mut impl FnMut(BranchRecord) -> Result<(), E>) -> Result<(), E> {
        flow::runs(&self.stretches, &self.arrivals, self.departures.clone(), take)
    }

    /// Writes the text.
    ///
    /// # Errors
    /// Those of `to`, which should be buffered.
    pub fn write(&self, to: &mut impl Write) -> io::Result<BranchRecordTotals> {
        const TWO_MIB: u64 = 1 << 21;
        let base = self.image.start & !(TWO_MIB - 1);
        let size = self.image.end - base;
        writeln!(
            to,
            "PERF_RECORD_MMAP -1/0: [0x{base:x}(0x{size:x}) @ 0x{base:x}]: x [kernel.kallsyms]_text"
        )?;
        let mut written = BranchRecordTotals::default();
        self.each(&mut |record| {
            let BranchRecord { source, target, last, count } = record;
            written.stacks += 1;
            written.branches += source.map_or(0, |_| u128::from(count));
            write!(to, "{count}\n 0 ")?;
            if let Some(last) = last {
                written.runs += u128::from(count);
                written.unexplained += source.map_or(u128::from(count), |_| 0);
                write!(to, "0x{last:x}/0x0/P/-/-/0 ")?;
            }
            writeln!(to, "0x{:x}/0x{target:x}/P/-/-/0", source.unwrap_or_default())
        })?;
        Ok(written)
    }
}

#[cfg(test)]
#[path = "branches_tests.rs"]
mod tests;
