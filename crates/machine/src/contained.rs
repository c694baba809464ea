//! A workload under the kernel that is booted: the guest's image and its init, in namespaces of the host.
//!
//! The image is unpacked to a tmpfs, which is the root of its processes; they have a loopback, process numbers and mounts of
//! their own, and nothing of the host's disks, network and settings (`guest/init/system.c`). All of it is gone when
//! init is.

use crate::emulator::{Outcome, BOOT_SECONDS};
use crate::watch::{Limits, Watched};
use crate::{process, Error, Result};
use kerntune_guest::{boot_options, Collect};
use kerntune_work::{IoContext, Job, JobEnd, Progress};
use std::path::Path;
use std::process::Command;

/// New ones of everything that a guest of its own would have.
const NAMESPACES: [&str; 8] =
    ["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child=KILL", "--"];
/// Root, image and run; standard input is the results', so that only init gets it.
const SCRIPT: &str =
    "mount -t tmpfs -o mode=0755 kerntune \"$1\" && cd \"$1\" && busybox cpio -idm < \"$2\" && \
                      exec chroot . /init contained \"$3\"";

/// What runs where.
#[derive(Debug, Clone, Copy)]
pub struct ContainedRequest<'a> {
    /// For progress: `redis on the host, run 1 of 5`.
    pub what: &'a str,
    /// The workload's image.
    pub initramfs: &'a Path,
    /// `training` or `measured`.
    pub run: &'a str,
    /// Wall seconds for the whole run.
    pub time_limit_seconds: u64,
}

/// Whether namespaces can be made here, tried by doing.
///
/// # Errors
/// [`Error::NotContained`] with what `unshare` says.
pub fn can_contain() -> Result<()> {
    let mut command = unshare();
    command.arg("true");
    let (end, output) = Job::new(command).output()?;
    match end.success() {
        true => Ok(()),
        false => Err(Error::NotContained { message: output.trim().into() }),
    }
}

/// Runs it to its end. `directory` must exist and be empty; everything lands there.
///
/// # Errors
/// How the run failed.
pub fn run_contained(
    request: &ContainedRequest,
    directory: &Path,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let directory = directory.canonicalize().at("open", directory)?;
    let root = directory.join("root");
    std::fs::create_dir(&root).at("create", &root)?;
    let mut command = unshare();
    command.args(["sh", "-c", SCRIPT, "sh"]).arg(&root).arg(request.initramfs);
    command.arg(boot_options(request.run, Collect::default()));
    let limits =
        Limits { what: request.what.into(), boot_seconds: BOOT_SECONDS, seconds: request.time_limit_seconds };
    process::run(command, &limits, &directory, progress, died)
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(NAMESPACES);
    command
}

/// It ended before init said how.
fn died(end: &JobEnd, watched: &Watched) -> Option<Error> {
    let JobEnd::Exited(status) = end else { return None };
    let message = || format!("it ended with {status}\n{}", watched.console.tail());
    (!status.success()).then(|| Error::NotContained { message: message() })
}
