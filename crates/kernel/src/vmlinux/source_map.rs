//! Source file of every function of a kernel (`sources.tsv`), which the symbol table does not have.

use crate::vmlinux::{locate, objects, raw_symbols};
use crate::{Error, Result};
use kerntune_debuginfo::{CodeUnit, Elf};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Name of the file beside `vmlinux`.
pub(crate) const FILE: &str = "sources.tsv";
pub(crate) const HEADER: &str = "# kerntune-sources/1: functions from this address on are of this file";
/// Path of a range whose source is unknown.
const UNKNOWN: &str = "-";

/// Files of every kernel. Their paths in debug information tell the directory of the source, which
/// may be another for assembly code.
const KNOWN_FILES: [&str; 2] = ["init/main.c", "arch/x86/entry/entry_64.S"];

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

    /// Reads the map from the debug information of a `vmlinux`. Without any it is empty.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn of_debug_info(vmlinux: &[u8]) -> kerntune_debuginfo::Result<Self> {
        Ok(Self::of_units(&Elf::parse(vmlinux)?.debug_info()?.code_units()?))
    }

    fn of_units(units: &[CodeUnit]) -> Self {
        let names = || units.iter().filter_map(|unit| unit.name.as_deref());
        let tops: Vec<&str> = KNOWN_FILES
            .iter()
            .filter_map(|file| {
                let mut tops = names().filter_map(|name| name.strip_suffix(file));
                tops.find(|top| top.is_empty() || top.ends_with('/'))
            })
            .collect();
        let below = |name: &str| {
            let mut paths = tops.iter().chain([&"../"]).filter_map(|top| name.strip_prefix(top));
            paths.find(|path| !path.starts_with(['/', '.'])).unwrap_or(name).to_owned()
        };
        let mut ranges: BTreeMap<u64, Option<String>> =
            units.iter().map(|unit| (unit.code.end, None)).collect();
        for unit in units {
            // A path with a tab or line end would become another line of the file.
            let path = unit.name.as_deref().map(below);
            let path = path.filter(|path| !path.is_empty() && !path.contains(char::is_control));
            ranges.insert(unit.code.start, path);
        }
        Self { ranges }
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
    fn units_of_debug_information_have_paths_below_the_source() {
        let unit = |code, name: &'static str| CodeUnit { code, offset: 0, name: Some(name.into()) };
        let units = [
            unit(0x100..0x180, "/build/linux-6.1/init/main.c"),
            unit(0x180..0x200, "/build/linux-6.1/net/a.c"),
            unit(0x200..0x210, "/made/arch/x86/entry/entry_64.S"),
            unit(0x210..0x220, "/made/arch/x86/lib/b.S"),
            unit(0x300..0x340, "lib/made.c"),
            unit(0x400..0x440, "bad\n1\tb"),
        ];
        let sources = SourceMap::of_units(&units);
        let paths = [0x17f, 0x180, 0x210, 0x220, 0x300, 0x340, 0x400].map(|at| sources.path(at));
        let [main, a, b, made] = ["init/main.c", "net/a.c", "arch/x86/lib/b.S", "lib/made.c"].map(Some);
        assert_eq!(paths, [main, a, b, None, made, None, None]);
        assert_eq!(SourceMap::parse(&sources.text(), Path::new("k")).unwrap(), sources);
        assert!(SourceMap::of_units(&[]).is_empty());
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
