//! Functions that must not be given to BOLT, since something refers to their instructions that it does not know.
//!
//! BOLT 19 moves along what `.smp_locks`, the unwind tables, `__bug_table`, jump labels and static calls refer to, and
//! leaves functions alone that `__ex_table` or `.altinstructions` refer to. The kernel has more such tables, and each
//! version new ones: the runtime constants of 6.11 (`runtime_ptr_*`) are places where the kernel writes into its code at
//! boot. Were such a function rewritten, the kernel would write elsewhere.

use super::image::{Image, Section};
use kerntune_kernel::Symbols;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Why a function is not given to BOLT.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why", content = "table")]
pub enum Withheld {
    /// It is assembly, whose labels anything may refer to.
    Assembly,
    /// A table that BOLT does not know refers into it: the name of its section.
    Referred(String),
}

/// What BOLT reads, and, but for code and what begins with a function's address, writes anew.
const KNOWN: &[&str] = &[
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

/// Sections of data, which may hold pointers as the compiler made them.
const DATA: &[&str] = &[".rodata", ".data", ".data..percpu", ".init.data", ".vvar", "__param", "__modver"];

/// The functions of the kernel that must be left alone, by their index in `symbols`.
pub(super) fn withheld(image: &Image, symbols: &Symbols) -> HashMap<usize, Withheld> {
    let mut found = HashMap::new();
    for section in image.sections.iter().filter(|s| !s.is_code && !KNOWN.contains(&s.name.as_str())) {
        for address in references(image, section) {
            if let Some(index) = inside(symbols, address).filter(|_| image.is_code(address)) {
                found.entry(index).or_insert_with(|| Withheld::Referred(section.name.clone()));
            }
        }
    }
    for (index, function) in symbols.functions().iter().enumerate() {
        let is_assembly = |file: &String| file.ends_with(".S") || file.ends_with(".s");
        if function.is_code_label || function.file.as_ref().is_some_and(is_assembly) {
            found.insert(index, Withheld::Assembly);
        }
    }
    found
}

/// What may be addresses in a section: in data, what the compiler aligned; in a table, offsets from themselves, as the
/// kernel's tables have them so that they need no relocation.
fn references<'a>(image: &'a Image, section: &'a Section) -> Box<dyn Iterator<Item = u64> + 'a> {
    let contents = image.contents(section);
    if DATA.contains(&section.name.as_str()) {
        let skew = (section.address.wrapping_neg() % 8) as usize;
        let words = contents.get(skew..).unwrap_or_default().chunks_exact(8);
        return Box::new(words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())));
    }
    Box::new(offsets(section.address, contents, 4, 0))
}

/// 32-bit offsets from themselves, at `at` in each entry of `step` bytes.
fn offsets(address: u64, contents: &[u8], step: usize, at: usize) -> impl Iterator<Item = u64> + '_ {
    contents.chunks_exact(step).enumerate().map(move |(index, entry)| {
        let offset = entry.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        let offset = i64::from(i32::from_le_bytes(offset.unwrap_or_default()));
        let here = address.wrapping_add((index * step + at) as u64);
        here.wrapping_add_signed(offset)
    })
}

/// The functions that the offsets at each of `at` in the entries of a table refer into.
pub(super) fn referred_by<'a>(
    image: &'a Image,
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

/// The function that `address` is in and not the beginning of.
fn inside(symbols: &Symbols, address: u64) -> Option<usize> {
    symbols.lookup(address).filter(|&index| symbols.functions()[index].address != address)
}

/// A function as `--skip-funcs-file` takes it: a regular expression for its whole name, to which BOLT adds a number
/// where symbols share it.
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
