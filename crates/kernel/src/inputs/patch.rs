//! User's patches, applied to a copy of the source tree and never to the source itself.

use crate::inputs::source::SOURCES;
use crate::{tools, Error, ImportedSource, KernelSource, Result};
use kerntune_work::{checked, is_store_file, read_file, IoContext, Job, Key, Progress, WorkDir};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// First bytes of a diff in git's format.
const GIT_HEADER: &[u8] = b"diff --git ";

impl ImportedSource {
    /// Applies patches, in order, to a copy of the source in the work directory.
    ///
    /// # Errors
    /// [`Error::Patch`] with the first hunk that does not fit.
    pub fn patched(self, work: &WorkDir, patches: &[PathBuf], progress: &dyn Progress) -> Result<Self> {
        if patches.is_empty() {
            return Ok(self);
        }
        let names = check(patches)?;
        let (dir, hash) = patched(work, &self, patches, &names, progress)?;
        self.in_copy(dir, hash, !are_compiled_alone(&names))
    }
}

impl ImportedSource {
    /// Checks whether patches, each a name and a text, apply in order. The source stays as it is.
    ///
    /// # Errors
    /// Files that cannot be read; `patch` missing.
    pub(crate) fn takes(&self, patches: &[(&str, &str)]) -> Result<bool> {
        tools::require(&[("patch", "patch")])?;
        let trial = tempfile::tempdir().at("create a directory in", std::env::temp_dir())?;
        let at = |name: &Path| trial.path().join(name);
        for name in patches.iter().flat_map(|(_, text)| named(text.as_bytes())) {
            let (from, to) = (self.dir().join(&name), at(&name));
            if from.is_file() {
                let parent = to.parent().unwrap_or(trial.path());
                fs::create_dir_all(parent).at("create", parent)?;
                fs::copy(&from, &to).at("copy", &from)?;
            }
        }
        for (name, text) in patches {
            let path = at(Path::new(name));
            fs::write(&path, text).at("write", &path)?;
            match apply(&path, trial.path()) {
                Ok(()) => {}
                Err(Error::Patch { .. }) => return Ok(false),
                Err(other) => return Err(other),
            }
        }
        Ok(true)
    }
}

/// Returns the files that patches name.
///
/// # Errors
/// A patch that cannot be read, or changes nothing.
pub(crate) fn check(patches: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut names = BTreeSet::new();
    for path in patches {
        let text = read_file(path).at("read patch", path)?;
        let of_one = named(&text);
        // `patch` accepts an empty file. A patch that only changes a mode has nothing but git's
        // header.
        let is_of_git = text.windows(GIT_HEADER.len()).any(|window| window == GIT_HEADER);
        if of_one.is_empty() && !is_of_git {
            let first = match text.iter().all(u8::is_ascii_whitespace) {
                true => "it is empty",
                false => "it names no file: it is no difference (`diff -u`, `git diff`)",
            };
            return Err(Error::Patch { patch: path.clone(), first: first.to_owned() });
        }
        names.extend(of_one);
    }
    Ok(names)
}

/// Checks whether only the compiler reads these files. Configuring reads Makefiles and Kconfig
/// files, and runs programs in `scripts`, Kconfig among them.
fn are_compiled_alone(names: &BTreeSet<PathBuf>) -> bool {
    let is_compiled = |name: &PathBuf| {
        let ending = name.extension().and_then(|ending| ending.to_str());
        let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        is_plain
            && !name.starts_with("scripts")
            && ending.is_some_and(|ending| ["c", "h", "S"].contains(&ending))
    };
    !names.is_empty() && names.iter().all(is_compiled)
}

/// Creates the tree of `source` with `patches` applied, in order, as `sources/<hash>` of the work
/// directory.
///
/// `own` are the files that the patches name. All other files are hard links into an unpacked
/// tarball. A user's directory is copied, because editors may write in place.
fn patched(
    work: &WorkDir,
    source: &ImportedSource,
    patches: &[PathBuf],
    own: &BTreeSet<PathBuf>,
    progress: &dyn Progress,
) -> Result<(PathBuf, String)> {
    tools::require(&[("patch", "patch")])?;
    let mut hash = Key::new("source-patched/2", "").field("source", source.hash());
    for path in patches {
        hash = hash.file("patch", path)?;
    }
    let id = hash.id();
    if let Some(dir) = work.find(SOURCES, &id) {
        return Ok((dir, id));
    }
    let mut staged = work.stage(SOURCES, &hash)?;
    if let Some(dir) = staged.already() {
        return Ok((dir, id));
    }
    staged.clear()?;
    progress.begin(&format!("copy {}", source.dir().display()), None);
    let links = !matches!(source.origin(), KernelSource::Directory(_));
    let mut copy = TreeCopier { top: source.dir(), own, links, files: 0, copied: Vec::new(), progress };
    let made = copy.tree(source.dir(), staged.path());
    progress.end();
    made?;
    source.check_unchanged()?;
    if source.is_in(work) {
        check_copied(source.dir(), &copy.copied)?;
        staged.links_to(source.dir());
    }
    for path in patches {
        apply(path, staged.path())?;
    }
    Ok((staged.publish()?, id))
}

