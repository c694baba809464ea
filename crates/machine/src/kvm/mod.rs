//! QEMU with KVM: times a kernel on the host's own CPU, in a virtual machine.
//!
//! The guest is the same as in the emulator, on one virtual CPU with all features of the host's
//! that its KVM accepts; time is the host's. Before the first guest a smaller one finds out how
//! fast code of the kernel runs there ([`KvmVerdict`]).

mod speed;

pub use speed::{examine_kvm, speed_image, KvmSpeed, KvmVerdict, SpeedAttempt, SPEED_LIMIT};

use crate::request::RunRequest;
use crate::watch::WatchedRun;
use crate::{boot, qemu, Error, Machine, Result, RunOutcome};
use kerntune_kernel::Kernel;
use kerntune_work::{IoContext, Job, JobEnd, Progress};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

/// Wall seconds within which init must report. A kernel takes one or two.
const BOOT_SECONDS: u64 = 20;

/// CPU model with all features: with KVM those of the host's CPU.
const MAX: &str = "max";

/// A machine that times kernels for PCs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kvm {
    /// Host CPU on which all of QEMU runs; `None` leaves it to the host.
    pub cpu: Option<u32>,
    accelerator: &'static str,
}

impl Kvm {
    /// Uses the host's KVM.
    pub fn new(cpu: Option<u32>) -> Self {
        Self { cpu, accelerator: "kvm" }
    }

    /// Emulates the same guest, for tests without KVM. Times are virtual: an instruction takes a
    /// nanosecond.
    #[doc(hidden)]
    pub fn emulated(cpu: Option<u32>) -> Self {
        Self { cpu, accelerator: "tcg" }
    }

    /// Returns the CPU model that the host's KVM accepts. The host is examined once.
    ///
    /// # Errors
    /// [`Error::NoKvm`] for a host that runs no guest, or whose KVM emulates a kernel's code.
    fn accepted_model(self) -> Result<&'static str> {
        static VERDICT: OnceLock<KvmVerdict> = OnceLock::new();
        if self.accelerator != "kvm" {
            return Ok(MAX);
        }
        let verdict = match VERDICT.get() {
            Some(verdict) => verdict,
            None => {
                let verdict = self.examine()?;
                VERDICT.get_or_init(|| verdict)
            }
        };
        match verdict {
            KvmVerdict::Native { cpu_model, .. } => Ok(cpu_model),
            refused => Err(Error::NoKvm { message: refused.refusal().unwrap_or_default() }),
        }
    }

    /// Runs the flat guest under the host's KVM.
    fn examine(self) -> Result<KvmVerdict> {
        let mut image = tempfile::NamedTempFile::new().at("make", std::env::temp_dir())?;
        image.write_all(&speed_image()).at("write", image.path())?;
        let path = image.path().to_owned();
        examine_kvm(&path, |argv| {
            let mut command = qemu::program(self.cpu);
            command.args(&argv[1..]).env("LC_ALL", "C");
            let (began, mut lines) = (Instant::now(), Vec::new());
            let end = Job::new(command).time_limit(SPEED_LIMIT).run(
                |line| {
                    lines.push((line.to_string(), began.elapsed()));
                    true
                },
                || true,
            )?;
            let status = match end {
                // A signal has no status; the lines say the rest.
                JobEnd::Exited(status) => Some(status.code().unwrap_or(-1)),
                _ => None,
            };
            Ok(SpeedAttempt { lines, status })
        })
    }

    fn command(self, cpu_model: &str, kernel: &Kernel, request: &RunRequest, directory: &Path) -> Command {
        let mut command = qemu::program(self.cpu);
        qemu::bare(&mut command);
        if self.accelerator == "tcg" {
            // A clock whose speed the guest can measure on a busy host.
            command.args(["-icount", qemu::clock(request)]);
        }
        command.args(["-accel", self.accelerator, "-cpu", cpu_model, "-smp", "1"]);
        qemu::guest(&mut command, kernel, request, directory, "", "");
        command
    }
}

