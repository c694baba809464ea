//! Errors of reading a path.

use kerntune_work::{ClassifyError, ErrorClass};
use std::ops::RangeInclusive;

/// Error of reading a path.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum PathError {
    #[error("{0}")]
    Trace(#[from] crate::Error),
    #[error("the recording has no function calls: record with functions to see paths")]
    NoFunctions,
    #[error("the recording has no regions: choose a call or a window of time")]
    NoRegions,
    #[error("the recording has no region \"{name}\"; it has {known}")]
    NoRegion { name: String, known: String },
    #[error("the recording has no thread \"{name}\"; it has {known}")]
    NoThread { name: String, known: String },
    #[error("the window ends ({end} ns) before it begins ({begin} ns)")]
    Backwards { begin: u64, end: u64 },
    #[error(
        "nothing was recorded from {begin} ns to {end} ns; the recording covers {first} ns to {last} ns"
    )]
    Outside { begin: u64, end: u64, first: u64, last: u64 },
    #[error("no such call begins at {at} ns in the trace: the profile is of another run, or the thread of another call")]
    NoCall { at: u64 },
    #[error(
        "the call that begins at {at} ns took {found} ns, not {} to {}: trace and profile are not of one run",
        expected.start(), expected.end()
    )]
    AnotherCall { at: u64, found: u64, expected: RangeInclusive<u64> },
    #[error("call {wanted} does not exist: there are only {found} such calls")]
    NoNthCall { wanted: u64, found: u64 },
    #[error(
        "region \"{region}\" marks no operations, so it has no operation {wanted}; \
         omit the number to show the whole region"
    )]
    NoOperations { region: String, wanted: u64 },
    #[error("operation {wanted} does not exist: region \"{region}\" marks only {found}")]
    NoNthOperation { region: String, wanted: u64, found: u64 },
}

impl ClassifyError for PathError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Trace(_) | Self::AnotherCall { .. } => ErrorClass::RecordingFailure,
            _ => ErrorClass::Usage,
        }
    }
}

impl PathError {
    /// Checks whether the error only means that there is no further call.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, PathError::NoCall { .. } | PathError::NoNthCall { .. })
    }
}
