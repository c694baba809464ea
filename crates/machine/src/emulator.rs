//! QEMU with TCG, configured so that runs repeat exactly.

use crate::boot;
use crate::outcome::read_recording;
use crate::recorder::{find_recorder, recorder_code, recorder_spec};
use crate::request::{MachineDemands, RunRequest};
use crate::watch::WatchedRun;
use crate::{qemu, Error, Machine, Result, RunOutcome};
use kerntune_isa::{EmulatedCpu, GuestIsa, Isa};
use kerntune_kernel::Kernel;
use kerntune_trace::{files, RECORDER_FAILED};
use kerntune_work::{write_json, IoContext, JobEnd, Progress};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CPU: EmulatedCpu = GuestIsa::EMULATED;
/// The machine as in the oldest QEMU that can run the recorder, with the same answers to a kernel that
/// reads the firmware's description of it.
const MACHINE: [&str; 4] =
    ["-machine", "pc-i440fx-9.2", "-smbios", "type=0,vendor=kerntune,version=1,date=01/01/2026"];
/// The emulated CPU needs no mitigations, unless it pretends to be one that does.
const NO_MITIGATIONS: &str = " mitigations=off";
/// Options of a network card whose behavior repeats; 10 µs is about what a packet takes to leave a
/// real card.
const CARD: &str = "ioeventfd=off,tx=timer,x-txtimer=10000";
/// PCI slot that QEMU gives to the first card by default.
const FIRST_CARD_SLOT: u32 = 3;

/// The exact machine: QEMU's TCG with a fixed clock and recorder.
#[derive(Debug, Clone)]
pub struct Emulator {
    recorder: PathBuf,
}

impl Emulator {
    /// Finds the recorder. QEMU is searched when it runs.
    pub fn find() -> Result<Self> {
        Ok(Self { recorder: find_recorder()? })
    }

    fn command(&self, kernel: &Kernel, request: &RunRequest, directory: &Path) -> Result<Command> {
        let mut command = qemu::program(None);
        qemu::bare(&mut command);
        command.arg("-bios").arg(&qemu::installed()?.firmware);
        let (cpu, mut command_line) = cpu(&request.demands);
        command_line += &boot::command_line(kernel, request.demands.cpus)?;
        command.args(MACHINE).args([
            "-accel",
            "tcg",
            "-cpu",
            &cpu,
            "-smp",
            &processors(request.demands.cpus),
        ]);
        let memory_mb = qemu::memory_mb(request);
        command.args(nodes(request.demands.nodes, request.demands.cpus, memory_mb));
        // Clock and random numbers begin the same in every run.
        command.args(["-icount", qemu::clock(request), "-rtc", "base=2026-01-01,clock=vm", "-seed", "1"]);
        // Without ioeventfd the emulation thread drives devices when the guest asks, instead of
        // another thread whenever the host schedules it.
        qemu::guest(&mut command, kernel, request, directory, &command_line, ",ioeventfd=off");
        for card in 0..request.demands.network_cards {
            // Packets leave by a timer of virtual time; otherwise another thread sends them
            // whenever the host schedules it.
            command.args(["-netdev", &format!("hubport,id=wire{card},hubid=0")]);
            // With several CPUs, one can serve the interrupts of each card: every other slot has
            // another interrupt line.
            let slot = match request.demands.cpus {
                1 => String::new(),
                _ => format!(",addr={:#x}", FIRST_CARD_SLOT + 2 * card),
            };
            command.args(["-device", &format!("virtio-net-pci,netdev=wire{card},{CARD}{slot}")]);
        }
        if request.capture.is_some() {
            let spec = directory.join(files::SPEC);
            // With the option's name: QEMU would take a path with `=` for another option.
            let (recorder, spec) = (qemu::escape(&self.recorder), qemu::escape(&spec));
            command.args(["-plugin", &format!("file={recorder},spec={spec}")]);
        }
        Ok(command)
    }
}

/// Returns QEMU's CPU, and the kernel command line that goes with it.
fn cpu(demands: &MachineDemands) -> (String, String) {
    let EmulatedCpu { features, no_fast_strings, kernel_options } = CPU;
    let fast = if demands.fast_strings { "" } else { no_fast_strings };
    let known = |name: &str| GuestIsa::VULNERABLE.iter().find(|cpu| cpu.name == name);
    match demands.mitigations.and_then(known) {
        Some(vulnerable) => (format!("{features}{fast},{}", vulnerable.properties), kernel_options.into()),
        None => (format!("{features}{fast}"), format!("{kernel_options}{NO_MITIGATIONS}")),
    }
}

/// One socket for each CPU: without ACPI the kernel finds CPUs in the firmware's processor table,
/// which lists one per socket.
fn processors(cpus: u32) -> String {
    format!("{cpus},sockets={cpus}")
}

