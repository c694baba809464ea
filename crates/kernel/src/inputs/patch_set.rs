//! Patches of `embedded/kernel/patches` for recipes and studies, compiled in so that an installed kerntune
//! needs no checkout.

use crate::Result;
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

impl PatchSet {
    /// Returns the set of that name for a kernel of this version; `None` if there is none.
    pub fn named(name: &str, version: &str) -> Option<Self> {
        ALL.into_iter().find_map(|sets| {
            let of_name: Vec<Self> = sets.iter().filter(|set| set.name == name).copied().collect();
            Self::of_series(&of_name, version)
        })
    }

    /// Returns the patches for User-Mode Linux: it then counts arcs, and behaves like a kernel for
    /// a PC. `None` if there are none for this version.
    pub fn uml(version: &str) -> Option<Self> {
        Self::of_series(UML, version)
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
