//! Blocks and edges of a profile, for `llvm-profgen --unsymbolized-profile --use-offset=0`.
//!
//! The format follows `llvm/tools/llvm-profgen/PerfReader.cpp` (`UnsymbolizedProfileReader`): the
//! number of ranges, a line `start-end:count` for each, the number of branches, a line
//! `source->target:count` for each. Addresses are hexadecimal without `0x`, numbers of lines and
//! counts are decimal. A range ends with the address of its last instruction.
//!
//! `perf` gives ranges from a branch's target to the next taken branch. `llvm-profgen` splits them
//! into ranges of one count (`findDisjointRanges`) and uses only the count of each instruction,
//! which is the sum over the ranges that contain it. The blocks of a profile have the same sums, so
//! they are written as they are. Ranges from branch to branch could not be made from blocks and
//! edges without guessing.

use kerntune_profile::Tables;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

/// Error for a profile that was recorded without edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the profile has no executed blocks of the kernel: record again without --no-edges")]
pub struct NoCounts;

/// Ranges and branches in the kernel's image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsymbolizedProfile {
    /// First and last instruction → number of executions.
    ranges: BTreeMap<(u64, u64), u64>,
    /// Branch and target → number of times taken.
    branches: BTreeMap<(u64, u64), u64>,
    /// Executed bytes of the image's code: over all blocks, bytes times count.
    pub executed_bytes: u128,
    /// Executed bytes of other code (modules, generated code), which is left out.
    pub outside_bytes: u128,
}

impl UnsymbolizedProfile {
    /// Collects blocks and edges of the kernel's image, which reaches from the first to the last
    /// function of its symbol table. An edge counts if its target is in the image: a call from
    /// elsewhere is one of a function's entries.
    ///
    /// # Errors
    /// [`NoCounts`] if nothing of the image was executed.
    pub fn of(tables: &Tables) -> Result<Self, NoCounts> {
        Self::of_code(tables, &image(tables))
    }

    /// Collects blocks and edges of the code at these addresses, such as that of a module, in the
    /// same way.
    ///
    /// # Errors
    /// [`NoCounts`] if nothing there was executed.
    pub fn of_code(tables: &Tables, image: &Range<u64>) -> Result<Self, NoCounts> {
        let mut out = Self::default();
        for block in tables.blocks.iter().filter(|block| block.count > 0) {
            let (start, last) = (block.start.get(), block.last.get());
            let bytes = u128::from(block.bytes) * u128::from(block.count);
            if image.contains(&start) && image.contains(&last) && start <= last {
                add(&mut out.ranges, (start, last), block.count);
                out.executed_bytes = out.executed_bytes.saturating_add(bytes);
            } else {
                out.outside_bytes = out.outside_bytes.saturating_add(bytes);
            }
        }
        // llvm-profgen rejects branches that were never taken.
        for edge in tables.edges.iter().filter(|edge| edge.count > 0) {
            if image.contains(&edge.target.get()) {
                add(&mut out.branches, (edge.source.get(), edge.target.get()), edge.count);
            }
        }
        if out.ranges.is_empty() {
            return Err(NoCounts);
        }
        Ok(out)
    }

    /// Returns the number of ranges.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the number of branches.
    pub fn branches(&self) -> usize {
        self.branches.len()
    }

    /// Writes the text, sorted by address.
    ///
    /// # Errors
    /// Those of `to`, which should be buffered.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        section(to, &self.ranges, "-")?;
        section(to, &self.branches, "->")
    }
}

fn section(to: &mut impl Write, rows: &BTreeMap<(u64, u64), u64>, between: &str) -> io::Result<()> {
    writeln!(to, "{}", rows.len())?;
    for ((from, until), count) in rows {
        writeln!(to, "{from:x}{between}{until:x}:{count}")?;
    }
    Ok(())
}

/// Adds to a row. A merged profile may have blocks of one extent with different code.
fn add(rows: &mut BTreeMap<(u64, u64), u64>, place: (u64, u64), count: u64) {
    let sum = rows.entry(place).or_default();
    *sum = sum.saturating_add(count);
}

