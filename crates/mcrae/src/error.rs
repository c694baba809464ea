//! Errors of this crate.

use crate::{DumpError, NamesError, ReplayError};
use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// Error of an import or of a stream of tags. Errors of other crates pass through unchanged.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    #[error(transparent)]
    Guest(#[from] kerntune_guest::Error),
    #[error(transparent)]
    Analyze(#[from] kerntune_analyze::Error),
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    #[error(transparent)]
    Tune(#[from] kerntune_tune::Error),
    #[error(transparent)]
    Names(#[from] NamesError),
    #[error("{}: {source}", dump.display())]
    Dump { dump: PathBuf, source: DumpError },
    #[error("{}: {source}", dump.display())]
    Replay { dump: PathBuf, source: ReplayError },
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::Guest(inner) => inner.class(),
            Self::Profile(inner) => inner.class(),
            Self::Tune(inner) => inner.class(),
            Self::Analyze(_) => ErrorClass::RecordingFailure,
            Self::Names(_) | Self::Dump { .. } | Self::Replay { .. } => ErrorClass::Usage,
        }
    }
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
