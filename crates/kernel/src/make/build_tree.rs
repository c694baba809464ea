//! Directory in which make works. Everything that compilers see of it is the same on every machine.
//!
//! GCC hashes the path of a source into the checksums of its counters, and writes the current
//! directory into names of counter files; GCC and Clang write both into debug information. So both
//! are pinned:
//!
//! - Kbuild names sources relative to the build directory (`../kernel/fork.c`) if that is a
//!   subdirectory of the source tree. The imported source stays untouched and is shared between
//!   builds, so each build has a directory `linux` with a link to each entry of the source and,
//!   among them, its build directory.
//! - The current directory is `/proc/self/cwd` ([`CWD`]): compilers trust the variable `PWD` if it
//!   leads to their current directory, and this path does so in every process.

use crate::Result;
use kerntune_work::{write_atomic, IoContext, WorkDir, RESULT_FILE, SUMS_FILE};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Current directory as compilers see it, and the prefix of counter files' names.
pub(crate) const CWD: &str = "/proc/self/cwd";

/// Name of the build directory, among the links and in a published kernel.
const BUILD: &str = "build";
/// File in the build directory with the path of its source, relative to the work directory or
/// absolute. It outlives the links.
const SOURCE: &str = ".kerntune-source";

/// Directory of links to the source, with the build directory among them.
#[derive(Debug, Clone)]
pub(crate) struct BuildTree {
    top: PathBuf,
}

impl BuildTree {
    /// Returns the tree of a partial directory.
    pub fn of(partial: &Path) -> Self {
        Self::at(partial.join("linux"))
    }

    /// Returns a tree at another path.
    pub fn at(top: PathBuf) -> Self {
        Self { top }
    }

    /// Returns the directory that Kbuild takes for the top of the source.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the build directory.
    pub fn build(&self) -> PathBuf {
        self.top.join(BUILD)
    }

    /// Creates the build directory and the links, or repairs them.
    pub fn link(&self, work: &WorkDir, source: &Path) -> Result<()> {
        // Without it, compilers would silently record other paths.
        fs::metadata(CWD).at("look at", CWD)?;
        let build = self.build();
        fs::create_dir_all(&build).at("create", &build)?;
        let mut wanted = BTreeSet::new();
        for entry in fs::read_dir(source).at("list", source)? {
            wanted.insert(entry.at("list", source)?.file_name());
        }
        // Make works in a directory of this name, and the history is not part of the build.
        for name in [BUILD, ".git", RESULT_FILE, SUMS_FILE] {
            wanted.remove(std::ffi::OsStr::new(name));
        }
        for entry in fs::read_dir(&self.top).at("list", &self.top)? {
            let entry = entry.at("list", &self.top)?;
            let (name, path) = (entry.file_name(), entry.path());
            if name == BUILD || wanted.contains(&name) && leads(&path, &source.join(&name)) {
                wanted.remove(&name);
            } else {
                fs::remove_file(&path).at("remove", &path)?;
            }
        }
        for name in wanted {
            let path = self.top.join(&name);
            symlink(source.join(&name), &path).at("link", &path)?;
        }
        let within = source.strip_prefix(work.root()).unwrap_or(source);
        let note = build.join(SOURCE);
        write_atomic(&note, within.as_os_str().as_encoded_bytes())?;
        Ok(())
    }

    /// Returns the source of a kept build directory, if the source still exists.
    pub fn source_of(work: &WorkDir, build: &Path) -> Result<Option<PathBuf>> {
        let note = build.join(SOURCE);
        match fs::read_to_string(&note) {
            Ok(text) => Ok(Some(work.root().join(text)).filter(|source| source.is_dir())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).at("read", &note)?,
        }
    }

    /// Moves the build directory out of the tree.
    pub fn release(&self, to: &Path) -> Result<()> {
        let build = self.build();
        Ok(fs::rename(&build, to).at("rename", &build)?)
    }

    /// Moves a build directory into the tree.
    pub fn take(&self, from: &Path) -> Result<()> {
        fs::create_dir_all(&self.top).at("create", &self.top)?;
        Ok(fs::rename(from, self.build()).at("rename", from)?)
    }

    /// Removes the links, and the build directory if it is still among them.
    pub fn remove(&self) -> Result<()> {
        match fs::remove_dir_all(&self.top) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => Ok(other.at("remove", &self.top)?),
        }
    }
}

