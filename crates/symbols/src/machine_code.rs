//! Disassembly of a kernel's code, and its source lines.

use crate::{Error, Result};
use gimli::{
    DebugInfoOffset, Dwarf, DwarfSections, EndianSlice, LineProgramHeader, LittleEndian, Unit,
    UnitSectionOffset,
};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction as Decoded, OpKind,
};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

type DwarfSlice<'a> = EndianSlice<'a, LittleEndian>;

/// The code of an image, with its line tables if it has them.
pub struct MachineCode {
    origin: String,
    sections: Vec<(u64, Vec<u8>)>,
    /// `None` without line tables.
    lines: Option<LineTables>,
}

struct LineTables {
    dwarf: DwarfSections<Vec<u8>>,
    /// First address and end of a part of a unit, and the unit's offset; sorted by address.
    units: Vec<(u64, u64, DebugInfoOffset)>,
}

/// A disassembled instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionText {
    /// Address of the instruction.
    pub address: u64,
    /// Address of the following instruction.
    pub end: u64,
    /// Text in the syntax of GNU's assembler.
    pub text: String,
    /// Target of a direct branch or call.
    pub target: Option<u64>,
}

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

impl MachineCode {
    /// Reads an image.
    ///
    /// # Errors
    /// The file cannot be read, is not an ELF file, or its debug information is damaged.
    pub fn open(image: &Path) -> Result<Self> {
        let bytes =
            kerntune_work::read_file(image).map_err(|source| Error::Image { path: image.into(), source })?;
        Self::parse(&bytes, &image.display().to_string())
    }

    /// Like [`MachineCode::open`], for the contents of an image; `origin` is its name in messages.
    ///
    /// # Errors
    /// Not an ELF file, or its debug information is damaged.
    pub fn parse(image: &[u8], origin: &str) -> Result<Self> {
        let damaged = |why: String| Error::DebugInfo { origin: origin.into(), why };
        let object: ElfFile64 = ElfFile64::parse(image).map_err(|error| damaged(error.to_string()))?;
        let code = object.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let sections = code.filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())));
        let sections = sections.collect();
        let has = |name| object.section_by_name(name).is_some_and(|section| section.size() > 0);
        if !has(".debug_line") || !has(".debug_info") {
            return Ok(Self { origin: origin.into(), sections, lines: None });
        }
        let dwarf = DwarfSections::load(|id| -> Result<Vec<u8>> {
            match object.section_by_name(id.name()) {
                Some(section) => {
                    let data = section.uncompressed_data();
                    data.map(|data| data.into_owned())
                        .map_err(|error| damaged(format!("{}: {error}", id.name())))
                }
                None => Ok(Vec::new()),
            }
        })?;
        let units = units(&borrowed(&dwarf)).map_err(|error| damaged(error.to_string()))?;
        Ok(Self { origin: origin.into(), sections, lines: Some(LineTables { dwarf, units }) })
    }

    /// Checks whether the image has line tables.
    pub fn has_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Returns the instructions from `code.start` on that begin before `code.end`; empty where the
    /// image has no code.
    pub fn instructions(&self, code: Range<u64>) -> Vec<InstructionText> {
        let found = self.sections.iter().find_map(|(address, bytes)| {
            let from = usize::try_from(code.start.checked_sub(*address)?).ok()?;
            bytes.get(from..).filter(|rest| !rest.is_empty())
        });
        found.map(|bytes| disassemble(bytes, code)).unwrap_or_default()
    }

    /// Returns the source lines of the code in `code`, by address; empty without line tables.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn lines(&self, code: Range<u64>) -> Result<Vec<SourceLine>> {
        let Some(lines) = &self.lines else { return Ok(Vec::new()) };
        let found = lines.of(&code);
        found.map_err(|error| Error::DebugInfo { origin: self.origin.clone(), why: error.to_string() })
    }
}

fn borrowed(sections: &DwarfSections<Vec<u8>>) -> Dwarf<DwarfSlice<'_>> {
    sections.borrow(|section| EndianSlice::new(section, LittleEndian))
}

/// Disassembles the instructions that begin in a range; `code` begins at the start of the range.
fn disassemble(code: &[u8], range: Range<u64>) -> Vec<InstructionText> {
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_branch_leading_zeros(false);
    formatter.options_mut().set_uppercase_hex(false);
    let mut decoder = Decoder::with_ip(64, code, range.start, DecoderOptions::NONE);
    let mut decoded = Decoded::default();
    let mut out = Vec::new();
    while decoder.can_decode() && decoder.ip() < range.end {
        decoder.decode_out(&mut decoded);
        let mut text = String::new();
        formatter.format(&decoded, &mut text);
        let leads = !matches!(decoded.flow_control(), FlowControl::Next);
        let is_near = leads && matches!(decoded.op0_kind(), OpKind::NearBranch64);
        let target = is_near.then(|| decoded.near_branch_target());
        out.push(InstructionText { address: decoded.ip(), end: decoded.next_ip(), text, target });
    }
    out
}

