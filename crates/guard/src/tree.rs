//! The user's git tree, and a checkout of ours. Nothing in the user's tree changes.
//!
//! Commits are built in one checkout, which borrows the objects of the user's tree. Switching to
//! another commit writes only the files that differ, so make recompiles only what depends on them.

use crate::{Error, Result};
use kerntune_work::{write_atomic, ContentHash, IoContext, Job, Lock, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directory of checkouts in the work directory.
const KIND: &str = ".guard";

/// A git tree and the directory in which its commits are built.
#[derive(Debug, Clone)]
pub struct GitTree {
    /// Path of the user's tree.
    origin: PathBuf,
    directory: PathBuf,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Full hash.
    pub id: String,
    /// First line of the message.
    pub subject: String,
    /// Commit date, in git's strict ISO 8601 format.
    pub date: String,
}

impl Commit {
    /// Returns the first 12 digits of the hash.
    pub fn short(&self) -> &str {
        self.id.get(..12).unwrap_or(&self.id)
    }
}

impl GitTree {
    /// Opens the tree at `origin`.
    ///
    /// # Errors
    /// A directory that is not a git tree.
    pub fn open(work: &WorkDir, origin: &Path) -> Result<Self> {
        let origin = origin.canonicalize().at("open git tree", origin)?;
        let git = git(&origin, "rev-parse", ["--path-format=absolute", "--git-common-dir"])?;
        let name = ContentHash::new("guard-tree/1").field("git", git.trim()).finish();
        Ok(Self { origin, directory: work.kind_dir(KIND)?.join(name) })
    }

    /// Returns the path of the user's tree.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// Returns the directory of the checkout and of the ledgers.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the pool of build directories for builds of one kind.
    pub fn pool(&self, kind: &str) -> PathBuf {
        self.directory.join("objects").join(kind)
    }

    /// Resolves any revision that git knows.
    ///
    /// # Errors
    /// An unknown revision.
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

    /// Checks whether `one` is `other` or an ancestor of it.
    ///
    /// # Errors
    /// Errors of git.
    pub fn is_before(&self, one: &str, other: &str) -> Result<bool> {
        Ok(git(&self.origin, "merge-base", [one, other])?.trim() == one)
    }

    /// Returns the commits after `from` up to `to`, oldest first, following first parents.
    ///
    /// # Errors
    /// Errors of git.
    pub fn between(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let range = format!("{from}..{to}");
        let listed = git(&self.origin, "rev-list", ["--first-parent", "--reverse", range.as_str(), "--"])?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Returns the candidates for the first bad commit: ancestors of `bad` that are no ancestors of
    /// `good`, best bisection point first, `bad` itself last.
    ///
    /// # Errors
    /// Errors of git.
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

    /// Returns the first parent of a commit; `None` for a root commit.
    pub fn parent(&self, commit: &str) -> Option<String> {
        let wanted = format!("{commit}^1");
        let id = git(&self.origin, "rev-parse", ["--verify", "--quiet", "--end-of-options", wanted.as_str()])
            .ok()?;
        Some(id.trim().to_owned())
    }

    /// Reads a file of a commit.
    ///
    /// # Errors
    /// A file that does not exist.
    pub fn file(&self, commit: &str, path: &str) -> Result<String> {
        // The checkout has what a partial clone lacks. Unlike `show`, `cat-file` converts nothing.
        let checkout = self.checkout();
        let tree = if checkout.join(".git").is_dir() { &checkout } else { &self.origin };
        git(tree, "cat-file", ["blob".to_owned(), format!("{commit}:{path}")])
    }

    /// Fetches from the tree's remotes.
    ///
    /// # Errors
    /// Errors of git.
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

    /// Checks out a commit for building. The lock keeps other processes out until it is dropped.
    ///
    /// # Errors
    /// Errors of git; an interrupt.
    pub fn check_out(&self, commit: &str, progress: &dyn Progress) -> Result<(PathBuf, Lock)> {
        fs::create_dir_all(&self.directory).at("create", &self.directory)?;
        let waiting = || progress.note("another run builds commits of this tree; waiting for it");
        let lock = Lock::take(&self.directory.join(".lock"), &waiting)?;
        let checkout = self.checkout();
        let objects = git(&self.origin, "rev-parse", ["--path-format=absolute", "--git-path", "objects"])?;
        self.prepare(&checkout, objects.trim_end_matches('\n'))?;
        // Left by a checkout that was killed.
        let _ = fs::remove_file(checkout.join(".git/index.lock"));
        self.bring(&checkout, commit, progress)?;
        progress.begin(&format!("check out {}", commit.get(..12).unwrap_or(commit)), None);
        let done = git_of_ours(&checkout, "checkout", ["--quiet", "--force", "--detach", commit]);
        progress.end();
        done?;
        git_of_ours(&checkout, "clean", ["-ffdxq"])?;
        Ok((checkout, lock))
    }

    /// Returns the directory of the checkout.
    fn checkout(&self) -> PathBuf {
        self.directory.join("tree")
    }

    /// Creates the checkout's repository, in the user's object format, and lets it borrow the
    /// user's objects.
    fn prepare(&self, checkout: &Path, objects: &str) -> Result<()> {
        let format = |tree: &Path| -> Result<String> {
            Ok(git(tree, "rev-parse", ["--show-object-format"])?.trim().to_owned())
        };
        let wanted = format(&self.origin)?;
        if !checkout.join(".git").is_dir() || format(checkout).is_ok_and(|found| found != wanted) {
            let partial = self.directory.join("tree.partial");
            for old in [&partial, &checkout.to_owned()] {
                if old.is_dir() {
                    fs::remove_dir_all(old).at("remove", old)?;
                }
            }
            fs::create_dir_all(&partial).at("create", &partial)?;
            let format = format!("--object-format={wanted}");
            git_of_ours(&partial, "init", ["--quiet", "--template=", format.as_str()])?;
            let info = partial.join(".git/objects/info");
            fs::create_dir_all(&info).at("create", &info)?;
            fs::rename(&partial, checkout).at("rename", &partial)?;
        }
        if objects.contains('\n') {
            let said = "there is a line end in its name; rename it".into();
            return Err(Error::Git { what: "borrow objects".into(), tree: self.origin.clone(), said });
        }
        Ok(write_atomic(&checkout.join(".git/objects/info/alternates"), format!("{objects}\n").as_bytes())?)
    }

    /// Fetches objects that a partial clone lacks from its remote into the checkout; the user's
    /// tree stays unchanged.
    fn bring(&self, checkout: &Path, commit: &str, progress: &dyn Progress) -> Result<()> {
        let Some(remote) = self.promisor()? else { return Ok(()) };
        // A fetched directory shows which other objects are missing.
        for _ in 0..MAX_ROUNDS {
            let listed = git(
                checkout,
                "rev-list",
                ["--objects", "--no-walk", "--no-object-names", "--missing=print", commit, "--"],
            )?;
            let missing: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix('?')).collect();
            if missing.is_empty() {
                return Ok(());
            }
            let file = self.directory.join("missing");
            write_atomic(&file, (missing.join("\n") + "\n").as_bytes())?;
            progress.begin(&format!("fetch {} objects from {remote}", missing.len()), None);
            let mut command = kerntune_work::git(checkout)?;
            // Without negotiation: every listed object is wanted.
            command.args(["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"]);
            command.args(["--no-write-fetch-head", "--stdin", "--end-of-options", &remote]);
            let done =
                run_git(command, "fetch", checkout, Some(Stdio::from(File::open(&file).at("open", &file)?)));
            progress.end();
            done.map_err(|error| self.incomplete(&error.to_string()))?;
        }
        Err(self.incomplete("its remote does not give all that is missing"))
    }

    /// Returns the address of the remote that completes a partial clone; `None` for a full clone.
    fn promisor(&self) -> Result<Option<String>> {
        // git fails with status 1 if there is none.
        let named = git(&self.origin, "config", ["--get-regexp", r"^remote\..*\.promisor$", "^true$"]);
        let named = named.unwrap_or_default();
        let name = named.lines().next().and_then(|line| line.split(' ').next());
        let name = name.and_then(|key| key.strip_prefix("remote.")?.strip_suffix(".promisor"));
        let Some(name) = name else { return Ok(None) };
        let address = git(&self.origin, "remote", ["get-url", "--", name])?;
        let address = address.lines().next().unwrap_or_default();
        // Relative paths start in the user's tree.
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

/// More than the depth of directories in a kernel.
const MAX_ROUNDS: usize = 64;

/// Runs git in the user's tree and returns its output.
fn git<S: AsRef<OsStr>>(tree: &Path, what: &str, words: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = kerntune_work::git(tree)?;
    command.arg(what).args(words);
    run_git(command, what, tree, None)
}

/// Runs git in the checkout and returns its output. Filters that a commit's attributes name have no
/// program there.
fn git_of_ours<S: AsRef<OsStr>>(
    checkout: &Path,
    what: &str,
    words: impl IntoIterator<Item = S>,
) -> Result<String> {
    let mut command = kerntune_work::git_of_ours(checkout)?;
    command.arg(what).args(words);
    run_git(command, what, checkout, None)
}

fn run_git(command: Command, what: &str, tree: &Path, input: Option<Stdio>) -> Result<String> {
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

    /// Creates a tree with a commit for each text of its one file.
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
        let tree = GitTree::open(&work, &origin).unwrap();
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
            let (checkout, _lock) = tree.check_out(&ids[at], &NoProgress).unwrap();
            assert_eq!(
                fs::read_to_string(checkout.join("file")).unwrap(),
                ["one", "two", "three", "four"][at]
            );
            fs::write(checkout.join("left over"), "").unwrap();
        }
        let (checkout, _lock) = tree.check_out(&ids[2], &NoProgress).unwrap();
        assert!(!checkout.join("left over").exists());
        assert_eq!(fs::read_dir(&origin).unwrap().count(), 2, "the tree itself is left alone");
        assert!(GitTree::open(&work, dir.path()).is_err());
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
            let tree = GitTree::open(&work, &clone).unwrap();
            for (id, text) in ids.iter().zip(["one", "two"]) {
                let (checkout, _lock) = tree.check_out(id, &NoProgress).unwrap();
                assert_eq!(fs::read_to_string(checkout.join("file")).unwrap(), text);
                assert_eq!(fs::read_to_string(checkout.join("kernel/fork.c")).unwrap(), "int x;\n");
                assert_eq!(tree.file(id, "file").unwrap().trim(), text);
            }
            assert_eq!(packs(&clone), before, "the clone itself is left alone");
        }
        // Without its remote it is refused by name.
        fs::rename(&up, dir.path().join("gone")).unwrap();
        let elsewhere = WorkDir::open(dir.path().join("elsewhere")).unwrap();
        let tree = GitTree::open(&elsewhere, &dir.path().join("blobs")).unwrap();
        let error = tree.check_out(&ids[0], &NoProgress).unwrap_err().to_string();
        assert!(error.contains("partial clone") && error.contains("without --filter"), "{error}");
    }

    #[test]
    fn a_repository_of_long_hashes_is_checked_out() {
        let dir = tempfile::tempdir().unwrap();
        let (work, origin) = (WorkDir::open(dir.path().join("work")).unwrap(), dir.path().join("linux"));
        let short = made(&origin, &["short"]);
        let tree = GitTree::open(&work, &origin).unwrap();
        tree.check_out(&short[0], &NoProgress).unwrap();
        // Another tree at the same path.
        fs::remove_dir_all(&origin).unwrap();
        fs::create_dir(&origin).unwrap();
        git(&origin, "init", ["--quiet", "-b", "main", "--object-format=sha256"]).unwrap();
        let id = commit(&origin, &[("file", "long")], "long");
        let (checkout, _lock) = tree.check_out(&id, &NoProgress).unwrap();
        assert_eq!((id.len(), fs::read_to_string(checkout.join("file")).unwrap().as_str()), (64, "long"));
    }

    /// Everything that a tree's author may write into it and its configuration.
    #[test]
    fn a_hostile_tree_runs_nothing_and_stays_in_the_room() {
        use std::os::unix::fs::{symlink, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let (work, origin) = (WorkDir::open(dir.path().join("work")).unwrap(), dir.path().join("linux"));
        let (ran, outside) = (dir.path().join("ran"), dir.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        let first = made(&origin, &["one"]).remove(0);
        // A commit through a link that another one turns into a directory, attributes, a submodule,
        // odd names.
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
        let tree = GitTree::open(&work, &origin).unwrap();
        for id in [&with_link, &through, &with_link, &first, &through] {
            let (checkout, _lock) = tree.check_out(id, &NoProgress).unwrap();
            assert!(checkout.join("way").symlink_metadata().is_ok() || *id == first);
            assert!(checkout.join("s").read_dir().map_or(0, Iterator::count) == 0, "no submodule is fetched");
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
