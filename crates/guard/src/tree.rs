//! A git tree of the user's, and a checkout of ours: nothing of the tree changes.
//!
//! Kernels of commits are built in one directory, whose objects are borrowed from the same tree. Only files that differ between
//! two commits are written when one follows the other, so that make compiles what depends on them and nothing else.

use crate::{Error, Result};
use kerntune_work::{write_atomic, ContentHash, IoContext, Job, Lock, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
        // What a partial clone lacks is in the checkout. Unlike `show`, `cat-file` converts nothing.
        let place = self.place();
        let tree = if place.join(".git").is_dir() { &place } else { &self.origin };
        git(tree, "cat-file", ["blob".to_owned(), format!("{commit}:{path}")])
    }

    /// Asks the tree's remotes for what is new.
    ///
    /// # Errors
    /// What git says.
    pub fn fetch(&self) -> Result<()> {
        let programs = kerntune_work::programs_of_fetch(&self.origin)?;
        if !programs.is_empty() {
            return Err(Error::Git {
                what: "fetch".into(),
                tree: self.origin.clone(),
                said: format!(
                    "its configuration names programs that a fetch runs ({}); look at them, fetch by hand, and leave out --fetch",
                    programs.join(", ")
                ),
            });
        }
        git(&self.origin, "fetch", ["--quiet", "--no-recurse-submodules"]).map(drop)
    }

    /// Puts a commit's files into the directory in which kernels are built. Nobody else does until the lock is dropped.
    ///
    /// # Errors
    /// What git says; an interrupt.
    pub fn check_out(&self, commit: &str, progress: &dyn Progress) -> Result<(PathBuf, Lock)> {
        fs::create_dir_all(&self.room).at("create", &self.room)?;
        let waiting = || progress.note("another run builds commits of this tree; waiting for it");
        let lock = Lock::take(&self.room.join(".lock"), &waiting)?;
        let place = self.place();
        let objects = git(&self.origin, "rev-parse", ["--path-format=absolute", "--git-path", "objects"])?;
        self.prepare(&place, objects.trim_end_matches('\n'))?;
        // Of a checkout that was killed.
        let _ = fs::remove_file(place.join(".git/index.lock"));
        self.bring(&place, commit, progress)?;
        progress.begin(&format!("check out {}", commit.get(..12).unwrap_or(commit)), None);
        let done = git_of_ours(&place, "checkout", ["--quiet", "--force", "--detach", commit]);
        progress.end();
        done?;
        git_of_ours(&place, "clean", ["-ffdxq"])?;
        Ok((place, lock))
    }

    /// Where commits are checked out.
    fn place(&self) -> PathBuf {
        self.room.join("tree")
    }

    /// A repository of the same kind as the user's, which borrows its objects.
    fn prepare(&self, place: &Path, objects: &str) -> Result<()> {
        let format = |tree: &Path| -> Result<String> {
            Ok(git(tree, "rev-parse", ["--show-object-format"])?.trim().to_owned())
        };
        let wanted = format(&self.origin)?;
        if !place.join(".git").is_dir() || format(place).is_ok_and(|found| found != wanted) {
            let partial = self.room.join("tree.partial");
            for old in [&partial, &place.to_owned()] {
                if old.is_dir() {
                    fs::remove_dir_all(old).at("remove", old)?;
                }
            }
            fs::create_dir_all(&partial).at("create", &partial)?;
            let format = format!("--object-format={wanted}");
            git_of_ours(&partial, "init", ["--quiet", "--template=", format.as_str()])?;
            let info = partial.join(".git/objects/info");
            fs::create_dir_all(&info).at("create", &info)?;
            fs::rename(&partial, place).at("rename", &partial)?;
        }
        if objects.contains('\n') {
            let said = "there is a line end in its name; rename it".into();
            return Err(Error::Git { what: "borrow objects".into(), tree: self.origin.clone(), said });
        }
        Ok(write_atomic(&place.join(".git/objects/info/alternates"), format!("{objects}\n").as_bytes())?)
    }

    /// Gets what a partial clone lacks of a commit from its remote, into the checkout: the user's tree stays as it is.
    fn bring(&self, place: &Path, commit: &str, progress: &dyn Progress) -> Result<()> {
        let Some(remote) = self.promisor()? else { return Ok(()) };
        // A directory that comes shows what else is missing.
        for _ in 0..MOST_ROUNDS {
            let listed = git(
                place,
                "rev-list",
                ["--objects", "--no-walk", "--no-object-names", "--missing=print", commit, "--"],
            )?;
            let missing: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix('?')).collect();
            if missing.is_empty() {
                return Ok(());
            }
            let file = self.room.join("missing");
            write_atomic(&file, (missing.join("\n") + "\n").as_bytes())?;
            progress.begin(&format!("fetch {} objects from {remote}", missing.len()), None);
            let mut command = kerntune_work::git(place)?;
            // Everything is wanted: nothing that is there says what else is.
            command.args(["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"]);
            command.args(["--no-write-fetch-head", "--stdin", "--end-of-options", &remote]);
            let done = said(command, "fetch", place, Some(Stdio::from(File::open(&file).at("open", &file)?)));
            progress.end();
            done.map_err(|error| self.incomplete(&error.to_string()))?;
        }
        Err(self.incomplete("its remote does not give all that is missing"))
    }

    /// The address of the remote that has what a partial clone lacks; none of a whole one.
    fn promisor(&self) -> Result<Option<String>> {
        // Status 1 and nothing else: there is none.
        let named = git(&self.origin, "config", ["--get-regexp", r"^remote\..*\.promisor$", "^true$"]);
        let named = named.unwrap_or_default();
        let name = named.lines().next().and_then(|line| line.split(' ').next());
        let name = name.and_then(|key| key.strip_prefix("remote.")?.strip_suffix(".promisor"));
        let Some(name) = name else { return Ok(None) };
        let address = git(&self.origin, "remote", ["get-url", "--", name])?;
        let address = address.lines().next().unwrap_or_default();
        // A path begins in the user's tree.
        let beside = self.origin.join(address);
        let is_path = !address.contains(':') && beside.exists();
        Ok(Some(if is_path { beside.display().to_string() } else { address.to_owned() }))
    }

    fn incomplete(&self, said: &str) -> Error {
        Error::Git {
            what: "fetch".into(),
            tree: self.origin.clone(),
            said: format!(
                "it is a partial clone, and what it lacks of the commit cannot be had ({said}); clone it without --filter"
            ),
        }
    }
}

