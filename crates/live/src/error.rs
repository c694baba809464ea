//! Errors of this crate.

use kerntune_work::{ClassifyError, ErrorClass};
use std::io;
use std::path::PathBuf;

/// Reasons why the running kernel cannot be profiled.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(
        "the kernel does not let this user profile it ({source}; kernel.perf_event_paranoid is {paranoid}): run as root, or \
         with CAP_PERFMON and CAP_SYSLOG"
    )]
    NotPermitted { paranoid: String, source: io::Error },
    #[error("this kernel has no perf events ({source}): it was built without CONFIG_PERF_EVENTS, or a sandbox forbids the system call")]
    NoPerf { source: io::Error },
    #[error("cannot watch {what}: {source}")]
    Event { what: String, source: io::Error },
    #[error("{0}")]
    Filter(String),
    #[error(
        "{asked} samples per second are more than the kernel allows ({max}, \
         kernel.perf_event_max_sample_rate)"
    )]
    Rate { asked: u64, max: u64 },
    #[error(
        "calls cannot be counted here. The module kgmon: {kgmon}. ftrace's function profiler: {profiler}. \
         Without --calls, kerntune still samples times"
    )]
    NoCalls { kgmon: String, profiler: String },
    #[error("{option} needs tracepoints: {reason}. Without {option}, kerntune still samples times")]
    NoTracepoints { option: &'static str, reason: String },
    #[error(
        "this CPU records no branches here: {reason}. Branch records need LBR (Intel), BRS or LBRv2 (AMD, Zen 3 and newer) or \
         BRBE (Arm), and a hypervisor that passes them on. Record on a machine that has them, or count calls (--calls), of which \
         layout can be made"
    )]
    NoBranches { reason: &'static str },
    #[error("{0}")]
    Branches(String),
    #[error("{0}")]
    NoModule(String),
    #[error("{0}")]
    NoProfiler(String),
    #[error("{0}")]
    Gcov(String),
    #[error(transparent)]
    Kgmon(#[from] kerntune_kgmon::Error),
    #[error("no time was recorded: {0}")]
    Nothing(String),
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{path}: {reason}")]
    Recorded { path: PathBuf, reason: String },
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    #[error("cannot run {program}: {source}")]
    Spawn { program: String, source: io::Error },
    #[error(transparent)]
    Symbols(#[from] kerntune_symbols::Error),
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Profile(inner) => inner.class(),
            Self::Symbols(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::NotPermitted { .. }
            | Self::NoPerf { .. }
            | Self::NoCalls { .. }
            | Self::NoTracepoints { .. }
            | Self::NoBranches { .. }
            | Self::Event { .. }
            | Self::Spawn { .. } => ErrorClass::MissingPrerequisite,
            Self::Branches(_) => ErrorClass::RefusedResult,
            Self::Nothing(_) => ErrorClass::RecordingFailure,
            _ => ErrorClass::Usage,
        }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Adds the action and the path to an I/O error.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }
}
