//! Outcomes of conditions with `likely()` or `unlikely()` in the image of a kernel that is built with the
//! patch set `hints` (`embedded/kernel/patches/hints`): an instruction for each.

use crate::{Error, Result};
use kerntune_debuginfo::{Elf, MappedFile, Section};
use kerntune_work::IoContext;
use std::path::Path;

/// Section with a description of each outcome.
const SECTION: &str = ".debug_sfnames";
/// Bytes of a description: address, address of the file's name, line, outcomes.
const SIZE: usize = 24;
/// Longest path of a file.
const MAX_NAME: u64 = 4096;

/// An instruction that runs once for each time that a condition has an outcome. Inlined and
/// duplicated code has several for one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintOutcome {
    /// Address of the instruction.
    pub address: u64,
    /// Source file, from the top of the source.
    pub file: String,
    /// Line of the hint, from 1.
    pub line: u32,
    /// Outcome of the condition.
    pub outcome: bool,
    /// Outcome that the source expects: true for `likely()`.
    pub expected: bool,
}

impl HintOutcome {
    /// Reads the outcomes of an image, in the order of its data; empty if it has none.
    ///
    /// # Errors
    /// A file that cannot be read or is no ELF file; a damaged description.
    pub fn load(vmlinux: &Path) -> Result<Vec<Self>> {
        Self::parse(&MappedFile::open(vmlinux).at("open", vmlinux)?, vmlinux)
    }

    /// Reads the outcomes from bytes in memory; `path` is for error messages.
    ///
    /// # Errors
    /// Those of [`HintOutcome::load`].
    pub fn parse(data: &[u8], path: &Path) -> Result<Vec<Self>> {
        let refuse = |reason: String| Error::Elf { path: path.to_owned(), reason };
        let elf = Elf::parse_any(data).map_err(|error| refuse(error.to_string()))?;
        let sections = elf.sections().map_err(|error| refuse(error.to_string()))?;
        let loaded: Vec<&Section> = sections.iter().filter(|section| section.loaded).collect();
        let bytes = |address: u64, size: u64| loaded.iter().find_map(|section| section.bytes(address, size));
        let data = elf.section(SECTION).map_err(|error| refuse(error.to_string()))?.unwrap_or_default();
        let found = data.chunks_exact(SIZE);
        if !found.remainder().is_empty() {
            return Err(refuse(format!("{SECTION} ends in the middle of a hint")));
        }
        let mut all = Vec::with_capacity(found.len());
        for (number, found) in found.enumerate() {
            let damaged = || refuse(format!("hint {number} of {SECTION} is damaged"));
            let name =
                bytes(word(found, 8), MAX_NAME).and_then(|bytes| bytes.split(|byte| *byte == 0).next());
            let file = name.and_then(|name| std::str::from_utf8(name).ok()).ok_or_else(damaged)?;
            let [line, outcomes] = [word(found, 16) as u32, (word(found, 16) >> 32) as u32];
            if outcomes > 3 || line == 0 {
                return Err(damaged());
            }
            all.push(Self {
                address: word(found, 0),
                file: file.trim_start_matches("./").to_owned(),
                line,
                outcome: outcomes & 1 != 0,
                expected: outcomes & 2 != 0,
            });
        }
        Ok(all)
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// The lines that the patch adds, without those of the kernel around them.
    fn macros() -> String {
        let patch = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../embedded/kernel/patches/hints/0001-outcomes.patch"
        ));
        let added = patch.lines().filter_map(|line| line.strip_prefix('+')).skip(1);
        added.filter(|line| !line.starts_with("#e")).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn every_outcome_of_a_compiled_hint_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let source = format!(
            "{}\nint f(int x) {{\n\treturn unlikely(x > 3) ? x * 7 :\n\t\tlikely(x) ? 2 : 5;\n}}\n\
             int main(int c, char **v) {{ return f(c) + (likely(1) ? 0 : 1); }}\n",
            macros()
        );
        let line = source.lines().position(|line| line.contains("unlikely(x > 3)")).unwrap() as u32 + 1;
        fs::write(dir.path().join("a.c"), source).unwrap();
        let flags = ["-O2", "-no-pie", "-fno-pie", "-fno-inline", "-o", "a", "./a.c"];
        let status = Command::new("gcc").current_dir(dir.path()).args(flags).status().unwrap();
        assert!(status.success());
        let mut found = HintOutcome::load(&dir.path().join("a")).unwrap();
        found.sort_by_key(|of| (of.line, of.outcome));
        found.dedup_by_key(|of| (of.line, of.outcome));
        let seen: Vec<_> =
            found.iter().map(|of| (of.file.as_str(), of.line, of.outcome, of.expected)).collect();
        let wanted = [
            ("a.c", line, false, false),
            ("a.c", line, true, false),
            ("a.c", line + 1, false, true),
            ("a.c", line + 1, true, true),
        ];
        assert_eq!(seen, wanted, "the condition that is always true has none");

        let mut image = fs::read(dir.path().join("a")).unwrap();
        let elf = Elf::parse(&image).unwrap();
        let data = elf.section(SECTION).unwrap().unwrap().into_owned();
        let at = image.windows(data.len()).position(|bytes| bytes == data).unwrap();
        image[at + 20] = 9;
        let error = HintOutcome::parse(&image, Path::new("a")).unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{error}");
        assert_eq!(HintOutcome::parse(&fs::read("/bin/true").unwrap(), Path::new("a")).unwrap(), []);
        assert!(HintOutcome::parse(b"no image", Path::new("a")).is_err());
    }
}