/// Options that split CPUs and memory between NUMA nodes, in order; none for a single node. Nodes
/// beyond the number of CPUs have memory only.
fn nodes(nodes: u32, cpus: u32, memory_mb: u32) -> Vec<String> {
    if nodes == 1 {
        return Vec::new();
    }
    // QEMU wants pages of 4 KiB times 2^n; MiB are.
    let share = memory_mb / nodes;
    let of_node = |node: u32| {
        let megabytes = if node == 0 { memory_mb - share * (nodes - 1) } else { share };
        let cpus: String = (0..cpus)
            .filter(|cpu| cpu * nodes / cpus.max(nodes) == node)
            .map(|cpu| format!(",cpus={cpu}"))
            .collect();
        [
            "-object".to_owned(),
            format!("memory-backend-ram,id=memory{node},size={megabytes}M"),
            "-numa".to_owned(),
            format!("node,nodeid={node},memdev=memory{node}{cpus}"),
        ]
    };
    (0..nodes).flat_map(of_node).collect()
}

impl Machine for Emulator {
    fn name(&self) -> &'static str {
        "emulator"
    }

    /// Hashes QEMU's version and firmware, the recorder's code, and the options.
    fn identity(&self) -> Result<String> {
        let EmulatedCpu { features, no_fast_strings, kernel_options } = CPU;
        let qemu = qemu::installed()?;
        Ok(kerntune_work::ContentHash::new("emulator/8")
            .field("qemu", &qemu.version)
            .field("firmware", &qemu.firmware_hash)
            .field("cpu", format!("{features}{no_fast_strings}"))
            .field("machine", MACHINE.join(" "))
            .field("network card", CARD)
            .field("command line", format!("{} {kernel_options}{NO_MITIGATIONS}", qemu::command_line()))
            .field("recorder", recorder_code(&self.recorder)?)
            .finish())
    }

    fn emulator(&self) -> Result<Option<String>> {
        let qemu = qemu::installed()?;
        Ok(Some(format!("{}, firmware {}", qemu.version, qemu.firmware_hash)))
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome> {
        let kernel = request.kernel()?;
        if !kernel.manifest.arch.is_pc() {
            return Err(Error::NotOnEmulator { kernel: kernel.manifest.label.clone() });
        }
        let directory = directory.canonicalize().at("open", directory)?;
        if let Some(capture) = &request.capture {
            let spec = recorder_spec(kernel, capture, &request.demands, &directory)?;
            write_json(&directory.join(files::SPEC), &spec)?;
        }
        let mut command = self.command(kernel, request, &directory)?;
        let stops = boot::prepare(kernel, true, &mut command)?;
        let (watched, guest_files) =
            qemu::run(command, stops, request, &directory, progress, recorder_failed)?;
        let _ = fs::remove_file(directory.join(files::PROGRESS));
        let recording = request.capture.is_some().then(|| read_recording(&directory)).transpose()?;
        let WatchedRun { started, phases, .. } = watched;
        let wall_seconds = started.elapsed().as_secs_f64();
        Ok(RunOutcome { directory, guest_files, recording, wall_seconds, phases, spent: Vec::new() })
    }
}

/// If the recorder gave up, its message is the only relevant error.
fn recorder_failed(end: &JobEnd, message: &str) -> Result<()> {
    match end {
        JobEnd::Exited(status)
            if status.code() == Some(RECORDER_FAILED) || message.contains("kerntune-recorder:") =>
        {
            Err(Error::Recorder { message: message.replace("kerntune-recorder: ", "") })
        }
        JobEnd::Exited(_) if message.contains("plugin requires API version") => {
            Err(Error::PluginApi { message: message.into() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn nodes_share_cpus_and_memory() {
        assert!(nodes(1, 4, 1024).is_empty());
        let two = "-object memory-backend-ram,id=memory0,size=2049M -numa node,nodeid=0,memdev=memory0,cpus=0,cpus=1 \
                   -object memory-backend-ram,id=memory1,size=2048M -numa node,nodeid=1,memdev=memory1,cpus=2";
        assert_eq!(nodes(2, 3, 4097).join(" "), two);
        let without_cpus = nodes(2, 1, 64).join(" ");
        assert!(without_cpus.contains("memdev=memory0,cpus=0 ") && without_cpus.ends_with("memdev=memory1"));
    }

    #[test]
    fn a_qemu_that_refuses_the_recorder_gets_advice() {
        let refused =
            "qemu-system-x86_64: Could not load plugin /l.so: plugin requires API version 7, but this QEMU \
            supports only a minimum version of 8";
        let error = recorder_failed(&JobEnd::Exited(ExitStatus::from_raw(1 << 8)), refused).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("minimum version of 8") && said.contains("9.2 to 11.1"), "{said}");
        assert!(recorder_failed(&JobEnd::Exited(ExitStatus::from_raw(1 << 8)), "no such device").is_ok());
    }
}
