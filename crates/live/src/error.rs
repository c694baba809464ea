//! What can go wrong.

use std::io;
use std::path::PathBuf;

/// Why the running kernel cannot be profiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refuses who asks.
    #[error(
        "the kernel does not let this user profile it ({source}; kernel.perf_event_paranoid is {paranoid}): run as root, or \
         with CAP_PERFMON and CAP_SYSLOG"
    )]
    NotPermitted {
        /// Value of the setting, as the kernel shows it.
        paranoid: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A kernel without perf events.
    #[error("this kernel has no perf events ({source}): it was built without CONFIG_PERF_EVENTS, or a sandbox forbids the system call")]
    NoPerf {
        /// The operating system's reason.
        source: io::Error,
    },
    /// Any other failure of an event.
    #[error("cannot watch {what}: {source}")]
    Event {
        /// What was to be watched.
        what: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A process, cgroup or CPU that is not there.
    #[error("{0}")]
    Filter(String),
    /// More samples than the kernel takes.
    #[error(
        "{asked} samples per second are more than the kernel allows ({most}, \
         kernel.perf_event_max_sample_rate)"
    )]
    Rate {
        /// What was asked for.
        asked: u64,
        /// The kernel's limit.
        most: u64,
    },
    /// Nothing can count calls here.
    #[error(
        "calls cannot be counted here. The module kgmon: {kgmon}. ftrace's function profiler: {profiler}. \
         Without --calls, kerntune still samples times"
    )]
    NoCalls {
        /// What is in the module's way.
        kgmon: String,
        /// What is in the profiler's way.
        profiler: String,
    },
    /// There is no module to load, or it is taken.
    #[error("{0}")]
    NoModule(String),
    /// ftrace's profiler cannot be used.
    #[error("{0}")]
    NoProfiler(String),
    /// The module, or what the kernel has against it.
    #[error(transparent)]
    Kgmon(#[from] kerntune_kgmon::Error),
    /// Nothing was seen.
    #[error("no time was recorded: {0}")]
    Nothing(String),
    /// A file of the kernel's, or of ours.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// A verb phrase that reads well after "cannot".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The command could not be started.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// Its name.
        program: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// No names for the kernel's code.
    #[error(transparent)]
    Symbols(#[from] kerntune_symbols::Error),
    /// The work directory.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// The profile could not be kept.
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Says which file an operation on it failed for.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }
}
