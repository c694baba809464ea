//! Patches of the user's: applied to a copy of the source tree, never to the source.

use crate::source::SOURCES;
use crate::{tools, Error, ImportedSource, Result, Source};
use kerntune_work::{is_of_the_store, IoContext, Job, Key, Progress, WorkDir};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

impl ImportedSource {
    /// The same with patches applied, in order, to a copy in the work directory.
    ///
    /// # Errors
    /// [`Error::Patch`] with the first hunk that does not fit.
    pub fn patched(self, work: &WorkDir, patches: &[PathBuf], progress: &dyn Progress) -> Result<Self> {
        if patches.is_empty() {
            return Ok(self);
        }
        let (dir, hash) = patched(work, &self, patches, progress)?;
        self.in_copy(dir, hash)
    }
}

/// Makes the tree of `source` with `patches` applied, in order: once, as `sources/<hash>` of the
/// work directory.
///
/// Files that no patch names share their storage with those of an unpacked tarball; a directory of
/// the user's is copied, because editors write in place.
fn patched(
    work: &WorkDir,
    source: &ImportedSource,
    patches: &[PathBuf],
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
    let staged = work.stage(SOURCES, &hash)?;
    if let Some(dir) = staged.already() {
        return Ok((dir, id));
    }
    staged.clear()?;
    let mut own = BTreeSet::new();
    for path in patches {
        own.extend(touched(&fs::read(path).at("read patch", path)?));
    }
    progress.begin(&format!("copy {}", source.dir().display()), None);
    let links = !matches!(source.origin(), Source::Directory(_));
    let mut copy = Copy { top: source.dir(), own: &own, links, files: 0, progress };
    let copied = copy.tree(source.dir(), staged.path());
    progress.end();
    copied?;
    source.check_unchanged()?;
    for path in patches {
        apply(path, staged.path())?;
    }
    Ok((staged.publish()?, id))
}

/// The files that a patch changes, as far as its headers tell: these must not be shared.
fn touched(patch: &[u8]) -> BTreeSet<PathBuf> {
    let text = String::from_utf8_lossy(patch);
    let named = text.lines().filter_map(|line| {
        let name = line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ "))?;
        let name = name.split('\t').next()?.trim_end();
        // As `patch -p1`.
        Some(PathBuf::from(name.split_once('/')?.1))
    });
    named.filter(|path| path.components().all(|part| matches!(part, Component::Normal(_)))).collect()
}

struct Copy<'a> {
    top: &'a Path,
    own: &'a BTreeSet<PathBuf>,
    links: bool,
    files: u64,
    progress: &'a dyn Progress,
}

impl Copy<'_> {
    fn tree(&mut self, from: &Path, to: &Path) -> Result<()> {
        for entry in fs::read_dir(from).at("list", from)? {
            let entry = entry.at("list", from)?;
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().at("look at", &path)?;
            if from == self.top && is_of_the_store(&entry.file_name().to_string_lossy()) {
                // What vouches for the original does not vouch for the copy.
            } else if kind.is_dir() {
                // The history of a tree is not part of what is built.
                if from != self.top || entry.file_name() != ".git" {
                    fs::create_dir(&target).at("create", &target)?;
                    self.tree(&path, &target)?;
                }
            } else if kind.is_symlink() {
                let to = fs::read_link(&path).at("read link", &path)?;
                symlink(to, &target).at("create link", &target)?;
            } else if kind.is_file() {
                let own = path.strip_prefix(self.top).is_ok_and(|name| self.own.contains(name));
                if !self.links || own || fs::hard_link(&path, &target).is_err() {
                    fs::copy(&path, &target).at("copy", &path)?;
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

/// The file and the first hunk that did not apply, of what `patch` says and rejects.
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

    struct Bench {
        dir: tempfile::TempDir,
        work: WorkDir,
    }

    impl Bench {
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

        fn tarball(&self) -> Source {
            let path = self.dir.path().join("l.tar.gz");
            let made = Command::new("tar")
                .args(["-czf", path.to_str().unwrap(), "-C", self.dir.path().to_str().unwrap(), "linux-6.12"])
                .status();
            assert!(made.unwrap().success());
            Source::Tarball(path)
        }

        fn import(&self, source: &Source, patches: &[&str]) -> Result<ImportedSource> {
            let patches: Vec<PathBuf> = patches.iter().map(|name| self.dir.path().join(name)).collect();
            ImportedSource::import(&self.work, source, &NoProgress)?.patched(
                &self.work,
                &patches,
                &NoProgress,
            )
        }
    }

    #[test]
    fn a_patch_changes_a_copy_and_shares_the_rest() {
        let bench = Bench::new();
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

    #[test]
    fn a_directory_of_the_users_is_copied_and_another_state_of_it_is_another_source() {
        let bench = Bench::new();
        let top = bench.dir.path().join("linux-6.12");
        let first = bench.import(&Source::Directory(top.clone()), &["good.patch"]).unwrap();
        let inode = |top: &Path| fs::metadata(top.join("Makefile")).unwrap().ino();
        assert_ne!(inode(first.dir()), inode(&top));
        fs::write(top.join("Kconfig"), "# other\n").unwrap();
        let second = bench.import(&Source::Directory(top), &["good.patch"]).unwrap();
        assert_ne!(first.hash(), second.hash());
    }

    #[test]
    fn the_first_hunk_that_fails_is_shown_and_nothing_is_kept() {
        let bench = Bench::new();
        let source = bench.tarball();
        fs::write(bench.dir.path().join("bad.patch"), PATCH.replace("-int x;", "-int z;")).unwrap();
        let error = bench.import(&source, &["bad.patch"]).unwrap_err().to_string();
        for word in ["bad.patch", "kernel/fork.c", "Hunk #1 FAILED at 1", "-int z;", "+int y;"] {
            assert!(error.contains(word), "{word:?} is not in:\n{error}");
        }
        assert_eq!(bench.work.list("sources").unwrap().len(), 1);
        // In order: the same patch twice does not apply.
        assert!(bench.import(&source, &["good.patch", "good.patch"]).is_err());
        fs::write(bench.dir.path().join("none.patch"), "hello\n").unwrap();
        assert!(bench.import(&source, &["none.patch"]).is_err());
    }

    #[test]
    fn names_outside_of_the_tree_are_no_names() {
        let names =
            touched(b"--- a/../x\n+++ b//etc/passwd\n--- a/net/ipv4/tcp.c\t2024-01-01\n+++ /dev/null\n");
        let expected = ["dev/null", "net/ipv4/tcp.c"].map(PathBuf::from);
        assert!(names.is_subset(&BTreeSet::from(expected)), "{names:?}");
        assert!(names.contains(Path::new("net/ipv4/tcp.c")));
    }
}
