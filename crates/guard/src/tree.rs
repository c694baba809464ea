//! A git tree of the user's, and a checkout of ours: nothing of the tree changes.
//!
//! Kernels of commits are built in one directory, whose objects are borrowed from the same tree. Only files that differ between
//! two commits are written when one follows the other, so that make compiles what depends on them and nothing else.

use crate::{Error, Result};
use kerntune_work::{write_atomic, ContentHash, IoContext, Job, Lock, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where checkouts are in the work directory: no results, but what they were made in.
const ROOM: &str = ".guard";

/// A git tree and the room in which its commits are built.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The user's tree.
    origin: PathBuf,
    room: PathBuf,
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its full name.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// When it was committed, as git says it (strict ISO 8601).
    pub date: String,
}

impl Commit {
    /// As much of its name as tables show.
    pub fn short(&self) -> &str {
        self.id.get(..12).unwrap_or(&self.id)
    }
}

impl Tree {
    /// The tree at `origin`.
    ///
    /// # Errors
    /// A directory that is none of git's.
    pub fn open(work: &WorkDir, origin: &Path) -> Result<Self> {
        let origin = origin.canonicalize().at("open git tree", origin)?;
        let git = git(&origin, "rev-parse", ["--path-format=absolute", "--git-common-dir"])?;
        let name = ContentHash::new("guard-tree/1").field("git", git.trim()).finish();
        Ok(Self { origin, room: work.room(ROOM)?.join(name) })
    }

    /// The user's tree.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// Where what is known of its commits is kept.
    pub fn room(&self) -> &Path {
        &self.room
    }

    /// The build directory that builds of this kind take turns with.
    pub fn pool(&self, kind: &str) -> PathBuf {
        self.room.join("objects").join(kind)
    }

    /// A commit by any name that git knows.
    ///
    /// # Errors
    /// A name of no commit.
    pub fn commit(&self, name: &str) -> Result<Commit> {
        let wanted = format!("{name}^{{commit}}");
        let id = git(&self.origin, "rev-parse", ["--verify", "--quiet", "--end-of-options", wanted.as_str()])
            .map_err(|_| Error::Git {
                what: format!("knows no commit {name}"),
                tree: self.origin.clone(),
                said: "name a commit, a tag or a branch of it".into(),
            })?;
        let id = id.trim().to_owned();
        let said =
            git(&self.origin, "log", ["-1", "--no-show-signature", "--format=%cI %s", id.as_str(), "--"])?;
        let (date, subject) = said.trim_end().split_once(' ').unwrap_or((said.trim_end(), ""));
        Ok(Commit { id, date: date.to_owned(), subject: subject.to_owned() })
    }

    /// Whether the one is the other, or leads to it.
    ///
    /// # Errors
    /// Git cannot say.
    pub fn is_before(&self, one: &str, other: &str) -> Result<bool> {
        Ok(git(&self.origin, "merge-base", [one, other])?.trim() == one)
    }

