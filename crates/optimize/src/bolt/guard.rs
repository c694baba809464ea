//! Functions to withhold from BOLT, because something refers to their instructions that BOLT does
//! not know.
//!
//! BOLT 19 updates the references of `.smp_locks`, the unwind tables, `__bug_table`, jump labels
//! and static calls, and leaves functions alone that `__ex_table` or `.altinstructions` refer to.
//! The kernel has more such tables, and each version adds new ones: the runtime constants of 6.11
//! (`runtime_ptr_*`) are places where the kernel writes into its code at boot. If such a function
//! were rewritten, the kernel would write elsewhere.

use super::image::{ElfImage, LoadedSection};
use kerntune_kernel::Symbols;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Reason to withhold a function from BOLT.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why", content = "table")]
pub enum WithholdingReason {
    /// It is assembly: anything may refer to its labels.
    Assembly,
    /// A table that BOLT does not know refers into it; name of its section.
    Referred(String),
}

/// Sections that BOLT reads. Those that refer to instructions it also updates, or leaves the
/// functions alone.
const KNOWN_SECTIONS: &[&str] = &[
    ".smp_locks",
    ".orc_header",
    ".orc_unwind",
    ".orc_unwind_ip",
    "__ex_table",
    ".altinstructions",
    "__bug_table",
    ".pci_fixup",
    ".parainstructions",
    "__ksymtab",
    "__ksymtab_gpl",
    ".notes",
];

/// Sections of data, which may hold aligned pointers.
const DATA_SECTIONS: &[&str] =
    &[".rodata", ".data", ".data..percpu", ".init.data", ".vvar", "__param", "__modver"];

/// Returns the functions of the kernel to withhold, by index in `symbols`.
pub(super) fn withheld(image: &ElfImage, symbols: &Symbols) -> HashMap<usize, WithholdingReason> {
    let mut found = HashMap::new();
    for section in image.sections.iter().filter(|s| !s.is_code && !KNOWN_SECTIONS.contains(&s.name.as_str()))
    {
        for address in references(image, section) {
            if let Some(index) = inside(symbols, address).filter(|_| image.is_code(address)) {
                found.entry(index).or_insert_with(|| WithholdingReason::Referred(section.name.clone()));
            }
        }
    }
    for (index, function) in symbols.functions().iter().enumerate() {
        let is_assembly = |file: &String| file.ends_with(".S") || file.ends_with(".s");
        if function.is_code_label || function.file.as_ref().is_some_and(is_assembly) {
            found.insert(index, WithholdingReason::Assembly);
        }
    }
    found
}

/// Returns the possible addresses in a section: aligned 64-bit words in data, offsets relative to
/// themselves in a table, as the kernel's tables have them to need no relocation.
fn references<'a>(image: &'a ElfImage, section: &'a LoadedSection) -> Box<dyn Iterator<Item = u64> + 'a> {
    let contents = image.contents(section);
    if DATA_SECTIONS.contains(&section.name.as_str()) {
        let skew = (section.address.wrapping_neg() % 8) as usize;
        let words = contents.get(skew..).unwrap_or_default().chunks_exact(8);
        return Box::new(words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())));
    }
    Box::new(offsets(section.address, contents, 4, 0))
}

/// Returns the targets of 32-bit self-relative offsets, at `at` in each entry of `step` bytes.
pub(super) fn offsets(
    address: u64,
    contents: &[u8],
    step: usize,
    at: usize,
) -> impl Iterator<Item = u64> + '_ {
    contents.chunks_exact(step).enumerate().map(move |(index, entry)| {
        let offset = entry.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        let offset = i64::from(i32::from_le_bytes(offset.unwrap_or_default()));
        let here = address.wrapping_add((index * step + at) as u64);
        here.wrapping_add_signed(offset)
    })
}

/// Returns the functions that the offsets at each of `at` in the entries of a table refer into.
pub(super) fn referred_by<'a>(
    image: &'a ElfImage,
    symbols: &'a Symbols,
    table: &str,
    step: usize,
    at: &'static [usize],
) -> impl Iterator<Item = usize> + 'a {
    let section = image.section(table);
    section.into_iter().flat_map(move |section| {
        at.iter().flat_map(move |at| {
            let addresses = offsets(section.address, image.contents(section), step, *at);
            addresses.filter_map(|address| symbols.lookup(address))
        })
    })
}

/// Returns the function that `address` is inside of, but not at the beginning.
fn inside(symbols: &Symbols, address: u64) -> Option<usize> {
    symbols.lookup(address).filter(|&index| symbols.functions()[index].address != address)
}

/// Returns a function's pattern for `--skip-funcs-file`: a regular expression for its whole name,
/// to which BOLT adds a number if several symbols have it.
pub(super) fn pattern(name: &str) -> String {
    let escaped: String =
        name.chars().flat_map(|c| ['.', '$'].contains(&c).then_some('\\').into_iter().chain([c])).collect();
    format!("{escaped}(/.*)?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_literally() {
        assert_eq!(pattern("link_path_walk.part.0"), r"link_path_walk\.part\.0(/.*)?");
    }

    #[test]
    fn offsets_are_from_where_they_stand() {
        let table = [8i32.to_le_bytes(), (-4i32).to_le_bytes(), 16i32.to_le_bytes()].concat();
        assert_eq!(offsets(0x1000, &table, 4, 0).collect::<Vec<_>>(), [0x1008, 0x1000, 0x1018]);
        assert_eq!(offsets(0x1000, &table, 12, 4).collect::<Vec<_>>(), [0x1000]);
    }
}
