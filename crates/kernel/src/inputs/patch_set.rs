//! Patches of `embedded/kernel/patches` for recipes and studies, compiled in so that an installed kerntune
//! needs no checkout.

use crate::{ImportedSource, Result};
use kerntune_work::{IoContext, Key, WorkDir};
use std::fs;
use std::path::PathBuf;

/// Kind of result in the work directory.
const KIND: &str = "patches";

/// Patches that belong together, in order, for kernels of one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchSet {
    /// Name of the set, such as `gcov-values`.
    pub name: &'static str,
    /// Series of kernels that the patches apply to, such as `6.12`.
    pub series: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($directory:literal: $($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../../embedded/kernel/patches/", $directory, "/", $name)))),+]
    };
}

const GCOV_VALUES: &[PatchSet] = &[
    PatchSet {
        name: "gcov-values",
        series: "6.1",
        files: files!("6.1/gcov-values": "0001-hooks.patch", "0002-interrupts.patch", "0003-assembler.patch"),
    },
    PatchSet {
        name: "gcov-values",
        series: "6.12",
        files: files!("6.12/gcov-values": "0001-hooks.patch", "0002-interrupts.patch", "0003-assembler.patch"),
    },
    PatchSet {
        name: "gcov-values",
        series: "7.3",
        files: files!("7.3/gcov-values": "0001-hooks.patch", "0002-interrupts.patch", "0003-assembler.patch"),
    },
];

const UML: &[PatchSet] = &[
    PatchSet {
        name: "uml",
        series: "6.12",
        files: files!(
            "6.12/uml":
            "0001-gcov-early.patch",
            "0002-amx.patch",
            "0003-names.patch",
            "0004-code-model.patch"
        ),
    },
    PatchSet {
        name: "uml",
        series: "7.3",
        files: files!("7.3/uml": "0001-gcov-early.patch", "0003-names.patch", "0004-code-model.patch"),
    },
];

/// Kernels of the study of namei (`data/papers/mckusick.toml`).
const NAMEI: &[PatchSet] = &[
    PatchSet {
        name: "namei-search",
        series: "6.12",
        files: files!("6.12/namei": "0001-search-directories.patch"),
    },
    PatchSet {
        name: "namei-place",
        series: "6.12",
        files: files!("6.12/namei": "0001-search-directories.patch", "0002-place-of-a-process.patch"),
    },
    PatchSet {
        name: "namei-both",
        series: "6.12",
        files: files!(
            "6.12/namei":
            "0001-search-directories.patch",
            "0002-place-of-a-process.patch",
            "0003-cache-of-names.patch"
        ),
    },
];

/// McRae's triggers, placed by the compiler and by hand (`docs/mcrae.md`).
const MCRAE: &[PatchSet] = &[
    PatchSet {
        name: "mcrae-compiler",
        series: "6.1",
        files: files!("6.1/mcrae-compiler": "0001-triggers.patch", "0002-assembler.patch"),
    },
    PatchSet {
        name: "mcrae-compiler",
        series: "6.12",
        files: files!("6.12/mcrae-compiler": "0001-triggers.patch", "0002-assembler.patch"),
    },
    PatchSet {
        name: "mcrae-compiler",
        series: "7.3",
        files: files!("7.3/mcrae-compiler": "0001-triggers.patch", "0002-assembler.patch"),
    },
    PatchSet {
        name: "mcrae-macro",
        series: "6.1",
        files: files!("6.1/mcrae-compiler": "0001-triggers.patch", "0002-assembler.patch", "0003-macro.patch"),
    },
    PatchSet {
        name: "mcrae-macro",
        series: "6.12",
        files: files!("6.12/mcrae-compiler": "0001-triggers.patch", "0002-assembler.patch", "0003-macro.patch"),
    },
    PatchSet {
        name: "mcrae-macro",
        series: "7.3",
        files: files!("7.3/mcrae-compiler": "0001-triggers.patch", "0002-assembler.patch", "0003-macro.patch"),
    },
    PatchSet {
        name: "mcrae-tags",
        series: "6.1",
        files: files!("6.1/mcrae-tags": "0001-headers.patch", "0002-triggers.patch"),
    },
    PatchSet {
        name: "mcrae-tags",
        series: "6.12",
        files: files!("6.12/mcrae-tags": "0001-headers.patch", "0002-triggers.patch"),
    },
    PatchSet {
        name: "mcrae-tags",
        series: "7.3",
        files: files!("7.3/mcrae-tags": "0001-headers.patch", "0002-triggers.patch"),
    },
];