/// Checks that files copied from an unpacked source are as they were unpacked. Otherwise the seal
/// of the patched source would cover damaged files.
fn check_copied(source: &Path, names: &[String]) -> Result<()> {
    match names.len() {
        0 => {}
        1..=256 => drop(checked(source, &names.iter().map(String::as_str).collect::<Vec<_>>())?),
        // The file system has no hard links, so everything was copied.
        _ => drop(checked(source, &[])?),
    }
    Ok(())
}

/// Returns the files that a patch changes, from the headers as `patch -p1` reads them. They must
/// not be hard links.
fn named(patch: &[u8]) -> BTreeSet<PathBuf> {
    // Headers of unified and context diffs, of diffs with only an index line, and of git.
    const HEADERS: [&str; 4] = ["--- ", "+++ ", "*** ", "Index: "];
    const RENAMED: [&str; 4] = ["rename from ", "rename to ", "copy from ", "copy to "];
    let text = String::from_utf8_lossy(patch);
    let names = text.lines().filter_map(|line| {
        if let Some(name) = RENAMED.iter().find_map(|header| line.strip_prefix(header)) {
            return Some(PathBuf::from(name.trim_end()));
        }
        let name = HEADERS.iter().find_map(|header| line.strip_prefix(header))?;
        let name = name.split('\t').next()?.trim_end();
        (name != "/dev/null").then_some(PathBuf::from(name.split_once('/')?.1))
    });
    names.collect()
}

struct TreeCopier<'a> {
    top: &'a Path,
    own: &'a BTreeSet<PathBuf>,
    links: bool,
    files: u64,
    /// Files that are copies and not links.
    copied: Vec<String>,
    progress: &'a dyn Progress,
}

impl TreeCopier<'_> {
    fn tree(&mut self, from: &Path, to: &Path) -> Result<()> {
        for entry in fs::read_dir(from).at("list", from)? {
            let entry = entry.at("list", from)?;
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().at("look at", &path)?;
            if from == self.top && is_store_file(&entry.file_name().to_string_lossy()) {
                // The original's seal does not cover the copy.
            } else if kind.is_dir() {
                // A tree's history is not part of the build.
                if from != self.top || entry.file_name() != ".git" {
                    fs::create_dir(&target).at("create", &target)?;
                    self.tree(&path, &target)?;
                }
            } else if kind.is_symlink() {
                let to = fs::read_link(&path).at("read link", &path)?;
                symlink(to, &target).at("create link", &target)?;
            } else if kind.is_file() {
                let name = path.strip_prefix(self.top).unwrap_or(&path);
                if !self.links || self.own.contains(name) || fs::hard_link(&path, &target).is_err() {
                    fs::copy(&path, &target).at("copy", &path)?;
                    self.copied.push(name.to_string_lossy().into_owned());
                }
                self.files += 1;
                if self.files % 256 == 0 {
                    kerntune_work::interrupt::check()?;
                    self.progress.at(self.files);
                }
            }
        }
        Ok(())
    }
}

fn apply(patch: &Path, dir: &Path) -> Result<()> {
    let patch = patch.canonicalize().at("open patch", patch)?;
    let rejected = dir.join(".rejected");
    let mut command = Command::new("patch");
    command
        .args(["--strip=1", "--forward", "--batch", "--fuzz=0", "--no-backup-if-mismatch"])
        .arg("--reject-file")
        .arg(&rejected)
        .arg("--directory")
        .arg(dir)
        .arg("--input")
        .arg(&patch)
        .env("LC_ALL", "C")
        .env_remove("POSIXLY_CORRECT");
    let (end, output) = Job::new(command).output()?;
    if end.success() {
        return Ok(());
    }
    let rejected = fs::read(&rejected).unwrap_or_default();
    Err(Error::Patch { patch, first: first_failure(&output, &String::from_utf8_lossy(&rejected)) })
}

