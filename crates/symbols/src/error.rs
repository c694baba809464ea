//! Errors of finding symbols.

use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// Error of naming the code of a kernel.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(
        "{origin} shows no addresses (kernel.kptr_restrict): functions cannot be named; run as root, and if root \
         sees none either, run sysctl kernel.kptr_restrict=1"
    )]
    Hidden { origin: String },
    #[error(
        "{origin} shows no addresses (kernel.kptr_restrict), and nothing else names this kernel's functions: {why}. Run as \
         root; if root sees none either, run sysctl kernel.kptr_restrict=1, or install the kernel's debug package"
    )]
    NoNames { origin: String, why: String },
    #[error("{origin} has no symbols of code: it is not a list of kernel symbols")]
    NoSymbols { origin: String },
    #[error("cannot read {path}: {source}; functions of this kernel cannot be named (CONFIG_KALLSYMS)")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot read {path}: {source}")]
    Image { path: PathBuf, source: std::io::Error },
    #[error("{origin}: its debug information cannot be read: {why}")]
    DebugInfo { origin: String, why: String },
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
}

impl Error {
    /// Returns the error of damage in `origin`.
    pub(crate) fn debug_info(origin: &str, why: kerntune_debuginfo::Error) -> Self {
        Self::DebugInfo { origin: origin.into(), why: why.to_string() }
    }
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Kernel(inner) => inner.class(),
            _ => ErrorClass::MissingPrerequisite,
        }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