/// Returns the addresses from the first function of the kernel to the end of the last.
pub(super) fn image(tables: &Tables) -> Range<u64> {
    let of_kernel = |symbol: &&kerntune_profile::Symbol| symbol.module.is_none() && symbol.size > 0;
    let functions = || tables.symbols.iter().filter(of_kernel);
    let first = functions().map(|symbol| symbol.address.get()).min().unwrap_or_default();
    let end = functions().map(|symbol| symbol.address.get().saturating_add(symbol.size)).max();
    first..end.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, Symbol};

    fn block(start: u64, last: u64, count: u64) -> Block {
        let bytes = last - start + 1;
        Block { start: Address(start), last: Address(last), count, instructions: Instructions(2), bytes }
    }

    fn edge(source: u64, target: u64, count: u64, kind: EdgeKind) -> Edge {
        Edge { source: Address(source), target: Address(target), count, kind }
    }

    fn symbol(number: u32, address: u64, module: Option<&str>) -> Symbol {
        let (function, name) = (FunctionIndex(number), format!("f{number}"));
        let module = module.map(str::to_string);
        Symbol { function, name, address: Address(address), size: 0x100, file: None, module }
    }

    fn tables() -> Tables {
        let unknown = Symbol { size: 0, ..symbol(3, 0, None) };
        Tables {
            symbols: vec![
                symbol(0, 0xffff_ffff_8100_0000, None),
                symbol(1, 0xffff_ffff_8100_0200, None),
                symbol(2, 0x40_1000, Some("redis-server")),
                unknown,
            ],
            ..Tables::default()
        }
    }

    fn text(tables: &Tables) -> String {
        let mut text = Vec::new();
        UnsymbolizedProfile::of(tables).unwrap().write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_text_is_in_llvms_form_and_by_address() {
        let base = 0xffff_ffff_8100_0000;
        let mut tables = tables();
        tables.blocks = vec![block(base + 0x220, base + 0x22f, 7), block(base, base + 9, 12)];
        tables.edges = vec![
            edge(base + 0x22f, base + 0x220, 6, EdgeKind::Conditional),
            edge(base + 9, base + 0x200, 12, EdgeKind::Call),
        ];
        let expected = "2\nffffffff81000000-ffffffff81000009:12\nffffffff81000220-ffffffff8100022f:7\n\
                        2\nffffffff81000009->ffffffff81000200:12\nffffffff8100022f->ffffffff81000220:6\n";
        assert_eq!(text(&tables), expected);
        tables.blocks.reverse();
        tables.edges.reverse();
        assert_eq!(text(&tables), expected);
    }

    #[test]
    fn what_is_not_of_the_image_is_left_out_and_counted() {
        let base = 0xffff_ffff_8100_0000;
        let mut tables = tables();
        let module = 0xffff_ffff_c000_0000;
        tables.blocks =
            vec![block(base, base + 9, 1), block(module, module + 4, 3), block(0x40_1000, 0x40_1001, 1)];
        // A module's call into the kernel enters a function; a call out of the kernel is left out.
        tables.edges = vec![
            edge(module + 4, base, 3, EdgeKind::Call),
            edge(base + 9, module, 3, EdgeKind::IndirectCall),
            edge(base + 9, base, 0, EdgeKind::Jump),
        ];
        let found = UnsymbolizedProfile::of(&tables).unwrap();
        assert_eq!((found.ranges(), found.branches()), (1, 1));
        assert_eq!((found.executed_bytes, found.outside_bytes), (10, 17));
        assert_eq!(found.branches.keys().collect::<Vec<_>>(), [&(module + 4, base)]);
    }

    #[test]
    fn rows_of_one_place_add_up_without_overflow() {
        let base = 0xffff_ffff_8100_0000;
        let mut tables = tables();
        let longer = Block { instructions: Instructions(3), ..block(base, base + 9, u64::MAX) };
        tables.blocks = vec![block(base, base + 9, 5), longer];
        assert!(text(&tables).contains(&format!("ffffffff81000009:{}\n", u64::MAX)));
    }

    #[test]
    fn a_profile_without_counts_is_refused() {
        assert_eq!(UnsymbolizedProfile::of(&tables()), Err(NoCounts));
        let mut tables = tables();
        tables.blocks = vec![block(0xffff_ffff_8100_0000, 0xffff_ffff_8100_0001, 0)];
        assert_eq!(UnsymbolizedProfile::of(&tables), Err(NoCounts));
        assert!(NoCounts.to_string().contains("--no-edges"));
    }
}
