//! QEMU with TCG, made to repeat.

use crate::points::Point;
use crate::recorder::{find_recorder, recorder_spec};
use crate::user_binary::UserBinary;
use crate::watch::{watch, Watched};
use crate::{results, Error, Result};
use kerntune_guest::{boot_options, Collect, PORT_NAME};
use kerntune_kernel::Kernel;
use kerntune_trace::counts::Counts;
use kerntune_trace::{files, Recording, TagWindow, RECORDER_FAILED};
use kerntune_work::{write_json, IoContext, Job, JobEnd, Progress};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that emulates.
const QEMU: &str = "qemu-system-x86_64";
/// All that TCG has, without what differs from run to run (`rdrand`, `rdseed`) and without the
/// features for which the kernel copies with `rep movsb`: icount charges each byte of it as one
/// instruction, which no CPU with these features does.
const CPU: &str = "max,-rdrand,-rdseed,-erms,-fsrm";
/// What the guest kernel is told: console, no address randomisation, the TSC as the clock (under
/// icount it is exact), no mitigations (the emulated CPU needs none), die on panic.
const COMMAND_LINE: &str =
    "console=ttyS0 panic=-1 nokaslr norandmaps tsc=reliable clocksource=tsc mitigations=off";
/// A network card that repeats; 10 µs is about what a packet takes to leave a real one.
const CARD: &str = "ioeventfd=off,tx=timer,x-txtimer=10000";
/// Wall seconds within which init must say its first word.
pub const BOOT_SECONDS: u64 = 120;

/// What to capture between marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureRequest {
    /// Entry and exit of every kernel function.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
    /// A front-end model's TOML text, if its misses are wanted.
    pub model: Option<String>,
    /// Branches and misses with every event; needs functions and a model.
    pub weights: bool,
    /// For each of the kernel's functions whether it is left out ([`crate::Selection`]); all are
    /// traced if this is empty.
    pub skip: Vec<bool>,
    /// Inline points.
    pub points: Vec<Point>,
    /// Binaries whose user functions are traced.
    pub binaries: Vec<UserBinary>,
    /// Where event tags of McRae's profiler are said.
    pub tags: Option<TagWindow>,
}

/// One run of a guest.
#[derive(Debug, Clone)]
pub struct RunRequest<'a> {
    /// What boots.
    pub kernel: &'a Kernel,
    /// What it boots into.
    pub initramfs: &'a Path,
    /// The run's name in the workload: `training` or `measured`.
    pub run: &'a str,
    /// What init collects besides.
    pub collect: Collect,
    /// What the recorder captures; `None` runs without the recorder.
    pub capture: Option<CaptureRequest>,
    /// The guest's memory in MiB.
    pub memory_mb: u32,
    /// Network cards of the guest, all on one wire.
    pub network_cards: u32,
    /// Wall seconds within which init must say its first word.
    pub boot_limit_seconds: u64,
    /// Wall seconds for the whole run.
    pub time_limit_seconds: u64,
    /// More for the kernel's command line.
    pub append: &'a str,
}

impl<'a> RunRequest<'a> {
    /// A run with 1 GiB, ten minutes, and no recorder.
    pub fn new(kernel: &'a Kernel, initramfs: &'a Path, run: &'a str) -> Self {
        Self {
            kernel,
            initramfs,
            run,
            collect: Collect::default(),
            capture: None,
            memory_mb: 1024,
            network_cards: 0,
            boot_limit_seconds: BOOT_SECONDS,
            time_limit_seconds: 600,
            append: "",
        }
    }
}

/// What a run brought back.
#[derive(Debug)]
pub struct Outcome {
    /// Where everything is.
    pub directory: PathBuf,
    /// The files that the guest sent.
    pub guest_files: PathBuf,
    /// What the recorder said, if one was there.
    pub recording: Option<Recording>,
    /// Wall time of the whole run in seconds.
    pub wall_seconds: f64,
    /// The phases that init announced, each with the wall seconds at which it was seen to begin,
    /// to a fifth of a second.
    pub phases: Vec<(String, f64)>,
}

impl Outcome {
    /// The trace's path.
    pub fn trace(&self) -> PathBuf {
        self.directory.join(files::TRACE)
    }

    /// Executed blocks and edges.
    pub fn counts(&self) -> Result<Counts> {
        let path = self.directory.join(files::COUNTS);
        let bytes = fs::read(&path).at("read", &path)?;
        Counts::parse(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
    }
}

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

