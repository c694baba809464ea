//! Errors of this crate.

use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a fleet, with the file and what to do.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    #[error("{path} has no profiles: `kerntune fleet add {path} PROFILE` puts one there")]
    NoFleet { path: PathBuf },
    #[error("{path} is in use by another process; try again")]
    Busy { path: PathBuf },
    #[error(
        "no profile below {path} matches the options; `kerntune fleet query {path}` shows what there is"
    )]
    NothingFits { path: PathBuf },
    #[error(
        "{path} holds another profile with the same id: one of the two was changed; kerntune touches \
         neither"
    )]
    Another { path: PathBuf },
    #[error("{path} does not belong to a fleet: a directory `{expected}=…` was expected; move it away")]
    Stray { path: PathBuf, expected: &'static str },
    #[error("{path} is misplaced: its manifest says {what}; move it away and add the profile again")]
    Misplaced { path: PathBuf, what: String },
    #[error("`{given}`: {what}")]
    Words { given: String, what: String },
    #[error("cannot write {path}: {source}")]
    Summary { path: PathBuf, source: parquet::errors::ParquetError },
    #[error("a thread that merges profiles panicked; please report it")]
    Panicked,
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Profile(inner) => inner.class(),
            Self::Misplaced { .. } | Self::Another { .. } => ErrorClass::RefusedResult,
            _ => ErrorClass::Usage,
        }
    }
}
