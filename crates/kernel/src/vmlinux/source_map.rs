//! Source file of every function of a kernel (`sources.tsv`), which the symbol table does not have.

use crate::vmlinux::{locate, objects, raw_symbols};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Name of the file beside `vmlinux`.
pub(crate) const FILE: &str = "sources.tsv";
pub(crate) const HEADER: &str = "# kerntune-sources/1: functions from this address on are of this file";
/// Path of a range whose source is unknown.
const UNKNOWN: &str = "-";

/// Ranges of addresses, with the source file of the functions that begin in them.
///
/// The file has a line per range, address in hexadecimal and path, separated by a tab. A linker
/// keeps the functions of an object together, so 40,000 functions make some 5,000 lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceMap {
    /// First address → path, or `None` for a range whose source is unknown.
    pub(crate) ranges: BTreeMap<u64, Option<String>>,
}

impl SourceMap {
    /// Compares the kernel in `build` with the objects that it was linked from.
    ///
    /// # Errors
    /// Files that cannot be read. A build whose objects have no sources gives an empty map.
    pub fn of_build(build: &Path, source: &Path) -> Result<Self> {
        let objects = objects::linked(build, source)?;
        let vmlinux = build.join("vmlinux");
        let raw = raw_symbols::load(&vmlinux)?;
        let mut paths: BTreeMap<u64, Option<String>> = BTreeMap::new();
        for (symbol, object) in raw.iter().zip(locate::locate(&raw, &objects)) {
            let path = object.map(|object| object.source.clone());
            let known = paths.entry(symbol.address).or_default();
            if known.is_none() {
                *known = path;
            }
        }
        let mut ranges = BTreeMap::new();
        let mut last: Option<Option<String>> = None;
        for (address, path) in paths {
            if last.as_ref() != Some(&path) {
                ranges.insert(address, path.clone());
                last = Some(path);
            }
        }
        Ok(Self { ranges })
    }

    /// Returns the path of the function that begins at `address`.
    pub fn path(&self, address: u64) -> Option<&str> {
        self.ranges.range(..=address).next_back()?.1.as_deref()
    }

    /// Returns all paths.
    pub fn paths(&self) -> BTreeSet<String> {
        self.ranges.values().flatten().cloned().collect()
    }

    /// Checks whether no source is known.
    pub fn is_empty(&self) -> bool {
        self.ranges.values().all(Option::is_none)
    }

    /// Formats the map as the text of the file.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (address, path) in &self.ranges {
            let path = path.as_deref().unwrap_or(UNKNOWN);
            let _ = writeln!(text, "{address:x}\t{path}");
        }
        text
    }

    /// Parses [`Self::text`]. `dir` is the kernel's directory, for the message.
    pub fn parse(text: &str, dir: &Path) -> Result<Self> {
        let damaged = |reason: String| Error::Damaged { dir: dir.to_owned(), reason };
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(damaged(format!("{FILE} does not begin with `{HEADER}`")));
        }
        let mut ranges = BTreeMap::new();
        for (line, number) in lines.zip(2..) {
            let range = line.split_once('\t').and_then(|(address, path)| {
                let address = u64::from_str_radix(address, 16).ok()?;
                (!path.is_empty()).then(|| (address, Some(path.to_string()).filter(|p| p != UNKNOWN)))
            });
            let Some((address, path)) = range else {
                return Err(damaged(format!("{FILE}, line {number}: `{line}` is not ADDRESS<tab>PATH")));
            };
            ranges.insert(address, path);
        }
        Ok(Self { ranges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_function_is_of_the_range_that_it_begins_in() {
        let text = format!("{HEADER}\n100\tnet/a.c\n200\t-\n300\tnet/b.c\n");
        let sources = SourceMap::parse(&text, Path::new("k")).unwrap();
        let paths = [0xff, 0x100, 0x1ff, 0x200, 0x2ff, 0x300, u64::MAX].map(|at| sources.path(at));
        let (a, b) = (Some("net/a.c"), Some("net/b.c"));
        assert_eq!(paths, [None, a, a, None, None, b, b]);
        assert_eq!(sources.text(), text);
        assert!(!sources.is_empty() && SourceMap::default().is_empty());
    }

    #[test]
    fn damage_is_said_with_its_line() {
        for (text, message) in [
            ("".to_string(), "does not begin with"),
            (format!("{HEADER}\n100\tnet/a.c\nxyz\tb\n"), "line 3: `xyz\tb`"),
            (format!("{HEADER}\n100 net/a.c\n"), "line 2"),
            (format!("{HEADER}\n100\t\n"), "line 2"),
        ] {
            let error = SourceMap::parse(&text, Path::new("k")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f\t\n-]{0,60}") {
            let _ = SourceMap::parse(&text, Path::new("k"));
            let _ = SourceMap::parse(&format!("{HEADER}\n{text}"), Path::new("k"));
        }
    }
}