fn units(dwarf: &Dwarf<DwarfSlice>) -> gimli::Result<Vec<(u64, u64, DebugInfoOffset)>> {
    let mut units = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let UnitSectionOffset::DebugInfoOffset(offset) = header.offset() else { continue };
        let unit = dwarf.unit(header)?;
        let mut ranges = dwarf.unit_ranges(&unit)?;
        while let Some(range) = ranges.next()? {
            if range.begin < range.end {
                units.push((range.begin, range.end, offset));
            }
        }
    }
    units.sort_unstable_by_key(|unit| (unit.0, unit.1, unit.2 .0));
    Ok(units)
}

impl LineTables {
    fn of(&self, code: &Range<u64>) -> gimli::Result<Vec<SourceLine>> {
        let dwarf = borrowed(&self.dwarf);
        let mut here: Vec<DebugInfoOffset> = Vec::new();
        for (begin, end, offset) in &self.units {
            if *begin < code.end && code.start < *end && !here.contains(offset) {
                here.push(*offset);
            }
        }
        let mut out = Vec::new();
        for offset in here {
            let unit = dwarf.unit(dwarf.debug_info.header_from_offset(offset)?)?;
            lines_of_unit(&dwarf, &unit, code, &mut out)?;
        }
        out.sort_by_key(|line: &SourceLine| line.code.start);
        Ok(out)
    }
}

fn lines_of_unit(
    dwarf: &Dwarf<DwarfSlice>,
    unit: &Unit<DwarfSlice>,
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
    dwarf: &Dwarf<DwarfSlice>,
    unit: &Unit<DwarfSlice>,
    header: &LineProgramHeader<DwarfSlice>,
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
    use std::process::Command;

    const SOURCE: &str = "
__attribute__((noinline)) int apart(int x) {
    return x / 3;
}
int outer(int x) {
    if (x > 7)
        return apart(x) + 1;
    return 5;
}
";

    fn built(flags: &[&str]) -> (MachineCode, u64, u64) {
        let dir = tempfile::tempdir().unwrap();
        let (source, image) = (dir.path().join("a.c"), dir.path().join("a.so"));
        std::fs::write(&source, SOURCE).unwrap();
        let command = || {
            Command::new("gcc").args(flags).args(["-shared", "-fPIC", "-o"]).args([&image, &source]).status()
        };
        assert!(command().unwrap().success());
        let bytes = std::fs::read(&image).unwrap();
        let object: ElfFile64 = ElfFile64::parse(&*bytes).unwrap();
        use object::ObjectSymbol;
        let found = object.dynamic_symbols().find(|symbol| symbol.name() == Ok("outer"));
        let outer = found.map(|symbol| (symbol.address(), symbol.size())).unwrap();
        (MachineCode::open(&image).unwrap(), outer.0, outer.0 + outer.1)
    }

    #[test]
    fn code_has_words_and_lines() {
        let (code, begin, end) = built(&["-O2", "-g", "-fno-plt"]);
        let instructions = code.instructions(begin..end);
        assert_eq!(instructions.first().unwrap().address, begin);
        assert_eq!(instructions.last().unwrap().end, end);
        assert!(instructions.windows(2).all(|pair| pair[0].end == pair[1].address));
        assert!(instructions.iter().any(|one| one.text.starts_with("ret")), "{instructions:?}");
        assert!(code.has_lines());
        let lines = code.lines(begin..end).unwrap();
        assert!(
            lines.iter().all(|line| line.file.ends_with("a.c") && (5..=9).contains(&line.line)),
            "{lines:?}"
        );
        assert_eq!((lines[0].code.start, lines.last().unwrap().code.end), (begin, end));
        assert!(lines.windows(2).all(|pair| pair[0].code.end <= pair[1].code.start));
    }

    #[test]
    fn an_image_without_line_tables_has_code() {
        let (code, begin, end) = built(&["-O2", "-g0"]);
        assert!(!code.has_lines() && code.lines(begin..end).unwrap().is_empty());
        assert!(!code.instructions(begin..end).is_empty());
        assert!(code.instructions(1 << 60..(1 << 60) + 9).is_empty());
    }

    #[test]
    fn paths_begin_at_the_top_of_the_source() {
        assert_eq!(plain("../include/linux/../net/sock.h"), "include/net/sock.h");
        assert_eq!(plain("./include/generated/bounds.h"), "include/generated/bounds.h");
        assert_eq!(plain("/usr/src/a.c"), "/usr/src/a.c");
        assert_eq!(plain("../../etc/passwd"), "../etc/passwd");
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let error = MachineCode::parse(b"no image", "vmlinux").err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.starts_with("vmlinux: its debug information cannot be read")));
    }
}
