//! QEMU with TCG, made to repeat.

use crate::calibration;
use crate::outcome::read_recording;
use crate::recorder::{find_recorder, recorder_code, recorder_spec};
use crate::request::{Demands, RunRequest};
use crate::watch::Watched;
use crate::{qemu, Error, Machine, Outcome, Result};
use kerntune_isa::{Guest, Isa};
use kerntune_kernel::Kernel;
use kerntune_trace::{files, RECORDER_FAILED};
use kerntune_work::{write_json, IoContext, JobEnd, Progress};
use std::path::{Path, PathBuf};
use std::process::Command;

/// All that TCG has, without what differs from run to run (`rdrand`, `rdseed`).
const CPU: &str = "max,-rdrand,-rdseed";
/// Without the features for which the kernel copies with `rep movsb` and sets memory with `rep stosb`: icount charges
/// each byte of it as one instruction, which no CPU with these features does.
const NO_FAST_STRINGS: &str = ",-erms,-fsrm,-fsrs,-fsrc,-fzrm";
/// What the guest kernel is told besides: the TSC as the clock (under icount it is exact), and that timers interrupt, which it
/// would wait four ticks to see, in a loop that leaves QEMU's translated code. Hypervisors tell both.
const COMMAND_LINE: &str = "tsc=reliable clocksource=tsc no_timer_check";
/// The emulated CPU needs none, unless it is to pass for one that does.
const NO_MITIGATIONS: &str = " mitigations=off";
/// A network card that repeats; 10 µs is about what a packet takes to leave a real one.
const CARD: &str = "ioeventfd=off,tx=timer,x-txtimer=10000";
/// The PCI slot that QEMU gives the first card by itself.
const FIRST_CARD_SLOT: u32 = 3;

/// The exact machine.
#[derive(Debug, Clone)]
pub struct Emulator {
    recorder: PathBuf,
}

impl Emulator {
    /// Finds the recorder; QEMU is found when it is run.
    pub fn find() -> Result<Self> {
        Ok(Self { recorder: find_recorder()? })
    }

    fn command(&self, kernel: &Kernel, request: &RunRequest, directory: &Path) -> Result<Command> {
        let mut command = qemu::program(None);
        qemu::bare(&mut command);
        let (cpu, mut command_line) = cpu(&request.demands);
        command_line += &calibration::command_line(kernel, request.demands.cpus)?;
        command.args(["-accel", "tcg", "-cpu", &cpu, "-smp", &processors(request.demands.cpus)]);
        // The clock and all that QEMU draws at random begin the same every time.
        command.args(["-icount", qemu::clock(request), "-rtc", "base=2026-01-01,clock=vm", "-seed", "1"]);
        // Without ioeventfd a device is driven on the emulation thread, when the guest says so, and
        // not by another thread whenever the host schedules it.
        qemu::guest(&mut command, kernel, request, directory, &command_line, ",ioeventfd=off");
        for card in 0..request.demands.network_cards {
            // Packets leave by a timer of virtual time: otherwise another thread sends them whenever the
            // host schedules it.
            command.args(["-netdev", &format!("hubport,id=wire{card},hubid=0")]);
            // Of several CPUs one can have the interrupts of each card: the first two cards' lines differ, as every
            // other slot's do.
            let slot = match request.demands.cpus {
                1 => String::new(),
                _ => format!(",addr={:#x}", FIRST_CARD_SLOT + 2 * card),
            };
            command.args(["-device", &format!("virtio-net-pci,netdev=wire{card},{CARD}{slot}")]);
        }
        if request.capture.is_some() {
            let spec = directory.join(files::SPEC);
            // By name: QEMU would take the beginning of a path with `=` in it for an option's name.
            let (recorder, spec) = (qemu::escape(&self.recorder), qemu::escape(&spec));
            command.args(["-plugin", &format!("file={recorder},spec={spec}")]);
        }
        Ok(command)
    }
}

/// The CPU for QEMU, and what the kernel is told because of it.
fn cpu(demands: &Demands) -> (String, String) {
    let fast = if demands.fast_strings { "" } else { NO_FAST_STRINGS };
    let known = |name: &str| Guest::VULNERABLE.iter().find(|cpu| cpu.name == name);
    match demands.mitigations.and_then(known) {
        Some(vulnerable) => (format!("{CPU}{fast},{}", vulnerable.properties), COMMAND_LINE.into()),
        None => (format!("{CPU}{fast}"), format!("{COMMAND_LINE}{NO_MITIGATIONS}")),
    }
}

/// A socket each: without ACPI the kernel finds CPUs in the firmware's table of processors, which lists one of a socket.
fn processors(cpus: u32) -> String {
    format!("{cpus},sockets={cpus}")
}

impl Machine for Emulator {
    fn name(&self) -> &'static str {
        "emulator"
    }

    /// QEMU's version, the recorder's code, the options.
    fn identity(&self) -> Result<String> {
        Ok(kerntune_work::ContentHash::new("emulator/6")
            .field("qemu", qemu::version()?)
            .field("cpu", format!("{CPU}{NO_FAST_STRINGS}"))
            .field("network card", CARD)
            .field("command line", format!("{} {COMMAND_LINE}{NO_MITIGATIONS}", qemu::COMMAND_LINE))
            .field("recorder", recorder_code(&self.recorder)?)
            .finish())
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<Outcome> {
        let kernel = request.kernel()?;
        if !kernel.manifest.arch.is_default() {
            return Err(Error::NotOnEmulator { kernel: kernel.manifest.label.clone() });
        }
        let directory = directory.canonicalize().at("open", directory)?;
        if let Some(capture) = &request.capture {
            let spec = recorder_spec(kernel, capture, &request.demands, &directory)?;
            write_json(&directory.join(files::SPEC), &spec)?;
        }
        let mut command = self.command(kernel, request, &directory)?;
        let answer = calibration::answer(kernel, &mut command)?;
        let (watched, guest_files) =
            qemu::run(command, answer, request, &directory, progress, recorder_failed)?;
        let recording = request.capture.is_some().then(|| read_recording(&directory)).transpose()?;
        let Watched { started, phases, .. } = watched;
        let wall_seconds = started.elapsed().as_secs_f64();
        Ok(Outcome { directory, guest_files, recording, wall_seconds, phases, spent: Vec::new() })
    }
}

/// The recorder says why it gave up, and nothing else of the run matters then.
fn recorder_failed(end: &JobEnd, message: &str) -> Result<()> {
    match end {
        JobEnd::Exited(status)
            if status.code() == Some(RECORDER_FAILED) || message.contains("kerntune-recorder:") =>
        {
            Err(Error::Recorder { message: message.replace("kerntune-recorder: ", "") })
        }
        _ => Ok(()),
    }
}
