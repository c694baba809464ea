//! User-Mode Linux: the kernel as a process of the host.
//!
//! Its code runs on the host's CPU as any program's, so its time is real, and no virtualization is
//! needed. A real machine differs in how system calls enter the kernel: here, each is two switches
//! between processes of the host (some 10 µs), by ptrace or, in newer kernels, by a signal that
//! seccomp raises. The console is standard output; results come through the second serial line,
//! which is descriptor 0, one end of a socket.

use crate::request::RunRequest;
use crate::watch::WatchedRun;
use crate::{cpu, cpu_times, process, CpuTimes, Error, Machine, Result, RunOutcome};
use kerntune_guest::{boot_options, ConsoleMessage};
use kerntune_kernel::{Arch, Kernel};
use kerntune_work::{IoContext, JobEnd, Progress};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Kernel options: console on standard output, results on descriptor 0, no other line. The kernel
/// ends on panic by itself.
const OPTIONS: [&str; 7] =
    ["con=null", "con0=null,fd:1", "ssl=null", "ssl1=fd:0", "console=tty0", "norandmaps", "kt.poweroff=1"];

/// Directory of the kernel's management files, below the run's.
const MANAGEMENT: &str = "uml";
/// Name of the kernel there.
const NAME: &str = "kt";

/// Option for a way into the kernel that costs half as much, and the first version with it.
const SECCOMP: (&str, [u32; 2]) = ("seccomp=on", [6, 16]);

/// The machine for kernels of [`Arch::Um`]; it times them, not exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uml {
    /// Host CPU that kernel and programs share, of which only one ever runs; `None` lets the host
    /// move them.
    pub cpu: Option<u32>,
}

impl Machine for Uml {
    fn name(&self) -> &'static str {
        "uml"
    }

    /// Times are never reused, so the host does not matter.
    fn identity(&self) -> Result<String> {
        Ok(kerntune_work::ContentHash::new("uml/1")
            .field("options", OPTIONS.join(" "))
            .field("entry", SECCOMP.0)
            .finish())
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome> {
        let kernel = supported_kernel(request)?;
        let directory = directory.canonicalize().at("open", directory)?;
        process::run(
            command(*self, kernel, request, &directory),
            &request.limits(),
            &directory,
            request.demands.memory_mb,
            progress,
            &|| cpu_times_of(&directory),
            died,
        )
    }
}

/// Returns the kernel if this machine supports the request.
fn supported_kernel<'a>(request: &RunRequest<'a>) -> Result<&'a Kernel> {
    let kernel = request.kernel()?;
    let arch = kernel.manifest.arch;
    let what = if arch != Arch::Um {
        "start a kernel for a PC: build one with `kerntune kernel build --arch um`"
    } else if request.capture.is_some() {
        "record: it only times (`kerntune time`); record a kernel built without --arch um in the emulator"
    } else if request.demands.network_cards > 0 {
        "have network cards: use a workload without `network_cards`"
    } else if request.demands.cpus > 1 {
        "have several CPUs: use a workload without `cpus`"
    } else if request.demands.disk.is_some() {
        "have a disk: use a workload without `disk`"
    } else if request.demands.other_cpu() {
        "pass for another CPU: leave out --mitigations and --fast-strings, it has the host's"
    } else {
        return Ok(kernel);
    };
    Err(Error::NotOnUml { what })
}

fn command(uml: Uml, kernel: &Kernel, request: &RunRequest, directory: &Path) -> Command {
    let mut command = cpu::program(uml.cpu, &kernel.image());
    command.arg(format!("mem={}M", request.demands.memory_mb));
    command.arg(format!("initrd={}", request.initramfs.display()));
    // Directory of the management socket; by default it would be below the home directory.
    command.arg(format!("uml_dir={}/", directory.join(MANAGEMENT).display())).arg(format!("umid={NAME}"));
    command.args(OPTIONS);
    // Comes before the workload's options, which may override it.
    command.args(has_seccomp(&kernel.manifest.version).then_some(SECCOMP.0));
    command.args(boot_options(request.run, request.collect, 1).split_whitespace());
    command.args(request.demands.append.split_whitespace());
    command.current_dir(directory);
    command
}

/// Checks whether a kernel of this version takes [`SECCOMP`].
fn has_seccomp(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= SECCOMP.1
}

/// Returns the guest's CPU time; `None` before its kernel has written its process id, and on hosts
/// without the information.
fn cpu_times_of(directory: &Path) -> Option<CpuTimes> {
    let said = fs::read_to_string(directory.join(MANAGEMENT).join(NAME).join("pid")).ok()?;
    cpu_times::of_kernel(Path::new("/proc"), said.trim().parse().ok()?).ok()
}

