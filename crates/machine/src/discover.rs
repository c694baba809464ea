//! Runs a command under the running kernel to learn what files it uses. Nothing that it does
//! reaches this machine: `embedded/guest/contain` runs it over copies of what it writes, without a
//! network, and for a limited time.

use crate::host::{command, REFUSED};
use crate::users::UserIdMap;
use crate::{Error, Result};
use kerntune_guest::{DiscoveredFiles, ProcessUser, SourceRoot};
use kerntune_work::{Job, JobEnd};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Memory limit of the first run, in MiB, half of it for files; as much as the largest guest of a
/// command has.
const MEMORY_MB: u32 = 3072;

/// A command's first run.
#[derive(Debug)]
pub struct DiscoveryRequest<'a> {
    /// The program of [`kerntune_guest::compile_contain`].
    pub program: &'a Path,
    /// Program and arguments.
    pub command: &'a [String],
    /// Root that it sees.
    pub root: &'a SourceRoot,
    /// User and groups that it has, if this process may give it others than its own.
    pub user: &'a ProcessUser,
    /// Working directory inside.
    pub directory: &'a Path,
    /// Directory of this machine that is empty for it.
    pub hidden: &'a Path,
    /// Files and directories inside, absolute, that it sees even if they are secrets.
    pub shown: &'a [PathBuf],
    /// All of its environment.
    pub environment: &'a BTreeMap<String, String>,
    /// Standard input; empty if it is `None`.
    pub input: Option<File>,
    /// Wall time after which it is killed.
    pub time_limit: Duration,
}

