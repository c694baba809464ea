//! Maps source lines to instructions by the debug information of an ELF file.

use crate::selection::suggestions;
use gimli::{Dwarf, EndianSlice, LittleEndian, Unit};
use kerntune_kernel::Symbols;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reason why a source line has no code.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum LineError {
    #[error("this kernel has no debug information, so its source lines are not known; build one with `kerntune kernel build --set CONFIG_DEBUG_INFO_NONE=n --set CONFIG_DEBUG_INFO_DWARF5=y`, or name an instruction as SYMBOL+OFFSET")]
    NoDebugInfo,
    #[error("no code of this kernel is from a file `{file}`{hint}")]
    File { file: String, hint: String },
    #[error("line {line} of {file} has no code of its own; near it lines {} have", list(.nearest))]
    Line { file: String, line: u64, nearest: Vec<u64> },
    #[error("the debug information cannot be read: {0}")]
    Damaged(String),
}

fn list(lines: &[u64]) -> String {
    lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

type DwarfSlice<'a> = EndianSlice<'a, LittleEndian>;

impl From<gimli::Error> for LineError {
    fn from(error: gimli::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Returns where the code of a line begins: one address for each function that has some of it,
/// ascending.
///
/// `file` is a path from the top of the source tree, or the end of one.
pub fn addresses(elf: &Path, file: &str, line: u64, symbols: &Symbols) -> Result<Vec<u64>, LineError> {
    let bytes = std::fs::read(elf).map_err(|e| LineError::Damaged(e.to_string()))?;
    addresses_in(&bytes, file, line, symbols)
}

/// Like [`addresses`], for an ELF file's contents.
pub(crate) fn addresses_in(
    elf: &[u8],
    file: &str,
    line: u64,
    symbols: &Symbols,
) -> Result<Vec<u64>, LineError> {
    let object: ElfFile64 = ElfFile64::parse(elf).map_err(|e| LineError::Damaged(e.to_string()))?;
    if object.section_by_name(".debug_line").is_none() {
        return Err(LineError::NoDebugInfo);
    }
    let sections = gimli::DwarfSections::load(|id| -> Result<Cow<[u8]>, LineError> {
        match object.section_by_name(id.name()) {
            Some(section) => section.uncompressed_data().map_err(|e| LineError::Damaged(e.to_string())),
            None => Ok(Cow::Borrowed(&[])),
        }
    })?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut found = LineMatches::default();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        unit_lines(&dwarf, &unit, file, line, &mut found)?;
    }
    if !found.known {
        let hint = match suggestions(file, found.others.iter().map(String::as_str)).as_slice() {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(", ")),
        };
        return Err(LineError::File { file: file.into(), hint });
    }
    // Lowest address in each function, where the line's code begins.
    let mut first: BTreeMap<usize, u64> = BTreeMap::new();
    for &address in &found.addresses {
        if let Some(function) = symbols.lookup(address) {
            first.entry(symbols.whole(function)).or_insert(address);
        }
    }
    if first.is_empty() {
        let below = found.lines.range(..line).rev().take(2);
        let mut nearest: Vec<u64> = below.chain(found.lines.range(line..).take(2)).copied().collect();
        nearest.sort_unstable();
        return Err(LineError::Line { file: file.into(), line, nearest });
    }
    let mut addresses: Vec<u64> = first.into_values().collect();
    addresses.sort_unstable();
    Ok(addresses)
}

#[derive(Default)]
struct LineMatches {
    /// True if any code is from the file.
    known: bool,
    /// Names of other files, for suggestions.
    others: BTreeSet<String>,
    /// Lines of the file that have code.
    lines: BTreeSet<u64>,
    /// Addresses of the wanted line.
    addresses: BTreeSet<u64>,
}

fn unit_lines(
    dwarf: &Dwarf<DwarfSlice>,
    unit: &Unit<DwarfSlice>,
    file: &str,
    line: u64,
    found: &mut LineMatches,
) -> Result<(), LineError> {
    let Some(program) = unit.line_program.clone() else { return Ok(()) };
    let header = program.header();
    let mut wanted: BTreeSet<u64> = BTreeSet::new();
    // DWARF 5 counts files from 0, older versions from 1; one too many does no harm.
    for number in 0..=header.file_names().len() as u64 {
        let Some(entry) = header.file(number) else { continue };
        let name = dwarf.attr_string(unit, entry.path_name())?.to_string_lossy();
        let directory = match entry.directory(header) {
            Some(directory) => dwarf.attr_string(unit, directory)?.to_string_lossy(),
            None => Cow::Borrowed(""),
        };
        let path = format!("{directory}/{name}");
        if path == file || path.strip_suffix(file).is_some_and(|before| before.ends_with('/')) {
            wanted.insert(number);
        } else if let Some(base) = path.rsplit('/').next() {
            found.others.insert(base.to_string());
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    found.known = true;
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row()? {
        if row.end_sequence() || !row.is_stmt() || !wanted.contains(&row.file_index()) {
            continue;
        }
        let Some(at) = row.line().map(|line| line.get()) else { continue };
        found.lines.insert(at);
        if at == line {
            found.addresses.insert(row.address());
        }
    }
    Ok(())
}
