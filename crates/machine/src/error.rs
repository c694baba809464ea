//! How a run can fail.

use crate::LastWords;
use std::path::PathBuf;

/// Each message says what happened, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a process or an interrupt.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// The kernel's own files.
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    /// A kernel without mitigations on a CPU that needs them.
    #[error("kernel {kernel} was built without mitigations (CONFIG_CPU_MITIGATIONS), so that it would do nothing for --mitigations {cpu}; leave out --kernel, or build one: kerntune kernel build --fragment kernel/mitigations.config")]
    NoMitigations {
        /// Its label.
        kernel: String,
        /// The CPU that was asked for.
        cpu: String,
    },
    /// Some functions only, on a CPU that needs mitigations.
    #[error("with --mitigations functions are followed by the stack pointer, which needs all of the kernel's and no user functions: leave out --only, --skip and --user")]
    MitigatedSelection,
    /// The plugin was not built or not found.
    #[error("the recorder (libkerntune_recorder.so) is not beside the kerntune program in {looked}: run `make build`, or set KERNTUNE_RECORDER to its path")]
    NoRecorder {
        /// The directory that was looked in, or the path in KERNTUNE_RECORDER.
        looked: String,
    },
    /// A plugin that is not ours, or of an older version.
    #[error("{path} is not the recorder of this version of kerntune: run `make build`")]
    NotARecorder {
        /// The plugin's file.
        path: PathBuf,
    },
    /// The kernel's code.
    #[error("cannot read the code in {path}: {reason}")]
    Code {
        /// The kernel's `vmlinux`.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The kernel gave up.
    #[error("the guest's kernel panicked in phase `{phase}`: {what}\n{tail}")]
    Panic {
        /// The phase of the guest that init announced last.
        phase: String,
        /// The kernel's own line: `Kernel panic - not syncing: …`.
        what: String,
        /// The console's last lines.
        tail: Tail,
    },
    /// Init reported a failure.
    #[error("the guest failed: {reason}{services}\n{tail}")]
    Guest {
        /// Why init gave up, in its words.
        reason: String,
        /// What the workload's services printed last.
        services: LastWords,
        /// The console's last lines.
        tail: Tail,
    },
    /// The guest ran out of memory.
    #[error("the guest ran out of memory in phase `{phase}`: {what}; give the workload more with `memory_mb`\n{tail}")]
    OutOfMemory {
        /// The phase of the guest that init announced last.
        phase: String,
        /// The kernel's own line: `Out of memory: …`.
        what: String,
        /// The console's last lines.
        tail: Tail,
    },
    /// Time is up.
    #[error("the guest did not end within {seconds} s; it was in phase `{phase}`. A longer limit is `time_limit_seconds` in the workload\n{tail}")]
    TimeLimit {
        /// The limit for the whole guest, in seconds of wall-clock time.
        seconds: u64,
        /// The phase of the guest that init announced last.
        phase: String,
        /// The console's last lines.
        tail: Tail,
    },
    /// The kernel never came to user space.
    #[error("the kernel did not reach its init within {seconds} s: it hangs at boot, or has no driver for the serial console or the initial RAM disk (CONFIG_SERIAL_8250_CONSOLE, CONFIG_BLK_DEV_INITRD)\n{tail}")]
    NoBoot {
        /// The limit for the boot, in seconds of wall-clock time.
        seconds: u64,
        /// The console's last lines.
        tail: Tail,
    },
    /// The guest ended without a word.
    #[error("the guest ended in phase `{phase}` without saying why\n{tail}")]
    Silent {
        /// The phase of the guest that init announced last.
        phase: String,
        /// The console's last lines.
        tail: Tail,
    },
    /// A kernel that is a program died as programs do.
    #[error("the kernel's process ended with {status} in phase `{phase}`\n{tail}")]
    Uml {
        /// The exit status or signal of the kernel's process.
        status: String,
        /// The phase of the guest that init announced last.
        phase: String,
        /// The console's last lines.
        tail: Tail,
    },
    /// A run without a kernel, on a machine that boots one.
    #[error("no kernel was given to boot")]
    NothingBoots,
    /// A run that was never kept.
    #[error(
        "no run of this kernel, image and capture is kept in {directory}: keep one first ({run} on {kernel})"
    )]
    NotKept {
        /// Where runs are kept.
        directory: PathBuf,
        /// The run's name in the workload.
        run: String,
        /// The kernel's label.
        kernel: String,
    },
    /// Asked of User-Mode Linux what it cannot do.
    #[error("the machine uml cannot {what}")]
    NotOnUml {
        /// What was asked for and what to do instead, to be read after "cannot".
        what: &'static str,
    },
    /// Asked of the host what it cannot do.
    #[error("the machine host cannot {what}")]
    NotOnHost {
        /// What was asked for, to be read after "cannot".
        what: &'static str,
    },
    /// Asked of KVM what it cannot do.
    #[error("the machine kvm cannot {what}")]
    NotOnKvm {
        /// What was asked for, to be read after "cannot".
        what: &'static str,
    },
    /// No KVM, or none that boots a kernel.
    #[error("there is no machine kvm here: {message}. `kerntune doctor` says what it lacks; kernels built with --arch um are timed without it (docs/uml.md), and the emulator compares any two exactly (`kerntune compare`)")]
    NoKvm {
        /// What QEMU says, or that a kernel does not boot.
        message: String,
    },
    /// A workload that cannot be kept from the rest of the host.
    #[error(
        "the host does not let a workload be contained (docs/suites.md says what that takes): {message}"
    )]
    NotContained {
        /// What the contained run printed when it refused.
        message: String,
    },
    /// A kernel that is a program.
    #[error("kernel {kernel} is for User-Mode Linux, and no computer boots it, nor does the emulator: here a kernel is needed that was built without --arch um")]
    NotOnEmulator {
        /// The kernel's label.
        kernel: String,
    },
    /// A kernel without a driver for the workload's disk.
    #[error("kernel {kernel} was built without {lacking}, which the workload's disk ({kind}) needs, and guests load no modules; build one that has it: kerntune kernel build --workload WORKLOAD")]
    NoDriver {
        /// The kernel's label.
        kernel: String,
        /// The kind of disk.
        kind: &'static str,
        /// What it lacks.
        lacking: String,
    },
    /// QEMU itself failed.
    #[error("QEMU ended with {status}: {message}")]
    Qemu {
        /// QEMU's exit status or signal.
        status: String,
        /// What QEMU printed to its error output.
        message: String,
    },
    /// The recorder stopped the run.
    #[error("the recording failed: {message}")]
    Recorder {
        /// The recorder's reason.
        message: String,
    },
    /// The result stream is damaged.
    #[error("the guest's results in {path} cannot be read: {message}")]
    Results {
        /// The archive that the guest sent.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The recording is damaged or missing.
    #[error("the recording in {path} cannot be read: {message}")]
    Recording {
        /// The file of the recording that cannot be read.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The last lines of the console.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Tail {
    /// Where the whole console is.
    pub log: PathBuf,
    /// The lines.
    pub lines: Vec<String>,
}

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.lines.is_empty() {
            return write!(f, "the console shows nothing ({})", self.log.display());
        }
        writeln!(f, "last lines of the console ({}):", self.log.display())?;
        for (at, line) in self.lines.iter().enumerate() {
            let end = if at + 1 < self.lines.len() { "\n" } else { "" };
            write!(f, "    {line}{end}")?;
        }
        Ok(())
    }
}