    /// The commits after `from` up to `to`, first parents alone, oldest first.
    ///
    /// # Errors
    /// Git cannot say.
    pub fn between(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let range = format!("{from}..{to}");
        let listed = git(&self.origin, "rev-list", ["--first-parent", "--reverse", range.as_str(), "--"])?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// What may be the first bad one: all that leads to `bad` and to none of `good`, what halves them best first, `bad` itself
    /// last.
    ///
    /// # Errors
    /// Git cannot say.
    pub fn suspects(&self, bad: &str, good: &[String]) -> Result<Vec<String>> {
        let mut words = vec!["--bisect-all".to_owned(), bad.to_owned()];
        words.extend(good.iter().map(|commit| format!("^{commit}")));
        words.push("--".to_owned());
        let listed = git(&self.origin, "rev-list", &words)?;
        let mut all: Vec<String> =
            listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        all.retain(|commit| commit != bad);
        all.push(bad.to_owned());
        Ok(all)
    }

    /// The first parent of a commit; none of the first one.
    pub fn parent(&self, commit: &str) -> Option<String> {
        let wanted = format!("{commit}^1");
        let id = git(&self.origin, "rev-parse", ["--verify", "--quiet", "--end-of-options", wanted.as_str()])
            .ok()?;
        Some(id.trim().to_owned())
    }

    /// A file of a commit.
    ///
    /// # Errors
    /// It is not there.
    pub fn file(&self, commit: &str, path: &str) -> Result<String> {
        git(&self.origin, "show", [format!("{commit}:{path}")])
    }

    /// Asks the tree's remotes for what is new.
    ///
    /// # Errors
    /// What git says.
    pub fn fetch(&self) -> Result<()> {
        git(&self.origin, "fetch", ["--quiet"]).map(drop)
    }

    /// Puts a commit's files into the directory in which kernels are built. Nobody else does until the lock is dropped.
    ///
    /// # Errors
    /// What git says; an interrupt.
    pub fn check_out(&self, commit: &str, progress: &dyn Progress) -> Result<(PathBuf, Lock)> {
        fs::create_dir_all(&self.room).at("create", &self.room)?;
        let waiting = || progress.note("another run builds commits of this tree; waiting for it");
        let lock = Lock::take(&self.room.join(".lock"), &waiting)?;
        let place = self.room.join("tree");
        if !place.join(".git").is_dir() {
            let partial = self.room.join("tree.partial");
            if partial.is_dir() {
                fs::remove_dir_all(&partial).at("remove", &partial)?;
            }
            fs::create_dir_all(&partial).at("create", &partial)?;
            git(&partial, "init", ["--quiet"])?;
            fs::rename(&partial, &place).at("rename", &partial)?;
        }
        let objects = git(&self.origin, "rev-parse", ["--path-format=absolute", "--git-path", "objects"])?;
        write_atomic(
            &place.join(".git/objects/info/alternates"),
            format!("{}\n", objects.trim()).as_bytes(),
        )?;
        // Of a checkout that was killed.
        let _ = fs::remove_file(place.join(".git/index.lock"));
        progress.begin(&format!("check out {}", commit.get(..12).unwrap_or(commit)), None);
        let done = git(&place, "checkout", ["--quiet", "--force", "--detach", commit]);
        progress.end();
        done?;
        git(&place, "clean", ["-ffdxq"])?;
        Ok((place, lock))
    }
}

/// What git prints. No hook, configuration or question of the user's is in the way.
fn git<S: AsRef<OsStr>>(tree: &Path, what: &str, words: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(tree).args([
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "gc.auto=0",
        "-c",
        "core.autocrlf=false",
    ]);
    command.arg(what).args(words).env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    ] {
        command.env_remove(name);
    }
    let mut said = String::new();
    let end = Job::new(command).run(
        |line| {
            said.push_str(line);
            said.push('\n');
            true
        },
        || true,
    )?;
    match end.success() {
        true => Ok(said),
        false => {
            Err(Error::Git { what: what.to_owned(), tree: tree.to_owned(), said: said.trim().to_owned() })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kerntune_work::NoProgress;

    /// A tree with a commit for each text of its one file.
    pub(crate) fn made(dir: &Path, texts: &[&str]) -> Vec<String> {
        fs::create_dir_all(dir).unwrap();
        git(dir, "init", ["--quiet", "-b", "main"]).unwrap();
        texts.iter().map(|text| commit(dir, &[("file", text)], text)).collect()
    }

    /// Writes files and commits them.
    pub(crate) fn commit(dir: &Path, files: &[(&str, &str)], subject: &str) -> String {
        for (name, text) in files {
            fs::write(dir.join(name), text).unwrap();
        }
        git(dir, "add", ["--all"]).unwrap();
        let identity = ["-c", "user.name=k", "-c", "user.email=k@example.org"];
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).args(identity).args(["commit", "--quiet", "--allow-empty", "-m", subject]);
        assert!(command.status().unwrap().success());
        git(dir, "rev-parse", ["HEAD"]).unwrap().trim().to_owned()
    }

    #[test]
    fn commits_are_named_listed_and_checked_out_beside_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let (work, origin) = (WorkDir::open(dir.path().join("work")).unwrap(), dir.path().join("linux"));
        let ids = made(&origin, &["one", "two", "three", "four"]);
        let tree = Tree::open(&work, &origin).unwrap();
        let head = tree.commit("main").unwrap();
        assert_eq!((&head.id, head.subject.as_str(), head.short().len()), (&ids[3], "four", 12));
        assert!(tree.commit("--help").is_err() && tree.commit("nothing").is_err());
        assert_eq!(tree.between(&ids[0], "main").unwrap(), ids[1..]);
        assert!(tree.is_before(&ids[0], &ids[3]).unwrap() && !tree.is_before(&ids[3], &ids[0]).unwrap());
        assert_eq!((tree.parent(&ids[1]), tree.parent(&ids[0])), (Some(ids[0].clone()), None));
        assert_eq!(tree.file(&ids[1], "file").unwrap().trim(), "two");
        let suspects = tree.suspects(&ids[3], &ids[..1]).unwrap();
        assert_eq!((suspects.len(), suspects.last()), (3, Some(&ids[3])), "{suspects:?}");
        for at in [1, 3, 0] {
            let (place, _lock) = tree.check_out(&ids[at], &NoProgress).unwrap();
            assert_eq!(fs::read_to_string(place.join("file")).unwrap(), ["one", "two", "three", "four"][at]);
            fs::write(place.join("left over"), "").unwrap();
        }
        let (place, _lock) = tree.check_out(&ids[2], &NoProgress).unwrap();
        assert!(!place.join("left over").exists());
        assert_eq!(fs::read_dir(&origin).unwrap().count(), 2, "the tree itself is left alone");
        assert!(Tree::open(&work, dir.path()).is_err());
    }
}
