//! A profile's blocks and edges as the branch records that `perf script -F ip,brstack` prints of a CPU's last
//! branches (LBR), for tools that take nothing else.
//!
//! The form is that of `llvm/tools/llvm-profgen/PerfReader.cpp` (`parseAggregatedCount`, `extractLBRStack`): a line
//! with a decimal count, then a line ` ip 0xFROM/0xTO/P/-/-/0 …` with the newest branch first. Of an entry the
//! reader counts the branch if its target is code of the binary, and the range from its target to the `FROM` of the entry
//! before it in the line, the branch that came next. An address that is no code of the binary stands for all
//! that is outside.
//!
//! Ranges from branch to branch are not in blocks and edges; [`super::flow`] makes some with the same counts of every
//! block and edge. Each becomes a stack of two: ` 0 0xLAST/0x0/P/-/-/0 0xSOURCE/0xTARGET/P/-/-/0`. The newer entry
//! ends the range and goes outside, so that it is not counted itself; the branch out of `LAST` is the older
//! entry of whatever it led to. So every range and every branch is in the text exactly as often as it happened. Where
//! control came by no branch, `SOURCE` is 0: an entry from outside, as LBR has one for an `iret`. If `TARGET` is the
//! beginning of a function, the reader counts that as an entry of it, which [`super::Unsymbolized`] does not have.
//! A branch to code that did not run is a stack of its own.
//!
//! The first line is the record of the kernel's place in memory, which `llvm-profgen --kernel` insists on. A kernel
//! is run where it was linked; its beginning is aligned to 2 MiB (`CONFIG_PHYSICAL_ALIGN`).

use super::flow::{self, Arrival, BranchRecord, Departure, Stretch};
use super::unsymbolized::{image, NoCounts};
use kerntune_profile::{EdgeKind, Tables};
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;

/// Ranges and branches in the kernel's image, branch to branch.
#[derive(Debug, Clone)]
pub struct BranchRecords {
    image: Range<u64>,
    stretches: Vec<Stretch>,
    arrivals: Vec<Arrival>,
    departures: HashMap<u64, Departure>,
    /// Bytes of the image's code that were executed: over all blocks, bytes times count.
    pub executed_bytes: u128,
    /// The same of code outside of the image (modules, generated code), which is left out.
    pub outside_bytes: u128,
}

/// What [`BranchRecords::write`] wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Stacks, each with its count.
    pub stacks: u64,
    /// Branches of the profile, by their counts.
    pub branches: u128,
    /// Runs from a branch's target or another entry to the next taken branch.
    pub runs: u128,
    /// Runs among them that nothing recorded led to: after interrupts, exceptions and system
    /// calls, and each iteration of a `rep movs` or its like.
    pub unexplained: u128,
}

impl BranchRecords {
    /// Of the blocks and edges of the kernel's image: what lies between the first and the last function that its
    /// symbol table has. An edge counts if it arrives there.
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
                stretches.push(Stretch { start, last, end, count: block.count });
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
        let mut departures: HashMap<u64, Departure> = HashMap::new();
        for edge in tables.edges.iter().filter(|edge| edge.count > 0) {
            let (source, target) = (edge.source.get(), edge.target.get());
            if image.contains(&source) {
                let departure =
                    departures.entry(source).or_insert(Departure { taken: 0, falls_through: true });
                departure.taken += u128::from(edge.count);
                departure.falls_through &= edge.kind == EdgeKind::Conditional;
            }
            if image.contains(&target) {
                arrivals.push(Arrival { target, source, count: edge.count });
            }
        }
        arrivals.sort_unstable();
        Ok(Self { image, stretches, arrivals, departures, executed_bytes, outside_bytes })
    }

    /// Every branch with its source, its target and how often it was taken, by target and source.
    pub(crate) fn branches(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.arrivals.iter().map(|arrival| (arrival.source, arrival.target, arrival.count))
    }

    /// Gives every record to `take`, in an order that depends on the counts alone.
    ///
    /// # Errors
    /// The first of `take`, which gets no more records then.
    pub fn each<E>(&self, take: &mut impl FnMut(BranchRecord) -> Result<(), E>) -> Result<(), E> {
        flow::runs(&self.stretches, &self.arrivals, self.departures.clone(), take)
    }

    /// Writes the text.
    ///
    /// # Errors
    /// Those of `to`, which is best buffered.
    pub fn write(&self, to: &mut impl Write) -> io::Result<Written> {
        const TWO_MIB: u64 = 1 << 21;
        let base = self.image.start & !(TWO_MIB - 1);
        let size = self.image.end - base;
        writeln!(
            to,
            "PERF_RECORD_MMAP -1/0: [0x{base:x}(0x{size:x}) @ 0x{base:x}]: x [kernel.kallsyms]_text"
        )?;
        let mut written = Written::default();
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