/// Kernel of Chen's study of wake-ups (`data/papers/chen.toml`).
const WAKE: &[PatchSet] = &[PatchSet {
    name: "wake-previous",
    series: "6.12",
    files: files!("6.12/wake": "0001-previous-cpu.patch"),
}];

/// An instruction for each outcome of `likely()` and `unlikely()` ([`HintOutcome`](crate::HintOutcome)).
const HINTS: &[PatchSet] = &[
    PatchSet { name: "hints", series: "6.12", files: files!("hints": "0001-outcomes.patch") },
    PatchSet { name: "hints", series: "7.3", files: files!("hints": "0001-outcomes.patch") },
];

/// All patch sets.
const ALL: [&[PatchSet]; 6] = [GCOV_VALUES, UML, NAMEI, MCRAE, WAKE, HINTS];

/// Releases of a major version, as of 5 and 6.
const RELEASES: u32 = 20;

/// Returns the place of a version in the order of releases; `None` if it cannot be read.
fn position(version: &str) -> Option<u32> {
    let mut numbers = version.split(['.', '-']);
    let mut next = || numbers.next()?.parse::<u32>().ok();
    let (major, minor) = (next()?, next()?);
    major.checked_mul(RELEASES)?.checked_add(minor)
}

impl PatchSet {
    /// Returns the set of that name for a kernel of this version; `None` if there is none.
    pub fn named(name: &str, version: &str) -> Option<Self> {
        ALL.into_iter().find_map(|sets| {
            let of_name: Vec<Self> = sets.iter().filter(|set| set.name == name).copied().collect();
            Self::of_series(&of_name, version)
        })
    }

    /// Returns the set of that name for a source: that of its own series, or else the one of the
    /// nearest series whose patches apply. `None` if there is none.
    ///
    /// Hunks may be found at other lines, but not with other lines around them.
    ///
    /// # Errors
    /// Files that cannot be read; `patch` missing.
    pub fn fitting(name: &str, source: &ImportedSource) -> Result<Option<Self>> {
        if let Some(own) = Self::named(name, source.version()) {
            return Ok(Some(own));
        }
        let Some(at) = position(source.version()) else { return Ok(None) };
        let of_name = ALL.into_iter().flatten().filter(|set| set.name == name);
        let mut sets: Vec<_> =
            of_name.filter_map(|set| Some((position(set.series)?.abs_diff(at), *set))).collect();
        sets.sort_by_key(|(distance, _)| *distance);
        for (_, set) in sets {
            if source.takes(set.files)? {
                return Ok(Some(set));
            }
        }
        Ok(None)
    }

    /// Returns a sentence for a set of another series than the source's; `None` for its own.
    pub fn borrowed(&self, version: &str) -> Option<String> {
        let is_own = Self::of_series(&[*self], version).is_some();
        (!is_own).then(|| format!("the patches {} of Linux {} apply to {version}", self.name, self.series))
    }

    /// Returns the patches that add value counters to gcov in a kernel of this version; `None` if
    /// there are none.
    ///
    /// ```
    /// use kerntune_kernel::PatchSet;
    /// assert_eq!(PatchSet::gcov_values("6.12.117").map(|set| set.series), Some("6.12"));
    /// assert!(PatchSet::gcov_values("6.6.0").is_none());
    /// ```
    pub fn gcov_values(version: &str) -> Option<Self> {
        Self::of_series(GCOV_VALUES, version)
    }

    fn of_series(sets: &[Self], version: &str) -> Option<Self> {
        let rest = |set: &&PatchSet| version.strip_prefix(set.series).map(str::to_owned);
        sets.iter().find(|set| rest(set).is_some_and(|r| r.is_empty() || r.starts_with(['.', '-']))).copied()
    }

    /// Checks whether a text is exactly one of these patches.
    pub(crate) fn has(text: &[u8]) -> bool {
        let mut ours = ALL.into_iter().flatten().flat_map(|set| set.files);
        ours.any(|(_, own)| own.as_bytes() == text)
    }

