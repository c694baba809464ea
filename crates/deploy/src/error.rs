//! Errors of this crate.

use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a deployment, with the machine and what to do.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error("cannot reach {host}: {reason}; `ssh {host} true` must work without a question")]
    Unreachable { host: String, reason: String },
    #[error("{host}: cannot {what}: {reason}")]
    Step { host: String, what: String, reason: String },
    #[error("{host}: {reason}")]
    Unsafe { host: String, reason: String },
    #[error("{path}: {reason}")]
    Package { path: PathBuf, reason: String },
    #[error("{0}")]
    Usage(String),
    #[error("{host}: {file} cannot be read: {reason}")]
    Damaged { host: String, file: &'static str, reason: String },
    #[error(
        "{host} runs a kernel with build id {running}, not {wanted}; `kerntune kernel import` makes a kernel of the \
         one that it has as shipped"
    )]
    OtherKernel { host: String, running: String, wanted: String },
    #[error("{host}: it did not come back with {kernel} until it was switched off and on")]
    CameBackByPower { host: String, kernel: String },
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    #[error("{host}: the machine was restarted and did not answer within {seconds} s; {advice}")]
    NotBack { host: String, seconds: u64, advice: &'static str },
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Unreachable { .. } | Self::Unsafe { .. } => ErrorClass::MissingPrerequisite,
            Self::Step { .. } | Self::Package { .. } | Self::Usage(_) => ErrorClass::Usage,
            Self::Damaged { .. } => ErrorClass::RefusedResult,
            Self::NotBack { .. } | Self::CameBackByPower { .. } => ErrorClass::GuestFailure,
            Self::OtherKernel { .. } => ErrorClass::Usage,
            Self::Kernel(inner) => inner.class(),
        }
    }
}
