//! Finds shared libraries on the host the way ld.so does.

use super::elf::ElfNeeds;
use crate::glob;
use kerntune_isa::{GuestIsa, Isa, IsaNames};
use std::path::{Path, PathBuf};

/// Directories that ld.so always searches, most specific first.
const DEFAULT_DIRS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

const NAMES: IsaNames = GuestIsa::NAMES;

/// Search path of libraries: the directories of `/etc/ld.so.conf`, which stand for the host's
/// ld.so.cache, then the default ones.
pub(crate) struct LibraryPaths {
    configured: Vec<PathBuf>,
}

/// A library and how it was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundLibrary {
    pub path: PathBuf,
    /// Directory to add to LD_LIBRARY_PATH, if only the host's ld.so.conf names it: the guest has
    /// no ld.so.cache.
    pub extra_dir: Option<PathBuf>,
}

impl LibraryPaths {
    /// Reads the host's configuration; without one, only the default directories remain.
    pub fn of_host() -> Self {
        let mut configured = Vec::new();
        read_conf(Path::new("/etc/ld.so.conf"), &mut configured, 0);
        Self { configured }
    }

    /// Finds `library` for the object at `by`, which has these needs. `inherited` are the DT_RPATH
    /// directories of the objects that loaded it.
    pub fn find(
        &self,
        library: &str,
        by: &Path,
        needs: &ElfNeeds,
        inherited: &[PathBuf],
        fits: &mut dyn FnMut(&Path) -> bool,
    ) -> Option<FoundLibrary> {
        if library.contains('/') {
            let path = expand(library, by);
            return fits(&path).then_some(FoundLibrary { path, extra_dir: None });
        }
        // DT_RPATH counts only without a DT_RUNPATH (ld.so(8)).
        let told = match needs.runpath.is_empty() {
            true => handed_down(by, needs, inherited),
            false => needs.runpath.iter().map(|path| expand(path, by)).collect(),
        };
        let is_extra = |dir: &PathBuf| !DEFAULT_DIRS.iter().any(|known| dir == Path::new(known));
        let told = told.iter().map(|dir| (dir.as_path(), false));
        let configured = self.configured.iter().map(|dir| (dir.as_path(), is_extra(dir)));
        let defaults = DEFAULT_DIRS.iter().map(|dir| (Path::new(*dir), false));
        told.chain(configured).chain(defaults).find_map(|(dir, is_extra)| {
            let path = Some(dir.join(library)).filter(|path| fits(path))?;
            Some(FoundLibrary { path, extra_dir: is_extra.then(|| dir.to_owned()) })
        })
    }

    /// Lists the searched directories, for messages.
    pub fn searched(&self, needs: &ElfNeeds) -> String {
        let told = needs.rpath.iter().chain(&needs.runpath).map(String::as_str);
        let configured = self.configured.iter().filter_map(|dir| dir.to_str());
        let mut dirs: Vec<&str> = told.chain(configured).collect();
        dirs.extend(DEFAULT_DIRS.iter().filter(|dir| Path::new(dir).is_dir()));
        let mut seen = std::collections::HashSet::new();
        dirs.retain(|dir| seen.insert(*dir));
        dirs.join(", ")
    }
}

/// Returns the DT_RPATH directories that the libraries of this object inherit.
pub(crate) fn handed_down(by: &Path, needs: &ElfNeeds, inherited: &[PathBuf]) -> Vec<PathBuf> {
    let own = needs.rpath.iter().filter(|_| needs.runpath.is_empty()).map(|path| expand(path, by));
    own.chain(inherited.iter().cloned()).collect()
}

/// Replaces $ORIGIN, $LIB and $PLATFORM.
fn expand(path: &str, by: &Path) -> PathBuf {
    let origin = by.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let mut text = path.to_owned();
    for (name, value) in
        [("ORIGIN", origin.as_str()), ("LIB", NAMES.library_dir), ("PLATFORM", NAMES.platform)]
    {
        text = text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    PathBuf::from(text)
}

/// Adds the directories of an ld.so.conf file and of its includes.
fn read_conf(path: &Path, dirs: &mut Vec<PathBuf>, depth: usize) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(pattern) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
            if depth < 8 {
                let etc = Path::new("/etc");
                for file in glob::expand(pattern.trim(), etc) {
                    read_conf(&etc.join(file), dirs, depth + 1);
                }
            }
        } else if line.starts_with('/') {
            dirs.push(PathBuf::from(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exists(path: &Path) -> bool {
        path.is_file()
    }

    #[test]
    fn libc_is_found_by_name_and_by_path() {
        let libraries = LibraryPaths::of_host();
        let found = libraries
            .find("libc.so.6", Path::new("/bin/sh"), &ElfNeeds::default(), &[], &mut exists)
            .unwrap();
        assert_eq!(found.extra_dir, None);
        let again = found.path.to_string_lossy().into_owned();
        assert!(libraries
            .find(&again, Path::new("/bin/sh"), &ElfNeeds::default(), &[], &mut exists)
            .is_some());
        assert!(libraries
            .find("libno.so.1", Path::new("/bin/sh"), &ElfNeeds::default(), &[], &mut exists)
            .is_none());
    }

    #[test]
    fn origin_runpath_and_rpath_follow_the_rules_of_ld_so() {
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("lib");
        std::fs::create_dir_all(&lib).unwrap();
        std::fs::create_dir_all(dir.path().join("bin")).unwrap();
        std::fs::write(lib.join("libx.so"), "").unwrap();
        let program = dir.path().join("bin/program");
        let libraries = LibraryPaths { configured: Vec::new() };
        let with = |rpath: &[&str], runpath: &[&str]| ElfNeeds {
            rpath: rpath.iter().map(|s| s.to_string()).collect(),
            runpath: runpath.iter().map(|s| s.to_string()).collect(),
            ..ElfNeeds::default()
        };
        let find = |needs: &ElfNeeds, inherited: &[PathBuf]| {
            libraries.find("libx.so", &program, needs, inherited, &mut exists).is_some()
        };
        assert!(find(&with(&[], &["${ORIGIN}/../lib"]), &[]));
        assert!(find(&with(&["$ORIGIN/../lib"], &[]), &[]));
        assert!(!find(&with(&["$ORIGIN/../lib"], &["/nowhere"]), &[]), "a RUNPATH switches RPATH off");
        assert!(find(&with(&[], &[]), std::slice::from_ref(&lib)));
        assert!(!find(&with(&[], &["/nowhere"]), std::slice::from_ref(&lib)));
    }

    #[test]
    fn a_directory_of_ld_so_conf_must_be_told_to_the_guest() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("libx.so"), "").unwrap();
        let libraries = LibraryPaths { configured: vec![dir.path().to_owned()] };
        let found =
            libraries.find("libx.so", Path::new("/bin/x"), &ElfNeeds::default(), &[], &mut exists).unwrap();
        assert_eq!(found.extra_dir.as_deref(), Some(dir.path()));
    }
}
