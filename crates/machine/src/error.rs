//! Errors of runs.

use crate::ServiceLogTail;
use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// An error of a run. Messages say what happened, where, and what to do next.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    #[error("kernel {kernel} was built without mitigations (CONFIG_CPU_MITIGATIONS), so that it would do nothing for --mitigations {cpu}; leave out --kernel, or build one: kerntune kernel build --fragment embedded/kernel/mitigations.config")]
    NoMitigations { kernel: String, cpu: String },
    #[error("with --mitigations functions are followed by the stack pointer, which needs all of the kernel's and no user functions: leave out --only, --skip and --user")]
    MitigatedSelection,
    #[error("the recorder (libkerntune_recorder.so) is not beside the kerntune program in {looked}: run `make build`, or set KERNTUNE_RECORDER to its path")]
    NoRecorder { looked: String },
    #[error("QEMU's firmware {file} is in none of its directories ({looked}): install the package seabios, or set KERNTUNE_FIRMWARE to the file's path")]
    NoFirmware { file: &'static str, looked: String },
    #[error("{message}. QEMU 9.2 to 11.1 (plugin API 4 to 7) work: put one first in PATH, or take a newer kerntune")]
    PluginApi { message: String },
    #[error("{path} is not the recorder of this version of kerntune: run `make build`")]
    NotARecorder { path: PathBuf },
    #[error("cannot read the code in {path}: {reason}")]
    Code { path: PathBuf, reason: String },
    #[error("the guest's kernel panicked in phase `{phase}`: {what}\n{tail}")]
    Panic { phase: String, what: String, tail: ConsoleTail },
    #[error("the guest failed: {reason}{services}\n{tail}")]
    Guest { reason: String, services: ServiceLogTail, tail: ConsoleTail },
    #[error("the guest ran out of memory in phase `{phase}`: {what}; give the workload more with `memory_mb`\n{tail}")]
    OutOfMemory { phase: String, what: String, tail: ConsoleTail },
    #[error("the guest did not end within {seconds} s; it was in phase `{phase}`. A longer limit is --limit, or `time_limit_seconds` in the workload\n{tail}")]
    TimeLimit { seconds: u64, phase: String, tail: ConsoleTail },
    #[error("the kernel did not reach its init within {seconds} s: it hangs at boot, or has no driver for the serial console or the initial RAM disk (CONFIG_SERIAL_8250_CONSOLE, CONFIG_BLK_DEV_INITRD)\n{tail}")]
    NoBoot { seconds: u64, tail: ConsoleTail },
    #[error("the guest ended in phase `{phase}` without saying why\n{tail}")]
    Silent { phase: String, tail: ConsoleTail },
    #[error("the kernel's process ended with {status} in phase `{phase}`\n{tail}")]
    Uml { status: String, phase: String, tail: ConsoleTail },
    #[error("no kernel was given to boot")]
    NothingBoots,
    #[error(
        "no run of this kernel, image and capture is kept in {directory}: keep one first ({run} on {kernel})"
    )]
    NotKept { directory: PathBuf, run: String, kernel: String },
    #[error("the machine uml cannot {what}")]
    NotOnUml { what: &'static str },
    #[error("the machine host cannot {what}")]
    NotOnHost { what: &'static str },
    #[error("the machine kvm cannot {what}")]
    NotOnKvm { what: &'static str },
    #[error("there is no machine kvm here: {message}. `kerntune doctor` says what it lacks; kernels built with --arch um are timed without it (docs/uml.md), and the emulator compares any two exactly (`kerntune compare`)")]
    NoKvm { message: String },
    #[error(
        "the host does not let a workload be contained (docs/suites.md says what that takes): {message}"
    )]
    NotContained { message: String },
    #[error("{host}: {what}")]
    Remote { host: String, what: String },
    #[error("kernel {kernel} is for User-Mode Linux, and the emulator cannot boot it: use a kernel built without --arch um")]
    NotOnEmulator { kernel: String },
    #[error("kernel {kernel} was built without {lacking}, which {needed_by}, built in or as modules; build one that has it: kerntune kernel build --workload WORKLOAD")]
    LacksOptions { kernel: String, lacking: String, needed_by: String },
    #[error("QEMU ended with {status}: {message}")]
    Qemu { status: String, message: String },
    #[error("the recording failed: {message}")]
    Recorder { message: String },
    #[error("the guest's results in {path} cannot be read: {message}")]
    Results { path: PathBuf, message: String },
    #[error("the recording in {path} cannot be read: {message}")]
    Recording { path: PathBuf, message: String },
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::NoRecorder { .. }
            | Self::NoFirmware { .. }
            | Self::PluginApi { .. }
            | Self::NoKvm { .. }
            | Self::NotContained { .. }
            | Self::Remote { .. } => ErrorClass::MissingPrerequisite,
            Self::Code { .. }
            | Self::NotOnKvm { .. }
            | Self::NotOnUml { .. }
            | Self::LacksOptions { .. }
            | Self::NoMitigations { .. }
            | Self::MitigatedSelection
            | Self::NotOnEmulator { .. } => ErrorClass::Usage,
            Self::Recorder { .. } | Self::Recording { .. } | Self::Qemu { .. } => {
                ErrorClass::RecordingFailure
            }
            _ => ErrorClass::GuestFailure,
        }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The last lines of the guest's console, or of the program whose failure ended the run.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct ConsoleTail {
    /// Path of the whole log.
    pub log: PathBuf,
    /// Last lines, without control characters.
    pub lines: Vec<String>,
    /// True for the log of a program.
    #[serde(default)]
    pub of_program: bool,
}

impl ConsoleTail {
    /// Lines of a program that are shown.
    const PROGRAM_LINES: usize = 20;

    /// Reads the end of a program's log; empty if it cannot be read.
    pub fn of_program(log: PathBuf) -> Self {
        let text = std::fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let printable = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
        let lines = text.lines().map(printable).filter(|line| !line.trim().is_empty());
        let lines: Vec<String> = lines.collect();
        let from = lines.len().saturating_sub(Self::PROGRAM_LINES);
        Self { lines: lines[from..].to_vec(), log, of_program: true }
    }
}

/// Messages by which programs report a missing file or program.
const MISSING: [&str; 4] = ["No such file or directory", "not found", "No such file", "cannot execute"];

/// Checks whether a line of a program reports a missing file or program.
pub fn reports_missing_file(line: &str) -> bool {
    MISSING.iter().any(|words| line.contains(words))
}

impl std::fmt::Display for ConsoleTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.lines.is_empty() {
            let what = if self.of_program { "the program printed" } else { "the console shows" };
            return write!(f, "{what} nothing ({})", self.log.display());
        }
        let what = if self.of_program { "its output" } else { "the console" };
        writeln!(f, "last lines of {what} ({}):", self.log.display())?;
        for (at, line) in self.lines.iter().enumerate() {
            let end = if at + 1 < self.lines.len() { "\n" } else { "" };
            write!(f, "    {line}{end}")?;
        }
        if self.of_program && self.lines.iter().any(|line| reports_missing_file(line)) {
            write!(
                f,
                "\nthe guest lacks what the program looked for: name a path of this machine in the command, or in `files` or \
                 `packages` of a workload file (`kerntune workload new -o FILE -- COMMAND`)"
            )?;
        }
        Ok(())
    }
}
