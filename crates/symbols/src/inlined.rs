//! Inlined functions, from DWARF's inlined subroutines.

use crate::{Error, Result};
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit, UnitOffset};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

type DwarfSlice<'a> = EndianSlice<'a, LittleEndian>;

/// Returns for each function of an image, by its name in the source, the functions inlined in it,
/// at any depth; `None` if the image has no debug information. Line tables with inlined calls are
/// enough (`-gmlt`, `-g1` of Clang).
///
/// # Errors
/// The file cannot be read, or its debug information is damaged.
pub fn inlined(image: &Path) -> Result<Option<BTreeMap<String, BTreeSet<String>>>> {
    let bytes =
        kerntune_work::read_file(image).map_err(|source| Error::Image { path: image.into(), source })?;
    inlined_in(&bytes, &image.display().to_string())
}

/// Like [`inlined()`], for the contents of an image; `origin` is its name in messages.
///
/// # Errors
/// Not an ELF file, or its debug information is damaged.
pub fn inlined_in(image: &[u8], origin: &str) -> Result<Option<BTreeMap<String, BTreeSet<String>>>> {
    let damaged = |why: String| Error::DebugInfo { origin: origin.into(), why };
    let object: ElfFile64 = ElfFile64::parse(image).map_err(|error| damaged(error.to_string()))?;
    if object.section_by_name(".debug_info").is_none() {
        return Ok(None);
    }
    let sections = gimli::DwarfSections::load(|id| -> Result<Cow<[u8]>> {
        match object.section_by_name(id.name()) {
            Some(section) => {
                section.uncompressed_data().map_err(|error| damaged(format!("{}: {error}", id.name())))
            }
            None => Ok(Cow::Borrowed(&[])),
        }
    })?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    read(&dwarf).map(Some).map_err(|error| damaged(error.to_string()))
}

/// Name of a function, or offset of the entry that has it.
enum FunctionName {
    Here(String),
    At(usize),
}

fn read(dwarf: &Dwarf<DwarfSlice>) -> gimli::Result<BTreeMap<String, BTreeSet<String>>> {
    // Key: offset in the section. With LTO a function's name may be in another unit.
    let mut names: HashMap<usize, FunctionName> = HashMap::new();
    // Offsets of a function and of a function inlined in it.
    let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let mut entries = unit.entries();
        // Depth and offset of the enclosing functions.
        let mut open: Vec<(isize, usize)> = Vec::new();
        let mut depth = 0;
        while let Some((down, entry)) = entries.next_dfs()? {
            depth += down;
            while open.last().is_some_and(|(at, _)| *at >= depth) {
                open.pop();
            }
            let Some(here) = in_section(&unit, entry.offset()) else { continue };
            match entry.tag() {
                gimli::DW_TAG_subprogram => {
                    if let Some(name) = name(dwarf, &unit, entry)? {
                        names.insert(here, name);
                    }
                    // Abstract instances have no code; their contents are repeated where the code
                    // is.
                    let has_code = entry.attr_value(gimli::DW_AT_low_pc)?.is_some()
                        || entry.attr_value(gimli::DW_AT_ranges)?.is_some();
                    if has_code {
                        open.push((depth, here));
                    }
                }
                gimli::DW_TAG_inlined_subroutine => {
                    let callee = entry.attr_value(gimli::DW_AT_abstract_origin)?;
                    if let (Some((_, function)), Some(callee)) =
                        (open.last(), callee.and_then(|callee| target(&unit, callee)))
                    {
                        pairs.insert((*function, callee));
                    }
                }
                _ => {}
            }
        }
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for at in names.keys() {
        if let Some(name) = resolve(&names, *at) {
            found.entry(name.to_string()).or_default();
        }
    }
    for (function, callee) in pairs {
        if let (Some(function), Some(callee)) = (resolve(&names, function), resolve(&names, callee)) {
            found.entry(function.to_string()).or_default().insert(callee.to_string());
        }
    }
    Ok(found)
}

fn name<'a>(
    dwarf: &Dwarf<DwarfSlice<'a>>,
    unit: &Unit<DwarfSlice<'a>>,
    entry: &DebuggingInformationEntry<'_, '_, DwarfSlice<'a>>,
) -> gimli::Result<Option<FunctionName>> {
    if let Some(name) = entry.attr_value(gimli::DW_AT_name)? {
        return Ok(Some(FunctionName::Here(dwarf.attr_string(unit, name)?.to_string_lossy().into_owned())));
    }
    let origin = match entry.attr_value(gimli::DW_AT_abstract_origin)? {
        Some(origin) => Some(origin),
        None => entry.attr_value(gimli::DW_AT_specification)?,
    };
    Ok(origin.and_then(|origin| target(unit, origin)).map(FunctionName::At))
}

/// Returns the name at an offset, following references.
fn resolve(names: &HashMap<usize, FunctionName>, mut at: usize) -> Option<&str> {
    const REFERENCES: usize = 4;
    for _ in 0..REFERENCES {
        match names.get(&at)? {
            FunctionName::Here(name) => return Some(name),
            FunctionName::At(next) => at = *next,
        }
    }
    None
}

/// Returns the offset in the section to which a reference points.
fn target<'a>(unit: &Unit<DwarfSlice<'a>>, reference: AttributeValue<DwarfSlice<'a>>) -> Option<usize> {
    match reference {
        AttributeValue::UnitRef(offset) => in_section(unit, offset),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}

fn in_section(unit: &Unit<DwarfSlice>, offset: UnitOffset) -> Option<usize> {
    offset.to_debug_info_offset(&unit.header).map(|offset| offset.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const SOURCE: &str = "
static inline __attribute__((always_inline)) int inner(int x) { return x * 7 + 1; }
static inline __attribute__((always_inline)) int middle(int x) { return inner(x) ^ 3; }
__attribute__((noinline)) int apart(int x) { return x / 3; }
int outer(int x) { return middle(x) + apart(x); }
";

    #[test]
    fn what_a_compiler_inlined_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (source, image) = (dir.path().join("a.c"), dir.path().join("a.so"));
        std::fs::write(&source, SOURCE).unwrap();
        for (flags, has) in [(["-O2", "-g"], true), (["-O2", "-g0"], false)] {
            let built = Command::new("gcc")
                .args(flags)
                .args(["-shared", "-fPIC", "-o"])
                .args([&image, &source])
                .status();
            assert!(built.unwrap().success());
            let found = inlined(&image).unwrap();
            assert_eq!(found.is_some(), has);
            let Some(found) = found else { continue };
            assert_eq!(found["outer"].iter().collect::<Vec<_>>(), ["inner", "middle"]);
            assert!(found["apart"].is_empty());
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let error = inlined_in(b"no image", "vmlinux").unwrap_err().to_string();
        assert!(error.starts_with("vmlinux: its debug information cannot be read"), "{error}");
    }
}
