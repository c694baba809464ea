//! Disassembly of a kernel's code, and its source lines.

use crate::{Error, Result};
use kerntune_debuginfo::{Elf, LineTables, MappedFile, SourceLine};
use kerntune_isa::{GuestIsa, InstructionText, Isa};
use std::ops::Range;
use std::path::Path;

/// The code of an image, with its line tables if it has them.
pub struct MachineCode {
    origin: String,
    sections: Vec<(u64, Vec<u8>)>,
    /// `None` without line tables.
    lines: Option<LineTables>,
}

impl MachineCode {
    /// Reads an image.
    ///
    /// # Errors
    /// The file cannot be read, is not an ELF file, or its debug information is damaged.
    pub fn open(image: &Path) -> Result<Self> {
        let bytes = MappedFile::open(image).map_err(|source| Error::Image { path: image.into(), source })?;
        Self::parse(&bytes, &image.display().to_string())
    }

    /// Like [`MachineCode::open`], for the contents of an image; `origin` is its name in messages.
    ///
    /// # Errors
    /// Not an ELF file, or its debug information is damaged.
    pub fn parse(image: &[u8], origin: &str) -> Result<Self> {
        let read = || {
            let elf = Elf::parse(image)?;
            let code = elf.code_sections()?.into_iter();
            let sections = code.map(|section| (section.start, section.data.to_vec())).collect();
            Ok(Self { origin: origin.into(), sections, lines: LineTables::of(&elf)? })
        };
        read().map_err(|error| Error::debug_info(origin, error))
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
        let instructions = GuestIsa::disassemble(found.unwrap_or_default(), code.start);
        instructions.take_while(|instruction| instruction.address < code.end).collect()
    }

    /// Returns the source lines of the code in `code`, by address; empty without line tables.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn lines(&self, code: Range<u64>) -> Result<Vec<SourceLine>> {
        let Some(lines) = &self.lines else { return Ok(Vec::new()) };
        lines.lines(&code).map_err(|error| Error::debug_info(&self.origin, error))
    }
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
        let elf = Elf::parse(&bytes).unwrap();
        let outer = elf.dynamic_symbols().flatten().find(|symbol| symbol.name == "outer").unwrap();
        (MachineCode::open(&image).unwrap(), outer.address, outer.address + outer.size)
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
    fn what_is_no_image_is_refused() {
        let error = MachineCode::parse(b"no image", "vmlinux").err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.starts_with("vmlinux: its debug information cannot be read")));
    }
}