    /// Everything besides the kernel and the image that decides what a run gives, for names of
    /// results: QEMU's version, the recorder's bytes, the options.
    pub fn identity(&self) -> Result<String> {
        let (_, version) = Job::new({
            let mut command = Command::new(QEMU);
            command.arg("--version");
            command
        })
        .output()?;
        let version = version.lines().next().unwrap_or_default().to_string();
        Ok(kerntune_work::ContentHash::new("emulator/1")
            .field("qemu", version)
            .field("cpu", CPU)
            .field("network card", CARD)
            .field("command line", COMMAND_LINE)
            .file("recorder", &self.recorder)?
            .finish())
    }

    /// Runs a guest to its end. `directory` must exist and be empty; everything lands there.
    pub fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<Outcome> {
        if !request.kernel.manifest.arch.is_default() {
            return Err(Error::NotOnEmulator { kernel: request.kernel.manifest.label.clone() });
        }
        let directory = directory.canonicalize().at("open", directory)?;
        if let Some(capture) = &request.capture {
            let spec = recorder_spec(request.kernel, capture, &directory)?;
            write_json(&directory.join(files::SPEC), &spec)?;
        }
        let console_path = directory.join("console.log");
        let mut said = Vec::new();
        let job = Job::new(self.command(request, &directory));
        let watched = watch(job, request, &console_path, progress, |line| {
            said.push(line.to_string());
            true
        })?;
        let guest_files = directory.join("guest");
        let archive = self.archive(&directory);
        let message = said.iter().rev().take(5).rev().cloned().collect::<Vec<_>>().join("; ");
        recorder_failed(&watched.end, &message)?;
        watched
            .judge(request, |end| died(end, message))
            .map_err(|error| error.with_last_words(&archive, &guest_files))?;
        results::unpack(&archive, &guest_files)?;
        fs::remove_file(&archive).at("remove", &archive)?;
        let recording = request.capture.is_some().then(|| read_recording(&directory)).transpose()?;
        let Watched { started, phases, .. } = watched;
        let wall_seconds = started.elapsed().as_secs_f64();
        Ok(Outcome { directory, guest_files, recording, wall_seconds, phases })
    }

    /// The file in which the results arrived: the virtio port, or the second serial port of a
    /// kernel without virtio consoles.
    fn archive(&self, directory: &Path) -> PathBuf {
        let virtio = directory.join("out.tar");
        let serial = directory.join("out-serial.tar");
        let length = |path: &Path| fs::metadata(path).map(|m| m.len()).unwrap_or(0);
        if length(&virtio) == 0 && length(&serial) > 0 {
            serial
        } else {
            virtio
        }
    }

    fn command(&self, request: &RunRequest, directory: &Path) -> Command {
        let file = |name: &str| format!("file:{}", escape(&directory.join(name)));
        let mut command = Command::new(QEMU);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-accel", "tcg", "-cpu", CPU, "-smp", "1"]);
        // One instruction is one nanosecond; idle time is skipped; the clock and all that QEMU
        // draws at random begin the same every time.
        command.args(["-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1"]);
        command.args(["-m", &request.memory_mb.to_string()]);
        command.arg("-kernel").arg(request.kernel.bzimage());
        command.arg("-initrd").arg(request.initramfs);
        let options = boot_options(request.run, request.collect);
        command.args(["-append", format!("{COMMAND_LINE} {options} {}", request.append).trim_end()]);
        command.args(["-serial", &file("console.log"), "-serial", &file("out-serial.tar")]);
        // Without ioeventfd a device is driven on the emulation thread, when the guest says so, and
        // not by another thread whenever the host schedules it.
        command.args(["-device", "virtio-serial-pci,ioeventfd=off"]);
        command.args(["-chardev", &format!("file,id=out,path={}", escape(&directory.join("out.tar")))]);
        command.args(["-device", &format!("virtserialport,chardev=out,name={PORT_NAME}")]);
        for card in 0..request.network_cards {
            // Packets leave by a timer of virtual time: otherwise another thread sends them whenever the
            // host schedules it.
            command.args(["-netdev", &format!("hubport,id=wire{card},hubid=0")]);
            command.args(["-device", &format!("virtio-net-pci,netdev=wire{card},{CARD}")]);
        }
        if request.capture.is_some() {
            let spec = directory.join(files::SPEC);
            command.args(["-plugin", &format!("{},spec={}", escape(&self.recorder), escape(&spec))]);
        }
        command
    }
}

/// QEMU's option syntax doubles commas.
fn escape(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
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

/// QEMU, if it ended as it should not.
fn died(end: &JobEnd, message: String) -> Option<Error> {
    let JobEnd::Exited(status) = end else { return None };
    (!status.success()).then(|| Error::Qemu { status: status.to_string(), message })
}

fn read_recording(directory: &Path) -> Result<Recording> {
    let path = directory.join(files::RECORDING);
    let bytes = fs::read(&path).at("read", &path)?;
    serde_json::from_slice(&bytes).map_err(|e| Error::Recording { path, message: e.to_string() })
}
