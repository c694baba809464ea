//! A workload under the kernel that is booted: the guest's image and its init, kept from the rest of the system.
//!
//! `guest/contain` does that: namespaces, a user namespace above all, a root on tmpfs, limits of memory and processes, few
//! capabilities, a filter of system calls. All of it is gone when init is, and init is when we are, however we end.

use crate::request::RunRequest;
use crate::users::Users;
use crate::watch::{Limits, Watched};
use crate::{process, Error, Machine, Outcome, Result};
use kerntune_guest::boot_options;
use kerntune_work::{IoContext, Job, JobEnd, Progress};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The status of `guest/contain` (`EXIT_REFUSED`) if this host lacks something.
const REFUSED: i32 = 3;
/// Memory for a try.
const PROBE_MB: u32 = 16;

/// The machine that boots nothing.
#[derive(Debug, Clone)]
pub struct Host {
    /// What contains a workload ([`kerntune_guest::compile_contain`]).
    pub program: PathBuf,
    /// For progress: `redis on the host, run 1 of 5`.
    pub what: String,
}

/// Whether a workload can be contained here, tried by doing. `program` is [`Host::program`].
///
/// # Errors
/// [`Error::NotContained`] with what this host lacks.
pub fn can_contain(program: &Path) -> Result<()> {
    let mut command = command(program, Users::here()?, PROBE_MB);
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

    /// What a run gives depends on everything that the host is and does: results are never found again.
    fn identity(&self) -> Result<String> {
        Ok(kerntune_work::ContentHash::new("host/1").finish())
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<Outcome> {
        able(request)?;
        let directory = directory.canonicalize().at("open", directory)?;
        let initramfs = request.initramfs.canonicalize().at("open", request.initramfs)?;
        let (users, memory_mb) = (Users::here()?, request.demands.memory_mb);
        let mut command = command(&self.program, users, memory_mb);
        command.arg(initramfs).args(boot_options(request.run, request.collect, 1).split_whitespace());
        let limits = Limits { what: self.what.clone(), ..request.limits() };
        let outcome = process::run(command, &limits, &directory, memory_mb, progress, &|| None, died);
        outcome.map_err(|error| lonely(error, users))
    }
}

fn able(request: &RunRequest) -> Result<()> {
    let what = if request.kernel.is_some() {
        "boot a kernel: what it runs, runs under its own"
    } else if request.demands.cpus > 1 {
        "have a number of CPUs: it has those of this machine; use a workload without `cpus`"
    } else if request.capture.is_some() {
        "record: the emulator does"
    } else if request.demands.disk.is_some() {
        "have a disk: use a workload without `disk`"
    } else if request.demands.other_cpu() {
        "pass for another CPU: leave out --mitigations and --fast-strings"
    } else {
        return Ok(());
    };
    Err(Error::NotOnHost { what })
}

/// Nothing of our environment is the workload's.
fn command(program: &Path, users: Users, memory_mb: u32) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/");
    command.arg(users.argument()).arg(memory_mb.to_string());
    command
}

/// It ended before init said how.
fn died(end: &JobEnd, watched: &Watched) -> Option<Error> {
    let JobEnd::Exited(status) = end else { return None };
    let tail = watched.console.tail();
    match status.code() {
        Some(0) => None,
        Some(REFUSED) => Some(Error::NotContained { message: tail.lines.join("; ") }),
        _ => Some(Error::Silent { phase: watched.console.phase(), tail }),
    }
}

/// A failure where there is one user only may come from that.
fn lonely(error: Error, users: Users) -> Error {
    match (error, users) {
        (Error::Guest { reason, services, tail }, Users::One) => {
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
    use crate::console::Console;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Instant;

    fn verdict(console: &str, status: i32) -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("console.log");
        std::fs::write(&path, console).unwrap();
        let mut console = Console::follow(&path);
        console.read();
        let end = JobEnd::Exited(ExitStatus::from_raw(status << 8));
        let watched = Watched { console, end, phases: Vec::new(), started: Instant::now() };
        let limits = Limits { what: "x".into(), boot_seconds: 1, seconds: 1 };
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
        assert!(lonely(failed(), Users::One)
            .to_string()
            .contains("service web ended. There is one user only"));
        assert!(!lonely(failed(), Users::Range(1)).to_string().contains("one user"));
    }

    #[test]
    fn nothing_of_our_environment_goes_in() {
        let command = command(Path::new("/contain"), Users::Range(7), 512);
        let variables: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(variables, ["PATH"]);
        assert!(format!("{command:?}").contains(r#""range:7" "512""#), "{command:?}");
    }
}