/// Returns an error if the kernel's process died. After a complete run that does not matter: once in
/// some dozens of boots the kernel aborts while it ends its processes.
fn died(end: &JobEnd, watched: &WatchedRun) -> Option<Error> {
    let JobEnd::Exited(status) = end else { return None };
    if watched.console.powered_down && watched.console.end == Some(ConsoleMessage::Done) {
        return None;
    }
    let (tail, phase) = (watched.console.tail(), watched.console.phase());
    (!status.success()).then(|| Error::Uml { status: status.to_string(), phase, tail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::ConsoleReader;
    use crate::error::ConsoleTail;
    use crate::request::MachineDemands;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Instant;

    fn verdict(text: &str, status: i32) -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("console.log");
        fs::write(&path, text).unwrap();
        let mut console = ConsoleReader::follow(&path);
        console.read();
        let kernel = crate::test_program::kernel(Arch::Um);
        let request = RunRequest::new(&kernel, Path::new("/i"), "measured");
        let end = JobEnd::Exited(ExitStatus::from_raw(status));
        let watched = WatchedRun { console, end, phases: Vec::new(), started: Instant::now() };
        watched.judge(&request.limits(), |end| died(end, &watched))
    }

    #[test]
    fn only_a_guest_that_said_so_and_ended_well_is_done() {
        verdict("kt: phase boot\nkt: done\n", 0).unwrap();
        let failed = verdict("kt: failed: no\n", 0).unwrap_err().to_string();
        assert!(failed.contains("the guest failed: no"), "{failed}");
        let killed = verdict("kt: phase boot\nkt: done\n", 11).unwrap_err().to_string();
        assert!(killed.contains("signal: 11") && killed.contains("phase `boot`"), "{killed}");
        verdict("kt: phase boot\nkt: done\nreboot: Power down\n", 6).unwrap();
        verdict("kt: phase boot\nreboot: Power down\n", 6).unwrap_err();
        let silent = verdict("", 0).unwrap_err();
        assert!(matches!(silent, Error::Silent { tail: ConsoleTail { .. }, .. }), "{silent}");
        let panic = verdict("kt: phase boot\nKernel panic - not syncing: oh\n", 134).unwrap_err();
        assert!(matches!(panic, Error::Panic { .. }), "{panic}");
    }

    #[test]
    fn one_cpu_is_given_by_taskset() {
        let kernel = crate::test_program::kernel(Arch::Um);
        let request = RunRequest::new(&kernel, Path::new("/i"), "measured");
        let said = |uml| format!("{:?}", command(uml, &kernel, &request, Path::new("/")));
        assert!(said(Uml { cpu: Some(3) }).contains(r#""taskset" "-c" "3" "/k/vmlinux" "mem="#));
        assert!(!said(Uml::default()).contains("taskset"));
    }

    #[test]
    fn a_kernel_that_can_takes_system_calls_by_seccomp() {
        let can = ["6.16", "6.16.0-rc1", "6.100.2", "7.3.4", "10.0"];
        let cannot = ["6.12.117", "6.1.9", "5.20.0", "", "x.y"];
        assert!(can.iter().all(|version| has_seccomp(version)) && !cannot.iter().any(|v| has_seccomp(v)));
        let mut kernel = crate::test_program::kernel(Arch::Um);
        let demands = MachineDemands { append: "seccomp=off", ..MachineDemands::default() };
        for (version, expected) in [("6.12.117", false), ("7.3.4", true)] {
            kernel.manifest.version = version.into();
            let request = RunRequest { demands, ..RunRequest::new(&kernel, Path::new("/i"), "measured") };
            let said = format!("{:?}", command(Uml::default(), &kernel, &request, Path::new("/")));
            let places = ["\"seccomp=on\"", "\"seccomp=off\""].map(|option| said.find(option));
            // The last option takes effect.
            assert!(places[0].is_some() == expected && places[0] < places[1], "{said}");
        }
    }

    #[test]
    fn what_it_cannot_do_is_said_before_anything_runs() {
        let mut kernel = crate::test_program::kernel(Arch::Um);
        let refused = |request: &RunRequest| supported_kernel(request).unwrap_err().to_string();
        let request = RunRequest::new(&kernel, Path::new("/i"), "measured");
        supported_kernel(&request).unwrap();
        assert!(
            refused(&RunRequest { capture: Some(Default::default()), ..request.clone() }).contains("record")
        );
        let two = RunRequest { demands: MachineDemands { cpus: 2, ..request.demands }, ..request.clone() };
        assert!(refused(&two).contains("several CPUs"));
        assert!(refused(&RunRequest {
            demands: MachineDemands { network_cards: 1, ..request.demands },
            ..request
        })
        .contains("network cards"));
        kernel.manifest.arch = Arch::X86_64;
        assert!(refused(&RunRequest::new(&kernel, Path::new("/i"), "measured")).contains("--arch um"));
    }
}