/// Returns the file and the first hunk that did not apply, from the output of `patch` and its
/// reject file.
fn first_failure(output: &str, rejected: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let failed = |line: &&str| {
        ["FAILED", "can't find", "Only garbage", "malformed", "previously applied"]
            .iter()
            .any(|sign| line.contains(sign))
    };
    let Some(at) = lines.iter().position(failed) else {
        return lines.last().unwrap_or(&"patch gave no reason").to_string();
    };
    let file = lines[..at].iter().rev().find(|line| line.starts_with("patching file"));
    let mut shown: Vec<&str> = file.into_iter().copied().collect();
    shown.push(lines[at]);
    let mut hunk = rejected.lines().skip_while(|line| !line.starts_with("@@ "));
    shown.extend(hunk.next());
    shown.extend(
        hunk.take_while(|line| line.starts_with([' ', '+', '-']) && !line.starts_with("--- ")).take(40),
    );
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::NoProgress;
    use std::os::unix::fs::MetadataExt;

    const PATCH: &str =
        "--- a/kernel/fork.c\n+++ b/kernel/fork.c\n@@ -1,2 +1,2 @@\n int first;\n-int x;\n+int y;\n\
                         --- /dev/null\n+++ b/include/new.h\n@@ -0,0 +1 @@\n+int added;\n";

    struct PatchFixture {
        dir: tempfile::TempDir,
        work: WorkDir,
    }

    impl PatchFixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path().join("linux-6.12");
            for sub in ["kernel", "include"] {
                fs::create_dir_all(top.join(sub)).unwrap();
            }
            let head = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n";
            fs::write(top.join("Makefile"), head).unwrap();
            fs::write(top.join("Kconfig"), "").unwrap();
            fs::write(top.join("kernel/fork.c"), "int first;\nint x;\n").unwrap();
            symlink("fork.c", top.join("kernel/link.c")).unwrap();
            fs::write(dir.path().join("good.patch"), PATCH).unwrap();
            let work = WorkDir::open(dir.path().join("work")).unwrap();
            Self { dir, work }
        }

        fn tarball(&self) -> KernelSource {
            let path = self.dir.path().join("l.tar.gz");
            let made = Command::new("tar")
                .args(["-czf", path.to_str().unwrap(), "-C", self.dir.path().to_str().unwrap(), "linux-6.12"])
                .status();
            assert!(made.unwrap().success());
            KernelSource::Tarball(path)
        }

        fn import(&self, source: &KernelSource, patches: &[&str]) -> Result<ImportedSource> {
            let patches: Vec<PathBuf> = patches.iter().map(|name| self.dir.path().join(name)).collect();
            ImportedSource::import(&self.work, source, &NoProgress)?.patched(
                &self.work,
                &patches,
                &NoProgress,
            )
        }
    }

    #[test]
    fn a_patch_that_changes_nothing_is_refused() {
        let bench = PatchFixture::new();
        let source = bench.tarball();
        for (text, said) in [("", "it is empty"), ("\n \n", "it is empty"), ("hello\n", "it names no file")] {
            fs::write(bench.dir.path().join("none.patch"), text).unwrap();
            let error = bench.import(&source, &["good.patch", "none.patch"]).unwrap_err().to_string();
            assert!(error.contains("none.patch") && error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_patch_changes_a_copy_and_shares_the_rest() {
        let bench = PatchFixture::new();
        let source = bench.tarball();
        let plain = bench.import(&source, &[]).unwrap();
        let patched = bench.import(&source, &["good.patch"]).unwrap();
        assert_ne!(plain.hash(), patched.hash());
        let read = |source: &ImportedSource, name: &str| fs::read_to_string(source.dir().join(name)).unwrap();
        assert_eq!(read(&plain, "kernel/fork.c"), "int first;\nint x;\n");
        assert_eq!(read(&patched, "kernel/fork.c"), "int first;\nint y;\n");
        assert_eq!(read(&patched, "kernel/link.c"), "int first;\nint y;\n");
        assert_eq!(read(&patched, "include/new.h"), "int added;\n");
        let inode = |source: &ImportedSource| fs::metadata(source.dir().join("Makefile")).unwrap().ino();
        assert_eq!(inode(&plain), inode(&patched));
        let again = bench.import(&source, &["good.patch"]).unwrap();
        assert_eq!((patched.dir(), patched.hash()), (again.dir(), again.hash()));
        assert_eq!(bench.work.list("sources").unwrap().len(), 2);
    }

    /// The seal covers neither shared nor changed files as they were found.
    #[test]
    fn a_source_that_was_damaged_before_it_was_patched_stays_damaged() {
        let damaged = |name: &str, text: &str| {
            let bench = PatchFixture::new();
            let source = bench.tarball();
            let plain = bench.import(&source, &[]).unwrap();
            let sound = bench.import(&source, &["good.patch"]).unwrap();
            sound.check(&bench.work).unwrap();
            bench.work.remove(SOURCES, sound.hash()).unwrap();
            fs::write(plain.dir().join(name), text).unwrap();
            let patched = bench.import(&source, &["good.patch"]);
            let checked = patched.and_then(|patched| patched.check(&bench.work));
            checked.unwrap_err().to_string()
        };
        for (name, text) in [("Kconfig", "# flipped\n"), ("kernel/fork.c", "int first;\nint x;\nint z;\n")] {
            let message = damaged(name, text);
            assert!(message.contains(name) && message.contains("not the file that was written"), "{message}");
        }
    }

    #[test]
    fn a_directory_of_the_users_is_copied_and_another_state_of_it_is_another_source() {
        let bench = PatchFixture::new();
        let top = bench.dir.path().join("linux-6.12");
        let first = bench.import(&KernelSource::Directory(top.clone()), &["good.patch"]).unwrap();
        let inode = |top: &Path| fs::metadata(top.join("Makefile")).unwrap().ino();
        assert_ne!(inode(first.dir()), inode(&top));
        fs::write(top.join("Kconfig"), "# other\n").unwrap();
        let second = bench.import(&KernelSource::Directory(top), &["good.patch"]).unwrap();
        assert_ne!(first.hash(), second.hash());
    }

    #[test]
    fn the_first_hunk_that_fails_is_shown_and_nothing_is_kept() {
        let bench = PatchFixture::new();
        let source = bench.tarball();
        fs::write(bench.dir.path().join("bad.patch"), PATCH.replace("-int x;", "-int z;")).unwrap();
        let error = bench.import(&source, &["bad.patch"]).unwrap_err().to_string();
        for word in ["bad.patch", "kernel/fork.c", "Hunk #1 FAILED at 1", "-int z;", "+int y;"] {
            assert!(error.contains(word), "{word:?} is not in:\n{error}");
        }
        assert_eq!(bench.work.list("sources").unwrap().len(), 1);
        // In order: the same patch does not apply twice.
        assert!(bench.import(&source, &["good.patch", "good.patch"]).is_err());
        fs::write(bench.dir.path().join("none.patch"), "hello\n").unwrap();
        assert!(bench.import(&source, &["none.patch"]).is_err());
    }

    #[test]
    fn what_configuring_does_not_read_leaves_configurations_as_they_were() {
        let bench = PatchFixture::new();
        let source = bench.tarball();
        let plain = bench.import(&source, &[]).unwrap();
        let configured_as = |patches: &[&str]| {
            let patched = bench.import(&source, patches).unwrap();
            assert_ne!(patched.hash(), plain.hash());
            patched.configured_as() == plain.hash()
        };
        assert!(configured_as(&["good.patch"]));
        let option = "--- a/Kconfig\n+++ b/Kconfig\n@@ -0,0 +1 @@\n+config ADDED\n";
        fs::write(bench.dir.path().join("option.patch"), option).unwrap();
        assert!(!configured_as(&["option.patch"]));
        assert!(!configured_as(&["good.patch", "option.patch"]));
    }

    #[test]
    fn the_files_of_a_patch_are_known_whatever_its_form() {
        let is_alone = |text: &str| are_compiled_alone(&named(text.as_bytes()));
        assert!(is_alone("--- a/kernel/fork.c\n+++ b/kernel/fork.c\n"));
        assert!(is_alone("diff --git a/mm/a.c b/mm/b.c\nrename from mm/a.c\nrename to mm/b.c\n"));
        for text in [
            "",
            "--- a/arch/x86/Makefile\n+++ b/arch/x86/Makefile\n",
            "--- a/scripts/kconfig/conf.c\n+++ b/scripts/kconfig/conf.c\n",
            "--- a/mm/a.c\n+++ b/mm/a.c\n--- a/kernel/configs/tiny.config\n+++ b/kernel/configs/tiny.config\n",
            "*** a/init/Kconfig\t2024-01-01\n--- b/init/Kconfig\t2024-01-01\n",
            "Index: a/init/Kconfig\n",
            "diff --git a/mm/a.c b/Kconfig\nrename from mm/a.c\nrename to Kconfig\n",
        ] {
            assert!(!is_alone(text), "{text}");
        }
    }

    /// They are not in the copy, and who reads them is unknown.
    #[test]
    fn names_outside_of_the_tree_are_no_names() {
        let names = named(b"--- a/../x.c\n+++ b//etc/x.c\n--- a/net/ipv4/tcp.c\t2024-01-01\n+++ /dev/null\n");
        let expected = ["../x.c", "/etc/x.c", "net/ipv4/tcp.c"].map(PathBuf::from);
        assert_eq!(names, BTreeSet::from(expected.clone()));
        assert_eq!(expected.map(|name| are_compiled_alone(&BTreeSet::from([name]))), [false, false, true]);
    }
}
