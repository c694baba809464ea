//! Source lines of code, and code of source lines.

use crate::dwarf::{DebugInfo, Slice};
use crate::{Elf, Result};
use gimli::{DebugInfoOffset, Dwarf, LineProgramHeader, Unit};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Code of one source line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// Addresses of the code.
    pub code: Range<u64>,
    /// Source file: a path from the top of the source tree, or as it was given to the compiler.
    pub file: String,
    /// Line number from 1; 0 for code without a line.
    pub line: u32,
}

/// Lines of a file that have code, and the code of one of them.
#[derive(Debug, Clone, Default)]
pub struct LineMatches {
    /// True if any code is from the file.
    pub known: bool,
    /// Names of other files, for suggestions.
    pub others: BTreeSet<String>,
    /// Lines of the file that have code.
    pub lines: BTreeSet<u64>,
    /// Addresses of the wanted line.
    pub addresses: BTreeSet<u64>,
}

/// The line tables of a file, without the file.
pub struct LineTables {
    debug_info: DebugInfo<'static>,
    /// Code of a part of a unit, and the unit's offset; sorted by address.
    units: Vec<(Range<u64>, DebugInfoOffset)>,
}

impl LineTables {
    /// Reads the line tables of a file; `None` if it has none.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn of(elf: &Elf) -> Result<Option<Self>> {
        if !elf.has_section(".debug_line") || !elf.has_section(".debug_info") {
            return Ok(None);
        }
        let owned = |data: Option<Cow<[u8]>>| data.map(|data| Cow::Owned(data.into_owned()));
        let debug_info = DebugInfo::load(|name| elf.section(name).map(owned))?;
        let units = debug_info.code_units()?.into_iter();
        let mut units: Vec<_> = units.map(|unit| (unit.code, DebugInfoOffset(unit.offset))).collect();
        units.sort_unstable_by_key(|(code, offset)| (code.start, code.end, offset.0));
        Ok(Some(Self { debug_info, units }))
    }

    /// Returns the source lines of the code in `code`, by address.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn lines(&self, code: &Range<u64>) -> Result<Vec<SourceLine>> {
        let dwarf = self.debug_info.dwarf();
        let mut out = Vec::new();
        for offset in self.units_of(code) {
            let unit = dwarf.unit(dwarf.debug_info.header_from_offset(offset)?)?;
            lines_of_unit(&dwarf, &unit, code, &mut out)?;
        }
        out.sort_by_key(|line: &SourceLine| line.code.start);
        Ok(out)
    }

    /// Returns the first line of an address, as debuggers show it for a function's beginning: an
    /// optimized function has several lines there, of which [`lines`](Self::lines) returns the last.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn first_line(&self, address: u64) -> Result<Option<SourceLine>> {
        let dwarf = self.debug_info.dwarf();
        let code = address..address.saturating_add(1);
        for offset in self.units_of(&code) {
            let unit = dwarf.unit(dwarf.debug_info.header_from_offset(offset)?)?;
            let Some(program) = unit.line_program.clone() else { continue };
            let (program, sequences) = program.sequences()?;
            for sequence in sequences.iter().filter(|s| (s.start..s.end).contains(&address)) {
                let mut rows = program.resume_from(sequence);
                while let Some((header, row)) = rows.next_row()? {
                    let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
                    if let Some(line) = line.filter(|_| row.address() == address && !row.end_sequence()) {
                        let file = path(&dwarf, &unit, header, row.file_index()).unwrap_or_default();
                        return Ok(Some(SourceLine { code, file, line }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the units with code in a range.
    fn units_of(&self, code: &Range<u64>) -> Vec<DebugInfoOffset> {
        let mut here: Vec<DebugInfoOffset> = Vec::new();
        for (part, offset) in &self.units {
            if part.start < code.end && code.start < part.end && !here.contains(offset) {
                here.push(*offset);
            }
        }
        here
    }
}

impl DebugInfo<'_> {
    /// Finds the code of a line. `file` is a path from the top of the source tree, or the end of
    /// one.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn find_line(&self, file: &str, line: u64) -> Result<LineMatches> {
        let dwarf = self.dwarf();
        let mut found = LineMatches::default();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            find_in_unit(&dwarf, &dwarf.unit(header)?, file, line, &mut found)?;
        }
        Ok(found)
    }
}

fn find_in_unit(
    dwarf: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    file: &str,
    line: u64,
    found: &mut LineMatches,
) -> gimli::Result<()> {
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

fn lines_of_unit(
    dwarf: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    code: &Range<u64>,
    out: &mut Vec<SourceLine>,
) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else { return Ok(()) };
    let (program, sequences) = program.sequences()?;
    let mut files: HashMap<u64, String> = HashMap::new();
    for sequence in sequences.iter().filter(|s| s.start < code.end && code.start < s.end) {
        let mut rows = program.resume_from(sequence);
        let mut open: Option<(u64, u64, u32)> = None;
        while let Some((header, row)) = rows.next_row()? {
            if let Some((begin, file, line)) = open.take() {
                let (from, to) = (begin.max(code.start), row.address().min(code.end));
                if from < to {
                    let known = files.entry(file);
                    let file =
                        known.or_insert_with(|| path(dwarf, unit, header, file).unwrap_or_default()).clone();
                    out.push(SourceLine { code: from..to, file, line });
                }
            }
            if row.end_sequence() || row.address() >= code.end {
                break;
            }
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            open = Some((row.address(), row.file_index(), line));
        }
    }
    Ok(())
}

/// Returns the path of a file of a line program, without the directory in which make ran.
fn path(
    dwarf: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    header: &LineProgramHeader<Slice>,
    index: u64,
) -> Option<String> {
    let file = header.file(index)?;
    let text = |value| Some(dwarf.attr_string(unit, value).ok()?.to_string_lossy().into_owned());
    let name = text(file.path_name())?;
    let directory = match file.directory_index() {
        0 => None,
        _ => file.directory(header).and_then(text),
    };
    let whole = match directory {
        Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
        _ => name,
    };
    let made_in = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    let within = whole.strip_prefix(&made_in).filter(|_| !made_in.is_empty());
    Some(plain(within.and_then(|rest| rest.strip_prefix('/')).unwrap_or(&whole)))
}

/// `../include/linux/../net/sock.h` → `include/net/sock.h`: the build directory is one below the
/// top of the source.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." => match parts.last() {
                Some(&before) if before != ".." => {
                    parts.pop();
                }
                _ => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    if parts.first() == Some(&"..") {
        parts.remove(0);
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_top_of_the_source() {
        assert_eq!(plain("../include/linux/../net/sock.h"), "include/net/sock.h");
        assert_eq!(plain("./include/generated/bounds.h"), "include/generated/bounds.h");
        assert_eq!(plain("/usr/src/a.c"), "/usr/src/a.c");
        assert_eq!(plain("../../etc/passwd"), "../etc/passwd");
    }
}