/// Directories lie in each other no deeper in a kernel.
const MOST_ROUNDS: usize = 64;

/// What git prints in the user's tree.
fn git<S: AsRef<OsStr>>(tree: &Path, what: &str, words: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = kerntune_work::git(tree)?;
    command.arg(what).args(words);
    said(command, what, tree, None)
}

/// What git prints in our checkout. What a commit's attributes name has no program there.
fn git_of_ours<S: AsRef<OsStr>>(
    place: &Path,
    what: &str,
    words: impl IntoIterator<Item = S>,
) -> Result<String> {
    let mut command = kerntune_work::git_of_ours(place)?;
    command.arg(what).args(words);
    said(command, what, place, None)
}

fn said(command: Command, what: &str, tree: &Path, input: Option<Stdio>) -> Result<String> {
    let mut said = String::new();
    let mut job = Job::new(command);
    if let Some(input) = input {
        job = job.stdin(input);
    }
    let end = job.run(
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

    fn plain_git(dir: &Path, words: &[&str]) {
        let out = Command::new("git").arg("-C").arg(dir).args(words).output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    #[test]
    fn a_partial_clone_gets_what_it_lacks_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (up, work) = (dir.path().join("up"), WorkDir::open(dir.path().join("work")).unwrap());
        fs::create_dir_all(up.join("kernel")).unwrap();
        fs::write(up.join("kernel/fork.c"), "int x;\n").unwrap();
        let ids = made(&up, &["one", "two"]);
        plain_git(&up, &["config", "uploadpack.allowFilter", "true"]);
        for (filter, name) in [("blob:none", "blobs"), ("tree:0", "trees")] {
            let from = format!("file://{}", up.display());
            let filter = format!("--filter={filter}");
            plain_git(dir.path(), &["clone", "--quiet", "--no-checkout", &filter, &from, name]);
            let clone = dir.path().join(name);
            let packs = |at: &Path| fs::read_dir(at.join(".git/objects/pack")).unwrap().count();
            let before = packs(&clone);
            let tree = Tree::open(&work, &clone).unwrap();
            for (id, text) in ids.iter().zip(["one", "two"]) {
                let (place, _lock) = tree.check_out(id, &NoProgress).unwrap();
                assert_eq!(fs::read_to_string(place.join("file")).unwrap(), text);
                assert_eq!(fs::read_to_string(place.join("kernel/fork.c")).unwrap(), "int x;\n");
                assert_eq!(tree.file(id, "file").unwrap().trim(), text);
            }
            assert_eq!(packs(&clone), before, "the clone itself is left alone");
        }
        // Without its remote it is refused by its name.
        fs::rename(&up, dir.path().join("gone")).unwrap();
        let elsewhere = WorkDir::open(dir.path().join("elsewhere")).unwrap();
        let tree = Tree::open(&elsewhere, &dir.path().join("blobs")).unwrap();
        let error = tree.check_out(&ids[0], &NoProgress).unwrap_err().to_string();
        assert!(error.contains("partial clone") && error.contains("without --filter"), "{error}");
    }

    #[test]
    fn a_repository_of_long_hashes_is_checked_out() {
        let dir = tempfile::tempdir().unwrap();
        let (work, origin) = (WorkDir::open(dir.path().join("work")).unwrap(), dir.path().join("linux"));
        let short = made(&origin, &["short"]);
        let tree = Tree::open(&work, &origin).unwrap();
        tree.check_out(&short[0], &NoProgress).unwrap();
        // Another one at the same place.
        fs::remove_dir_all(&origin).unwrap();
        fs::create_dir(&origin).unwrap();
        git(&origin, "init", ["--quiet", "-b", "main", "--object-format=sha256"]).unwrap();
        let id = commit(&origin, &[("file", "long")], "long");
        let (place, _lock) = tree.check_out(&id, &NoProgress).unwrap();
        assert_eq!((id.len(), fs::read_to_string(place.join("file")).unwrap().as_str()), (64, "long"));
    }

    /// What a tree's author may write into it and its configuration.
    #[test]
    fn a_hostile_tree_runs_nothing_and_stays_in_the_room() {
        use std::os::unix::fs::{symlink, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let (work, origin) = (WorkDir::open(dir.path().join("work")).unwrap(), dir.path().join("linux"));
        let (ran, outside) = (dir.path().join("ran"), dir.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        let first = made(&origin, &["one"]).remove(0);
        // A commit through a link that another one turns into a directory, attributes, a submodule, odd names.
        symlink(&outside, origin.join("way")).unwrap();
        let touch = format!("touch {}; cat", ran.display());
        fs::write(origin.join(".gitattributes"), "* filter=x diff=x ident export-subst\n").unwrap();
        fs::write(
            origin.join(".gitmodules"),
            format!(
                "[submodule \"s\"]\n\tpath = s\n\turl = ext::sh -c touch% {}\n\tupdate = !touch {}\n",
                ran.display(),
                ran.display()
            ),
        )
        .unwrap();
        fs::create_dir(origin.join("s")).unwrap();
        git(&origin, "update-index", ["--add", "--cacheinfo", &format!("160000,{first},s")]).unwrap();
        let odd = ["--help", "a\tb", "\u{1b}[2J", "$(touch ran)", "line\nend"];
        for name in odd {
            fs::write(origin.join(name), "x").unwrap();
        }
        let message = format!("\u{1b}]0;owned\u{7} $(touch {}) --help", ran.display());
        let with_link = commit(&origin, &[], &message);
        fs::remove_file(origin.join("way")).unwrap();
        fs::create_dir(origin.join("way")).unwrap();
        let through = commit(&origin, &[("way/in", "x")], "through");
        let mut config = fs::read_to_string(origin.join(".git/config")).unwrap();
        config.push_str(&format!(
            "[core]\n\tfsmonitor = {touch}\n\tsshCommand = {touch}\n\talternateRefsCommand = {touch}\n\
             [filter \"x\"]\n\tclean = {touch}\n\tsmudge = {touch}\n\tprocess = {touch}\n\trequired = true\n\
             [diff \"x\"]\n\ttextconv = {touch}\n[submodule]\n\trecurse = true\n[log]\n\tshowSignature = true\n\
             [gpg]\n\tprogram = {touch}\n\
             [remote \"o\"]\n\turl = {}\n\tuploadpack = {touch}\n\tpromisor = true\n",
            outside.display()
        ));
        fs::write(origin.join(".git/config"), config).unwrap();
        for hook in ["post-checkout", "post-index-change", "reference-transaction"] {
            let path = origin.join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let tree = Tree::open(&work, &origin).unwrap();
        for id in [&with_link, &through, &with_link, &first, &through] {
            let (place, _lock) = tree.check_out(id, &NoProgress).unwrap();
            assert!(place.join("way").symlink_metadata().is_ok() || *id == first);
            assert!(place.join("s").read_dir().map_or(0, Iterator::count) == 0, "no submodule is fetched");
        }
        let told = tree.commit(&with_link).unwrap();
        assert!(told.subject.contains("touch"), "{told:?}");
        assert_eq!(tree.file(&through, "way/in").unwrap().trim(), "x");
        assert_eq!(tree.between(&first, &through).unwrap(), [with_link, through.clone()]);
        assert_eq!(tree.suspects(&through, &[first]).unwrap().len(), 2);
        let refused = tree.fetch().unwrap_err().to_string();
        assert!(refused.contains("core.sshcommand") && refused.contains("--fetch"), "{refused}");
        assert!(!ran.exists() && fs::read_dir(&outside).unwrap().count() == 0);
    }
}