    /// Writes the patches to the work directory and returns their paths, in order, for
    /// [`BuildRequest::patches`](crate::BuildRequest::patches).
    pub fn write(&self, work: &WorkDir) -> Result<Vec<PathBuf>> {
        let mut hash = Key::new("patch-set/2", "").field("name", self.name);
        for (name, text) in self.files {
            hash = hash.field("file", name).field("text", text);
        }
        let staged = work.stage(KIND, &hash)?;
        let dir = match staged.already() {
            Some(dir) => dir,
            None => {
                staged.clear()?;
                for (name, text) in self.files {
                    let path = staged.path().join(name);
                    fs::write(&path, text).at("write", &path)?;
                }
                staged.publish()?
            }
        };
        Ok(self.files.iter().map(|(name, _)| dir.join(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelSource;
    use kerntune_work::NoProgress;

    #[test]
    fn the_nearest_series_that_applies_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        // The one file that the patch of every series changes, as it is before.
        let text = HINTS[0].files[0].1;
        let name = text.lines().find_map(|line| line.strip_prefix("--- a/")).unwrap();
        let hunk = text.lines().skip_while(|line| !line.starts_with("@@")).skip(1);
        let before: String =
            hunk.filter_map(|line| line.strip_prefix([' ', '-'])).map(|line| format!("{line}\n")).collect();
        let source = |[major, minor]: [u32; 2], text: Option<&str>| {
            let top = dir.path().join(format!("{major}.{minor}"));
            let head = format!("VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 1\nEXTRAVERSION =\n");
            for (name, text) in [("Makefile", Some(&head[..])), ("Kconfig", Some("")), (name, text)] {
                let path = top.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                text.iter().for_each(|text| fs::write(&path, text).unwrap());
            }
            ImportedSource::import(&work, &KernelSource::Directory(top), &NoProgress).unwrap()
        };
        let set = |source| PatchSet::fitting("hints", &source).unwrap();
        assert_eq!(set(source([6, 6], None)), None, "the file is not there");
        assert_eq!(set(source([6, 7], Some("int other;\n"))), None, "the lines are others");
        assert_eq!(set(source([7, 3], None)).unwrap().series, "7.3");
        for (version, series) in
            [([7, 2], "7.3"), ([7, 4], "7.3"), ([6, 18], "7.3"), ([6, 14], "6.12"), ([6, 6], "6.12")]
        {
            assert_eq!(set(source(version, Some(&before))).unwrap().series, series, "{version:?}");
        }
        let near = set(source([7, 2], Some(&before))).unwrap();
        assert_eq!(near.borrowed("7.2.1").unwrap(), "the patches hints of Linux 7.3 apply to 7.2.1");
        assert_eq!(near.borrowed("7.3.9"), None);
        assert_eq!(fs::read_to_string(dir.path().join("7.2").join(name)).unwrap(), before, "only tried");
    }

    #[test]
    fn releases_are_in_order() {
        let at = |version| position(version).unwrap();
        assert_eq!(at("7.0") - at("6.19"), 1);
        assert_eq!(at("6.18.3") - at("6.12"), 6);
        assert_eq!([position("mine"), position("7")], [None, None]);
    }

    #[test]
    fn a_series_is_not_the_beginning_of_another() {
        let series = |version| PatchSet::gcov_values(version).map(|set| set.series);
        assert_eq!([series("6.12"), series("6.12.0-rc3"), series("6.12.117")], [Some("6.12"); 3]);
        assert_eq!([series("6.1.192"), series("7.3.4")], [Some("6.1"), Some("7.3")]);
        assert_eq!([series("6.120.1"), series("6.10.3"), series("7.0.0"), series("")], [None; 4]);
    }

    #[test]
    fn sets_have_names() {
        let files = |name| PatchSet::named(name, "6.12.117").map(|set| set.files.len());
        assert_eq!(["namei-search", "namei-place", "namei-both"].map(files), [Some(1), Some(2), Some(3)]);
        assert_eq!(
            [files("mcrae-compiler"), files("mcrae-macro"), files("nothing")],
            [Some(2), Some(3), None]
        );
        assert!(PatchSet::named("namei-search", "6.6.1").is_none());
        for version in ["6.1.192", "6.12.117", "7.3.4"] {
            for name in ["mcrae-compiler", "mcrae-macro", "mcrae-tags"] {
                assert!(PatchSet::named(name, version).is_some(), "{name} {version}");
            }
        }
    }

    #[test]
    fn patches_are_written_once_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let set = PatchSet::gcov_values("6.12.117").unwrap();
        let paths = set.write(&work).unwrap();
        assert_eq!(paths, set.write(&work).unwrap());
        let names: Vec<_> = paths.iter().filter_map(|p| p.file_name()?.to_str()).collect();
        assert_eq!(names, ["0001-hooks.patch", "0002-interrupts.patch", "0003-assembler.patch"]);
        for (path, (_, text)) in paths.iter().zip(set.files) {
            assert_eq!(fs::read_to_string(path).unwrap(), *text);
        }
    }
}