impl Machine for Kvm {
    fn name(&self) -> &'static str {
        "kvm"
    }

    /// Times are never reused, so the host does not matter.
    fn identity(&self) -> Result<String> {
        let hash = kerntune_work::ContentHash::new("kvm/2").field("qemu", qemu::version()?);
        let hash = hash.field("accelerator", self.accelerator);
        Ok(hash.field("cpu", self.accepted_model()?).finish())
    }

    fn cpu_model(&self) -> Result<Option<String>> {
        self.accepted_model().map(|model| Some(model.into()))
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome> {
        let kernel = supported_kernel(request)?;
        let cpu_model = self.accepted_model()?;
        let directory = directory.canonicalize().at("open", directory)?;
        let mut demands = request.demands;
        if self.accelerator == "kvm" {
            demands.boot_limit_seconds = BOOT_SECONDS;
        }
        let request = RunRequest { demands, ..request.clone() };
        let mut command = self.command(cpu_model, kernel, &request, &directory);
        let stops = match self.accelerator {
            "tcg" => boot::prepare(kernel, false, &mut command)?,
            _ => None,
        };
        let (watched, guest_files) = qemu::run(command, stops, &request, &directory, progress, no_kvm)
            .map_err(|error| match error {
                Error::NoBoot { seconds, .. } => {
                    Error::NoKvm { message: format!("the kernel did not reach its init within {seconds} s") }
                }
                error => error,
            })?;
        let WatchedRun { started, phases, .. } = watched;
        let wall_seconds = started.elapsed().as_secs_f64();
        Ok(RunOutcome { directory, guest_files, recording: None, wall_seconds, phases, spent: Vec::new() })
    }
}

/// Returns the kernel if this machine supports the request.
fn supported_kernel<'a>(request: &RunRequest<'a>) -> Result<&'a Kernel> {
    let kernel = request.kernel()?;
    let what = if !kernel.manifest.arch.is_pc() {
        "start a kernel for User-Mode Linux: build one without --arch um"
    } else if request.capture.is_some() {
        "record: it only times (`kerntune time`); the emulator records"
    } else if request.demands.network_cards > 0 {
        "have network cards: use a workload without `network_cards`"
    } else if request.demands.cpus > 1 {
        "have several CPUs yet: use a workload without `cpus`"
    } else if request.demands.other_cpu() {
        "pass for another CPU: leave out --mitigations and --fast-strings, it has the host's"
    } else {
        return Ok(kernel);
    };
    Err(Error::NotOnKvm { what })
}

/// Recognizes QEMU's message that KVM is missing or not accessible.
fn no_kvm(end: &JobEnd, message: &str) -> Result<()> {
    match end {
        JobEnd::Exited(status) if !status.success() && message.to_lowercase().contains("kvm") => {
            Err(Error::NoKvm { message: message.into() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::MachineDemands;
    use crate::test_program::kernel;
    use kerntune_kernel::Arch;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn what_it_cannot_do_is_said_before_anything_runs() {
        let mut kernel = kernel(Arch::X86_64);
        let refused = |request: &RunRequest| supported_kernel(request).unwrap_err().to_string();
        let request = RunRequest::new(&kernel, Path::new("/i"), "measured");
        supported_kernel(&request).unwrap();
        let recorded = RunRequest { capture: Some(Default::default()), ..request.clone() };
        assert!(refused(&recorded).contains("the machine kvm cannot record"));
        let two = RunRequest { demands: MachineDemands { cpus: 2, ..request.demands }, ..request.clone() };
        assert!(refused(&two).contains("several CPUs"));
        assert!(refused(&RunRequest {
            demands: MachineDemands { network_cards: 1, ..request.demands },
            ..request
        })
        .contains("network cards"));
        kernel.manifest.arch = Arch::Um;
        let um = refused(&RunRequest::new(&kernel, Path::new("/i"), "measured"));
        assert!(um.contains("without --arch um"), "{um}");
    }

    #[test]
    fn a_host_without_kvm_is_told_from_a_guest_that_fails() {
        let exited = |status| JobEnd::Exited(ExitStatus::from_raw(status));
        let denied = "Could not access KVM kernel module: Permission denied";
        let error = no_kvm(&exited(256), denied).unwrap_err().to_string();
        assert!(error.contains("Permission denied") && error.contains("kerntune doctor"), "{error}");
        no_kvm(&exited(0), denied).unwrap();
        no_kvm(&exited(256), "cannot open /i").unwrap();
        no_kvm(&JobEnd::TimedOut, denied).unwrap();
    }

    #[test]
    fn it_is_the_hosts_cpu_and_one_of_them() {
        let kernel = kernel(Arch::X86_64);
        let request = RunRequest::new(&kernel, Path::new("/i"), "measured");
        let said = |kvm: Kvm| format!("{:?}", kvm.command("max,-pdcm", &kernel, &request, Path::new("/")));
        let pinned = said(Kvm::new(Some(3)));
        assert!(pinned.contains(r#""taskset" "-c" "3" "qemu-system-x86_64""#), "{pinned}");
        assert!(
            pinned.contains(r#""-accel" "kvm" "-cpu" "max,-pdcm""#) && !pinned.contains("icount"),
            "{pinned}"
        );
        assert!(!said(Kvm::new(None)).contains("taskset"));
    }
}