/// Runs the command and returns the paths that it used.
///
/// # Errors
/// [`Error::NotContained`] with what this host lacks; an interrupt.
pub fn discover(request: DiscoveryRequest) -> Result<DiscoveredFiles> {
    let users = UserIdMap::caller()?;
    let mut command = command(request.program, users, MEMORY_MB);
    command.env_clear().envs(request.environment);
    let hidden = request.root.inside(request.hidden).unwrap_or_default();
    // Who is not root has one user only: itself, or itself as root.
    let is_possible = users != UserIdMap::One || request.root.is_of_this_machine();
    let user = if is_possible { request.user } else { &ProcessUser::default() };
    let ids: Vec<String> = user.ids().map(|id| id.to_string()).collect();
    command.arg("discover").arg(request.root.directory()).arg(hidden).arg(ids.join(":"));
    command.arg(request.directory).args(request.shown);
    command.args(request.shown.iter().filter_map(|path| request.root.resolve(path).ok()));
    command.arg("--").args(request.command);
    let mut job = Job::new(command).time_limit(request.time_limit);
    if let Some(input) = request.input {
        job = job.stdin(input.into());
    }
    let (end, [told, reasons]) = job.outputs()?;
    let refused = |message: String| Err(Error::NotContained { message });
    let parsed = |told: &str| {
        let found = DiscoveredFiles::parse(told);
        let found = found.map(|found| DiscoveredFiles { root: request.root.clone(), ..found });
        found.map_err(|error| Error::NotContained { message: error.to_string() })
    };
    match end {
        JobEnd::Exited(status) if status.code() == Some(REFUSED) => {
            refused(reasons.trim().replace('\n', "; "))
        }
        JobEnd::Exited(status) if !status.success() => refused(format!("the first run ended with {status}")),
        // What a killed run told last may be cut off.
        JobEnd::TimedOut => parsed(told.rsplit_once('\n').map_or("", |(whole, _)| whole)),
        _ => parsed(&told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_guest::{compile_contain, DiscoveryEnd};
    use kerntune_work::WorkDir;
    use std::collections::BTreeSet;
    use std::process::Command;

    struct FirstRuns {
        dir: tempfile::TempDir,
        program: PathBuf,
    }

    impl FirstRuns {
        fn new() -> Self {
            let dir = tempfile::tempdir_in("/var/tmp").unwrap();
            let program = compile_contain(&WorkDir::open(dir.path()).unwrap()).unwrap();
            Self { dir, program }
        }

        fn of(&self, words: &[&str], directory: &Path, seconds: u64) -> DiscoveredFiles {
            self.with(words, directory, &[], seconds)
        }

        fn with(&self, words: &[&str], directory: &Path, shown: &[PathBuf], seconds: u64) -> DiscoveredFiles {
            let command: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            let environment = BTreeMap::from([
                ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
                ("HOME".into(), std::env::var("HOME").unwrap()),
            ]);
            discover(DiscoveryRequest {
                program: &self.program,
                command: &command,
                root: &SourceRoot::default(),
                user: &ProcessUser::default(),
                directory,
                hidden: self.dir.path(),
                shown,
                environment: &environment,
                input: None,
                time_limit: Duration::from_secs(seconds),
            })
            .unwrap()
        }
    }

    fn chosen(
        found: &DiscoveredFiles,
        what: impl Fn(&kerntune_guest::PathUses) -> bool,
    ) -> BTreeSet<PathBuf> {
        found.paths.iter().filter(|(_, uses)| what(uses)).map(|(path, _)| path.clone()).collect()
    }

    #[test]
    fn each_use_is_told_and_nothing_is_changed() {
        let runs = FirstRuns::new();
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = dir.path();
        std::fs::create_dir(at.join("sub")).unwrap();
        for name in ["read", "emptied", "gone", "moved", "odd name", "secret.key", "sub/looked"] {
            std::fs::write(at.join(name), "text\n").unwrap();
        }
        std::os::unix::fs::symlink("read", at.join("link")).unwrap();
        let own = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        std::fs::set_permissions(at.join("secret.key"), own).unwrap();
        let script =
            "cat link; : >emptied; rm gone; mv moved new; cat new; ls -l sub; cat 'odd name'; cat missing; \
                      cat secret.key && exit 9; (exec sleep 0) & wait; exit 5";
        let found = runs.of(&["sh", "-c", script], at, 60);
        assert_eq!(found.end, DiscoveryEnd::Exited(5));
        let read = chosen(&found, |uses| uses.read);
        for name in ["link", "read", "moved", "new", "odd name", "missing"] {
            assert!(read.contains(&at.join(name)), "{name}: {read:?}");
        }
        assert!(!read.contains(&at.join("sub/looked")) && !read.contains(&at.join("secret.key")));
        for (name, uses) in [
            ("emptied", chosen(&found, |uses| uses.written)),
            ("gone", chosen(&found, |uses| uses.looked_at)),
            ("sub", chosen(&found, |uses| uses.listed)),
            ("sub/looked", chosen(&found, |uses| uses.looked_at)),
            ("secret.key", chosen(&found, |uses| uses.secret)),
        ] {
            assert!(uses.contains(&at.join(name)), "{name}: {uses:?}");
        }
        assert!(chosen(&found, |uses| uses.executed).contains(Path::new("/usr/bin/sleep")));
        let names: BTreeSet<_> =
            std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let before = ["emptied", "gone", "link", "moved", "odd name", "read", "secret.key", "sub"];
        assert_eq!(names, before.map(Into::into).into());
        assert_eq!(std::fs::read_to_string(at.join("emptied")).unwrap(), "text\n");
    }

    /// The writer needs longer than the reader sleeps.
    #[test]
    fn a_sleeper_is_held_until_the_others_wait() {
        let runs = FirstRuns::new();
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let script = "(head -c 100000000 /dev/zero | md5sum >sum; sleep 100) & sleep 0.001; test -s sum";
        let found = runs.of(&["sh", "-c", script], dir.path(), 60);
        assert_eq!(found.end, DiscoveryEnd::Exited(0));
        let spins = "while :; do :; done & sleep 0.001; kill $!";
        assert_eq!(runs.of(&["sh", "-c", spins], dir.path(), 60).end, DiscoveryEnd::Exited(0));
    }

    #[test]
    fn a_secret_that_is_asked_for_is_seen() {
        let runs = FirstRuns::new();
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = dir.path();
        std::fs::create_dir_all(at.join("keys/.ssh")).unwrap();
        let own = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        for name in ["a.key", "b.key", "keys/.ssh/id_x"] {
            std::fs::write(at.join(name), "text\n").unwrap();
            std::fs::set_permissions(at.join(name), own.clone()).unwrap();
        }
        std::os::unix::fs::symlink("a.key", at.join("link")).unwrap();
        let script = "cat a.key keys/.ssh/id_x && ! cat b.key";
        let found = runs.with(&["sh", "-c", script], at, &[at.join("link"), at.join("keys")], 60);
        assert_eq!(found.end, DiscoveryEnd::Exited(0));
        assert_eq!(chosen(&found, |uses| uses.secret), [at.join("b.key")].into());
        assert_eq!(runs.of(&["sh", "-c", script], at, 60).end, DiscoveryEnd::Exited(1));
    }

    #[test]
    fn a_run_without_end_is_cut_off_and_what_it_used_is_known() {
        let runs = FirstRuns::new();
        let found = runs.of(&["sh", "-c", "read line </etc/hostname; sleep 600"], Path::new("/"), 2);
        assert_eq!(found.end, DiscoveryEnd::TimeUp);
        assert!(chosen(&found, |uses| uses.read).contains(Path::new("/etc/hostname")));
        assert_eq!(runs.of(&["no-such-program"], Path::new("/"), 60).end, DiscoveryEnd::Exited(127));
        assert_eq!(runs.of(&["sh", "-c", "kill -9 $$"], Path::new("/"), 60).end, DiscoveryEnd::Signaled(9));
    }

    /// strace is the reference: the lines have every file that it sees opened.
    #[test]
    fn nothing_is_missed_that_strace_sees() {
        let Some(strace) = kerntune_work::find_program("strace", &[]) else { return };
        let runs = FirstRuns::new();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for words in [
            &["python3", "-c", "import json, http.server, ctypes"][..],
            &["perl", "-MPOSIX", "-e", "print floor(1.5)"],
            &["sh", "-c", "ls -lR src | sort | head -3; cat Cargo.toml | wc -l"],
            &["git", "log", "-p", "-1"],
        ] {
            let found = runs.of(words, here, 60);
            let read = chosen(&found, |uses| uses.read || uses.looked_at || uses.executed || uses.listed);
            let dir = tempfile::tempdir().unwrap();
            let log = dir.path().join("log");
            let mut traced = Command::new(&strace);
            traced.args(["-f", "-qq", "-y", "-s", "4096", "-e", "trace=open,openat,execve", "-o"]).arg(&log);
            traced.args(words).current_dir(here).env_clear().env("HOME", std::env::var_os("HOME").unwrap());
            traced.env("PATH", "/usr/local/bin:/usr/bin:/bin");
            assert!(traced.output().unwrap().status.success(), "{words:?}");
            // `… = 3</the/path>`
            let log = std::fs::read_to_string(&log).unwrap();
            let opened = log.lines().filter_map(|line| line.rsplit_once('<')?.1.strip_suffix('>'));
            let files: BTreeSet<&Path> = opened
                .map(Path::new)
                .filter(|path| path.is_absolute() && !path.starts_with("/proc") && !path.starts_with("/dev"))
                .collect();
            assert!(files.len() > 2, "{words:?}: {files:?}");
            let missed: Vec<_> = files.iter().filter(|path| !read.contains(**path)).collect();
            assert!(missed.is_empty(), "{words:?}: {missed:?}");
        }
    }
}
