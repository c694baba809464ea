//! Parser of GCC's `.gcno`, as far as it names functions: the notes that the compiler writes beside
//! an instrumented object. The `.gcda` of the same compilation has the same stamp and idents.
//!
//! Defined by GCC's `gcc/gcov-io.h` and `gcc/coverage.cc` (`coverage_begin_function`), GCC 12 on:
//! little-endian words, lengths in bytes, strings with their length and a final NUL.

use std::collections::HashMap;

const MAGIC: u32 = 0x6763_6e6f;
const TAG_FUNCTION: u32 = 0x0100_0000;

/// Contents of one `.gcno`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GcnoFile {
    /// The compiler's version word.
    pub version: u32,
    /// Stamp of the compilation.
    pub stamp: u32,
    /// Functions by ident.
    pub functions: HashMap<u32, FunctionNote>,
}

/// Note of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionNote {
    /// Checksum of the control-flow graph; in the `.gcda` too.
    pub cfg_checksum: u32,
    /// Assembler name.
    pub name: String,
    /// Source file, as passed to the compiler.
    pub file: String,
    /// Line of the declaration, from 1.
    pub line: u32,
}

impl GcnoFile {
    /// Parses a whole file; the error describes the damage.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = GcnoReader { bytes, at: 0 };
        if reader.word()? != MAGIC {
            return Err("it is not a .gcno file".into());
        }
        let mut notes = GcnoFile { version: reader.word()?, stamp: reader.word()?, ..GcnoFile::default() };
        let _checksum = reader.word()?;
        let _directory = reader.string()?;
        let _has_unexecuted_blocks = reader.word()?;
        while reader.at < bytes.len() {
            let tag = reader.word()?;
            let length = reader.word()? as usize;
            let mut record = GcnoReader { bytes: reader.take(length)?, at: 0 };
            if tag == TAG_FUNCTION {
                let (ident, _lineno_checksum, cfg_checksum) =
                    (record.word()?, record.word()?, record.word()?);
                let name = record.string()?;
                let _artificial = record.word()?;
                let (file, line) = (record.string()?, record.word()?);
                notes.functions.insert(ident, FunctionNote { cfg_checksum, name, file, line });
            }
        }
        Ok(notes)
    }
}

struct GcnoReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> GcnoReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| format!("it is truncated at byte {}", self.bytes.len()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn word(&mut self) -> Result<u32, String> {
        let word = self.take(4)?;
        Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    }

    fn string(&mut self) -> Result<String, String> {
        let length = self.word()? as usize;
        let text = self.take(length)?;
        Ok(String::from_utf8_lossy(text.strip_suffix(b"\0").unwrap_or(text)).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn real() -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let source =
            "static int twice(int x) { return x > 2 ? 2 * x : x; }\n\nint main(int c, char **v)\n{\n\
                      \tint s = 0;\n\tfor (int i = 0; i < c; i++)\n\t\ts += twice(i);\n\treturn s;\n}\n";
        std::fs::write(dir.path().join("main.c"), source).unwrap();
        let args = ["-O1", "-fno-early-inlining", "-fprofile-arcs", "-ftest-coverage", "-c", "main.c"];
        assert!(Command::new("gcc").current_dir(dir.path()).args(args).status().unwrap().success());
        std::fs::read(dir.path().join("main.gcno")).unwrap()
    }

    #[test]
    fn functions_have_name_and_place() {
        let notes = GcnoFile::parse(&real()).unwrap();
        let mut functions: Vec<_> =
            notes.functions.values().map(|f| (f.name.as_str(), f.file.as_str(), f.line)).collect();
        functions.sort();
        assert_eq!(functions, [("main", "main.c", 3), ("twice", "main.c", 1)]);
        assert!(notes.version.to_be_bytes()[0].is_ascii_uppercase());
    }

    #[test]
    fn damage_is_said() {
        let bytes = real();
        let error = GcnoFile::parse(&bytes[..bytes.len() - 3]).unwrap_err();
        assert!(error.contains("truncated"), "{error}");
        assert_eq!(GcnoFile::parse(b"adcgadcg").unwrap_err(), "it is not a .gcno file");
    }

    proptest! {
        #[test]
        fn damaged_notes_are_read_or_refused(at in 0usize..200, value: u8, cut in 0usize..300) {
            use std::sync::OnceLock;
            static REAL: OnceLock<Vec<u8>> = OnceLock::new();
            let mut bytes = REAL.get_or_init(real).clone();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = GcnoFile::parse(&bytes);
        }
    }
}
