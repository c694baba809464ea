//! Errors of runs.

use crate::CostError;
use kerntune_work::{ClassifyError, ErrorClass};

/// Error of an experiment. Errors of other crates pass through unchanged.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum RunError {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    #[error(transparent)]
    Guest(#[from] kerntune_guest::Error),
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    #[error(transparent)]
    Compare(#[from] kerntune_compare::Error),
    #[error(transparent)]
    Analyze(#[from] kerntune_analyze::Error),
    #[error(transparent)]
    Tune(#[from] kerntune_tune::Error),
    #[error(
        "no patches {set} apply to Linux {version}: take a source of the series 6.12 (--source debian:6.12)"
    )]
    NoPatches { set: String, version: String },
    #[error("no change {change}: give a [[survey.change]] or a rule of advice with a change")]
    NoChange { change: String },
    #[error("kernel {kernel}: {source}")]
    Study { kernel: String, source: CostError },
}

impl ClassifyError for RunError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::Guest(inner) => inner.class(),
            Self::Profile(inner) => inner.class(),
            Self::Tune(inner) => inner.class(),
            Self::Analyze(_) | Self::Study { .. } => ErrorClass::RecordingFailure,
            Self::Compare(_) | Self::NoPatches { .. } | Self::NoChange { .. } => ErrorClass::Usage,
        }
    }
}

/// Result of a run.
pub type Result<T, E = RunError> = std::result::Result<T, E>;
