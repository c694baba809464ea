//! Runs a workload under the running kernel: the guest's image and init, isolated from the rest of
//! the system.
//!
//! `embedded/guest/contain` isolates them: namespaces, above all a user namespace, a root on tmpfs, limits
//! of memory and processes, few capabilities, and a system call filter. Everything ends with init,
//! and init ends with this process, however it ends.

use crate::request::RunRequest;
use crate::users::UserIdMap;
use crate::watch::{RunLimits, WatchedRun};
use crate::{process, Error, Machine, Result, RunOutcome};
use kerntune_guest::boot_options;
use kerntune_work::{IoContext, Job, JobEnd, Progress};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit status of `embedded/guest/contain` (`EXIT_REFUSED`) if the host lacks something.
pub(crate) const REFUSED: i32 = 3;
/// Memory limit of the probe, in MiB.
pub(crate) const PROBE_MB: u32 = 16;

/// The running system as a machine; it boots nothing.
#[derive(Debug, Clone)]
pub struct Host {
    /// Path of the program that isolates a workload ([`kerntune_guest::compile_contain`]).
    pub program: PathBuf,
    /// Description for progress: `redis on the host, run 1 of 5`.
    pub what: String,
}

/// Tries whether a workload can be isolated here. `program` is [`Host::program`].
///
/// # Errors
/// [`Error::NotContained`] with what this host lacks.
pub fn can_contain(program: &Path) -> Result<()> {
    let mut command = command(program, UserIdMap::best_available()?, PROBE_MB);
    command.arg("probe");
    let (end, output) = Job::new(command).output()?;
    match end.success() {
        true => Ok(()),
        false => Err(Error::NotContained { message: output.trim().into() }),
    }
}

impl Machine for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    /// Equal on all hosts: results depend on the whole system and are never reused.
    fn identity(&self) -> Result<String> {
        Ok(kerntune_work::ContentHash::new("host/1").finish())
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome> {
        check_request(request)?;
        boots_nothing(request)?;
        let directory = directory.canonicalize().at("open", directory)?;
        let initramfs = request.initramfs.canonicalize().at("open", request.initramfs)?;
        let (users, memory_mb) = (UserIdMap::best_available()?, request.demands.memory_mb);
        let mut command = command(&self.program, users, memory_mb);
        command.arg(initramfs).args(boot_options(request.run, request.collect, 1).split_whitespace());
        let limits = RunLimits { what: self.what.clone(), ..request.limits() };
        let outcome = process::run(command, &limits, &directory, memory_mb, progress, &|| None, died);
        outcome.map_err(|error| explain_single_user(error, users))
    }
}

fn check_request(request: &RunRequest) -> Result<()> {
    match request.kernel.is_some() {
        true => Err(Error::NotOnHost { what: "boot a kernel: what it runs, runs under its own" }),
        false => Ok(()),
    }
}

/// Checks that the request needs nothing that a running kernel does not have.
pub(crate) fn boots_nothing(request: &RunRequest) -> Result<()> {
    let what = if request.demands.cpus > 1 {
        "have a number of CPUs: it has those of this machine; use a workload without `cpus`"
    } else if request.capture.is_some() {
        "record: the emulator does"
    } else if request.demands.disk.is_some() {
        "have a disk: use a workload without `disk`"
    } else if !request.demands.modules.is_empty() {
        "load modules: what it runs, runs under its own kernel; use a workload without `modules`"
    } else if request.demands.other_cpu() {
        "pass for another CPU: leave out --mitigations and --fast-strings"
    } else {
        return Ok(());
    };
    Err(Error::NotOnHost { what })
}

/// Command without any of our environment.
pub(crate) fn command(program: &Path, users: UserIdMap, memory_mb: u32) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/");
    command.arg(users.argument()).arg(memory_mb.to_string());
    command
}

/// Returns the error if the program ended before init reported.
pub(crate) fn died(end: &JobEnd, watched: &WatchedRun) -> Option<Error> {
    let JobEnd::Exited(status) = end else { return None };
    let tail = watched.console.tail();
    match status.code() {
        Some(0) => None,
        Some(REFUSED) => Some(Error::NotContained { message: tail.lines.join("; ") }),
        _ => Some(Error::Silent { phase: watched.console.phase(), tail }),
    }
}

/// Adds to a failure with a single user id that this may be the cause.
fn explain_single_user(error: Error, users: UserIdMap) -> Error {
    match (error, users) {
        (Error::Guest { reason, services, tail }, UserIdMap::One) => {
            let reason = format!(
                "{reason}. There is one user only in it, so what changes its user, as many servers do, cannot run: \
                 be root, or have 65536 ids in /etc/subuid and /etc/subgid, and newuidmap (`apt-get install uidmap`)"
            );
            Error::Guest { reason, services, tail }
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::ConsoleReader;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Instant;

    fn verdict(console: &str, status: i32) -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("console.log");
        std::fs::write(&path, console).unwrap();
        let mut console = ConsoleReader::follow(&path);
        console.read();
        let end = JobEnd::Exited(ExitStatus::from_raw(status << 8));
        let watched = WatchedRun { console, end, phases: Vec::new(), started: Instant::now() };
        let limits = RunLimits { what: "x".into(), boot_seconds: 1, seconds: 1, expected_ns: None };
        watched.judge(&limits, |end| died(end, &watched))
    }

    #[test]
    fn what_the_host_lacks_is_told_from_what_the_workload_did() {
        verdict("kt: phase boot\nkt: done\n", 0).unwrap();
        let refused = verdict("the kernel makes no namespaces: No space\n", 3).unwrap_err();
        assert!(
            matches!(&refused, Error::NotContained { message } if message.ends_with("No space")),
            "{refused}"
        );
        let killed = verdict("kt: phase boot\nkt: done\n", 137).unwrap_err();
        assert!(matches!(killed, Error::Silent { .. }), "{killed}");
        let hog = verdict("kt: failed: step 1 was killed\nOut of memory: the workload wanted more\n", 0);
        assert!(matches!(hog, Err(Error::OutOfMemory { .. })), "{hog:?}");
    }

    #[test]
    fn one_user_may_be_why_a_server_failed() {
        let failed = || verdict("kt: failed: service web ended\n", 0).unwrap_err();
        assert!(explain_single_user(failed(), UserIdMap::One)
            .to_string()
            .contains("service web ended. There is one user only"));
        assert!(!explain_single_user(failed(), UserIdMap::Range(1)).to_string().contains("one user"));
    }

    #[test]
    fn nothing_of_our_environment_goes_in() {
        let command = command(Path::new("/contain"), UserIdMap::Range(7), 512);
        let variables: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(variables, ["PATH"]);
        assert!(format!("{command:?}").contains(r#""range:7" "512""#), "{command:?}");
    }
}
