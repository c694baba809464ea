//! Formats of `kerntune import`, and their recognition by first bytes.

use crate::global::GlobalOptions;
use crate::registry::{entry, Entry, RunSubcommand, SubcommandFolder};
use clap::{ArgMatches, Args, Command, Error};
use kerntune_work::{open_file, IoContext, Result};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Entry of a format of `kerntune import`.
pub struct ImportEntry {
    /// Name, arguments and work.
    pub entry: Entry,
    /// Recognizes the format; `None` if the file is of another one.
    pub recognize: fn(&ImportInput) -> Option<Recognition>,
}

/// Makes the entry of the import format `name`; `place` is its position in help. The arguments `R`
/// must accept the imported file as first positional argument.
pub const fn import_entry<R: RunSubcommand<GlobalOptions> + Args + 'static>(
    name: &'static str,
    place: u8,
    recognize: fn(&ImportInput) -> Option<Recognition>,
) -> ImportEntry {
    ImportEntry { entry: entry::<_, R>(name, place), recognize }
}

impl SubcommandFolder<GlobalOptions> for &[&ImportEntry] {
    fn commands(&self) -> Vec<(u8, Command)> {
        self.iter().map(|import| (import.entry.place, import.entry.command())).collect()
    }

    fn read(
        &self,
        name: &str,
        matches: &ArgMatches,
    ) -> Option<Result<Box<dyn RunSubcommand<GlobalOptions>>, Error>> {
        let found = self.iter().find(|import| import.entry.name == name);
        found.map(|import| import.entry.read(matches))
    }
}

/// Beginning of a file to import, or the names in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportInput {
    /// Path as the user gave it.
    pub path: PathBuf,
    /// First bytes, at most [`Self::MAX_BYTES`]; empty for a directory.
    pub bytes: Vec<u8>,
    /// Sorted names of the directory's first [`Self::MAX_NAMES`] entries; `None` for a file.
    pub names: Option<Vec<String>>,
}

impl ImportInput {
    /// Number of bytes that recognizers see.
    pub const MAX_BYTES: usize = 64 << 10;
    /// Number of directory entries that recognizers see.
    pub const MAX_NAMES: usize = 4096;

    /// Reads the beginning of a file, or lists a directory.
    ///
    /// # Errors
    /// A path that cannot be read, or is neither a regular file nor a directory.
    pub fn read(path: &Path) -> Result<Self> {
        let mut input = Self { path: path.to_owned(), ..Self::default() };
        if path.is_dir() {
            let entries = fs::read_dir(path).at("list", path)?.flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.take(Self::MAX_NAMES).collect();
            names.sort();
            input.names = Some(names);
        } else {
            let file = open_file(path).at("read", path)?;
            file.take(Self::MAX_BYTES as u64).read_to_end(&mut input.bytes).at("read", path)?;
        }
        Ok(input)
    }

    /// Returns true if a directory has an entry of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.as_ref().is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// Returns the whole lines at the beginning of a text; `None` if the bytes are not UTF-8 text.
    /// A last line that the end of [`Self::bytes`] may cut is left out.
    pub fn lines(&self) -> Option<impl Iterator<Item = &str>> {
        let is_cut = self.bytes.len() == Self::MAX_BYTES;
        let end = match is_cut {
            true => self.bytes.iter().rposition(|byte| *byte == b'\n')? + 1,
            false => self.bytes.len(),
        };
        let text = std::str::from_utf8(&self.bytes[..end]).ok()?;
        let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        (!text.is_empty() && text.chars().all(is_text)).then(|| text.lines())
    }
}

/// Answer of a recognizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognition {
    /// Kind of file for messages, with its article: "a perf.data file".
    pub kind: String,
    /// True if no other format begins like this. Otherwise another format's certain answer wins,
    /// and two such answers are ambiguous.
    pub is_certain: bool,
}

impl Recognition {
    /// Recognition by a magic number or the like.
    pub fn certain(kind: impl Into<String>) -> Option<Self> {
        Some(Self { kind: kind.into(), is_certain: true })
    }

    /// Recognition by the look of a text.
    pub fn likely(kind: impl Into<String>) -> Option<Self> {
        Some(Self { kind: kind.into(), is_certain: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_text_are_lines() {
        let input = |bytes: &[u8]| ImportInput { bytes: bytes.into(), ..ImportInput::default() };
        let lines = |input: &ImportInput| Some(input.lines()?.map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(lines(&input(b"a;b 3\nc 4")).unwrap(), ["a;b 3", "c 4"]);
        assert_eq!(
            (lines(&input(b"")), lines(&input(b"a\0b\n")), lines(&input(b"\xff\n"))),
            (None, None, None)
        );
        let mut long = b"first\n".to_vec();
        long.resize(ImportInput::MAX_BYTES, b'x');
        assert_eq!(lines(&input(&long)).unwrap(), ["first"]);
    }

    #[test]
    fn files_and_directories_are_read_and_devices_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("info"), "text").unwrap();
        let found = ImportInput::read(dir.path()).unwrap();
        assert!(found.has("info") && !found.has("text") && found.bytes.is_empty());
        assert_eq!(ImportInput::read(&dir.path().join("info")).unwrap().bytes, b"text");
        let refused = ImportInput::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(refused, "cannot read /dev/zero: it is not a regular file, but a device");
    }
}