fn leads(link: &Path, to: &Path) -> bool {
    fs::read_link(link).is_ok_and(|target| target == to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make::kbuild::Kbuild;
    use crate::make::object_cache::ObjectCache;
    use crate::{Arch, Compiler, ImportedSource};
    use kerntune_work::NoProgress;

    #[test]
    fn the_build_directory_is_among_links_to_the_source_which_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let source = work.root().join("sources/aa");
        for name in ["kernel", ".git", "build"] {
            fs::create_dir_all(source.join(name)).unwrap();
        }
        fs::write(source.join("Makefile"), "").unwrap();
        let tree = BuildTree::of(&work.root().join("kernels/x.partial"));
        tree.link(&work, &source).unwrap();
        fs::write(tree.build().join("fork.o"), "").unwrap();
        let names = || {
            let list = fs::read_dir(tree.top()).unwrap();
            list.map(|e| e.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
        };
        assert_eq!(names(), ["Makefile", "build", "kernel"].map(String::from).into());
        assert!(!tree.build().is_symlink() && tree.build().join("../kernel").is_dir());

        // The source changes before the build resumes.
        fs::remove_file(source.join("Makefile")).unwrap();
        fs::write(source.join("Kbuild"), "").unwrap();
        tree.link(&work, &source).unwrap();
        assert_eq!(names(), ["Kbuild", "build", "kernel"].map(String::from).into());
        assert!(tree.build().join("fork.o").is_file());

        // Kept objects find their source after the work directory was moved.
        let kept = work.root().join("build");
        tree.release(&kept).unwrap();
        tree.remove().unwrap();
        let moved = dir.path().join("moved");
        fs::rename(work.root(), &moved).unwrap();
        let work = WorkDir::open(&moved).unwrap();
        let found = BuildTree::source_of(&work, &work.root().join("build")).unwrap();
        assert_eq!(found, Some(work.root().join("sources/aa")));
        fs::remove_dir_all(work.root().join("sources")).unwrap();
        assert_eq!(BuildTree::source_of(&work, &work.root().join("build")).unwrap(), None);
    }

    /// Work directory shared by the end-to-end tests, so that the source is unpacked once.
    fn shared() -> WorkDir {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.kerntune");
        WorkDir::open(std::env::var_os("KERNTUNE_DIR").map_or(checkout, PathBuf::from)).unwrap()
    }

    /// Builds two objects of a small kernel with the real Kbuild, in a directory of their own.
    fn objects(
        work: &WorkDir,
        source: &Path,
        place: &Path,
        compiler: &Compiler,
        vars: &[&str],
    ) -> Vec<Vec<u8>> {
        let tree = BuildTree::of(place);
        tree.link(work, source).unwrap();
        let make_vars: Vec<_> = vars.iter().filter_map(|var| var.split_once('=')).collect();
        let make_vars: Vec<_> = make_vars.into_iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let cache = ObjectCache::of(work);
        let kbuild = Kbuild {
            tree: &tree,
            arch: Arch::default(),
            compiler,
            make_vars: &make_vars,
            log: place.join("build.log"),
            cache: cache.as_ref(),
        };
        let make = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            kbuild.make("test", &words, None, &NoProgress).unwrap();
        };
        // All options at once: each run of Kconfig asks the compiler hundreds of questions.
        let wanted = place.join("wanted.config");
        let more = "CONFIG_DEBUG_FS=y\nCONFIG_GCOV_KERNEL=y\nCONFIG_GCOV_PROFILE_ALL=y\n";
        fs::write(&wanted, more).unwrap();
        make(&["allnoconfig", &format!("KCONFIG_ALLCONFIG={}", wanted.display())]);
        make(&["-j2", "KCFLAGS=-g", "kernel/sys.o", "mm/util.o"]);
        let files = ["kernel/sys.o", "kernel/sys.gcno", "mm/util.o", ".config"];
        files.iter().map(|file| fs::read(tree.build().join(file)).unwrap()).collect()
    }

    fn has(bytes: &[u8], text: &str) -> bool {
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    #[test]
    fn instrumented_objects_with_debug_information_are_the_same_in_any_directory() {
        let work = shared();
        let source = ImportedSource::import(&work, &"debian:6.12".parse().unwrap(), &NoProgress).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().to_str().unwrap();
        for (compiler, flags) in [
            ("gcc", "CFLAGS_GCOV=-fprofile-arcs -ftest-coverage -frandom-seed=$@"),
            ("clang-19", "CFLAGS_GCOV=-fprofile-arcs -ftest-coverage"),
        ] {
            let by = compiler.parse().unwrap();
            let [first, second] = ["k", "a-longer-name@of/a.place"].map(|place| {
                let place = dir.path().join(compiler).join(place);
                objects(&work, source.dir(), &place, &by, &[flags])
            });
            assert!(first == second, "{compiler}");
            assert!(has(&first[0], "/proc/self/cwd/kernel/sys.gcda"), "{compiler}");
            assert!(has(&first[1], "../kernel/sys.c"), "{compiler}");
            for bytes in &first {
                assert!(!has(bytes, top) && !has(bytes, source.dir().to_str().unwrap()), "{compiler}");
            }
        }
    }

    #[test]
    fn counters_are_found_by_the_name_under_which_they_are_written() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("kernel")).unwrap();
        fs::write(dir.path().join("kernel/a.c"), "int main(void) { return 0; }\n").unwrap();
        let gcc = |flags: &str| {
            let [compiler] = &Compiler::default().make_args("")[..] else { panic!("more than a compiler") };
            let compiler = compiler.strip_prefix("CC=").unwrap();
            let script = format!("{compiler} -Wmissing-profile {flags}");
            let out = std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir(dir.path())
                .env("LC_ALL", "C")
                .output()
                .unwrap();
            assert!(out.status.success(), "{out:?}");
            String::from_utf8(out.stderr).unwrap()
        };
        let missing = gcc("-fprofile-use -c kernel/a.c -o kernel/a.o");
        assert!(
            missing.contains("'/proc/self/cwd/kernel/a.gcda' profile count data file not found"),
            "{missing}"
        );
        gcc("--coverage -c kernel/a.c -o kernel/a.o");
        gcc("--coverage kernel/a.o -o a");
        let ran = std::process::Command::new("./a").current_dir(dir.path()).status().unwrap();
        assert!(ran.success() && dir.path().join("kernel/a.gcda").is_file());
        assert_eq!(gcc("-fprofile-use -c kernel/a.c -o kernel/a.o"), "");
    }
}
