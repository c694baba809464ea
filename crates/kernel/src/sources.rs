//! `sources.tsv`: the source file of every function of a kernel, which its symbol table does not say.

use crate::{locate, objects, raw_symbols, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The file's name beside `vmlinux`.
pub(crate) const FILE: &str = "sources.tsv";
pub(crate) const HEADER: &str = "# kerntune-sources/1: functions from this address on are of this file";
/// Stands for "not known".
const UNKNOWN: &str = "-";

/// Ranges of addresses and the source file of the functions that begin in them.
///
/// Stored as a line per range, address in hexadecimal and path with a tab between: a linker keeps
/// the functions of an object together, so that 40,000 functions make some 5,000 lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    /// First address → path, or None for a stretch in which it is not known.
    pub(crate) ranges: BTreeMap<u64, Option<String>>,
}

impl Sources {
    /// Compares the kernel in `build` with the objects that it was linked from.
    ///
    /// # Errors
    /// Of reading; a build whose objects say nothing gives an empty answer.
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

    /// The path of the function that begins at `address`.
    pub fn path(&self, address: u64) -> Option<&str> {
        self.ranges.range(..=address).next_back()?.1.as_deref()
    }

    /// Every path.
    pub fn paths(&self) -> BTreeSet<String> {
        self.ranges.values().flatten().cloned().collect()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.ranges.values().all(Option::is_none)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (address, path) in &self.ranges {
            let path = path.as_deref().unwrap_or(UNKNOWN);
            let _ = writeln!(text, "{address:x}\t{path}");
        }
        text
    }

    /// Reads [`Self::text`] back. `dir` is the kernel's, for the message.
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
        let sources = Sources::parse(&text, Path::new("k")).unwrap();
        let paths = [0xff, 0x100, 0x1ff, 0x200, 0x2ff, 0x300, u64::MAX].map(|at| sources.path(at));
        let (a, b) = (Some("net/a.c"), Some("net/b.c"));
        assert_eq!(paths, [None, a, a, None, None, b, b]);
        assert_eq!(sources.text(), text);
        assert!(!sources.is_empty() && Sources::default().is_empty());
    }

    #[test]
    fn damage_is_said_with_its_line() {
        for (text, message) in [
            ("".to_string(), "does not begin with"),
            (format!("{HEADER}\n100\tnet/a.c\nxyz\tb\n"), "line 3: `xyz\tb`"),
            (format!("{HEADER}\n100 net/a.c\n"), "line 2"),
            (format!("{HEADER}\n100\t\n"), "line 2"),
        ] {
            let error = Sources::parse(&text, Path::new("k")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f\t\n-]{0,60}") {
            let _ = Sources::parse(&text, Path::new("k"));
            let _ = Sources::parse(&format!("{HEADER}\n{text}"), Path::new("k"));
        }
    }
}
