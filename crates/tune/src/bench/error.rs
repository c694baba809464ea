//! Errors of benchmark runs.

use kerntune_work::{ClassifyError, ErrorClass};

/// Reason for missing figures: the program or row, what happened, and what to do.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("there is no row \"{name}\"; the rows are {known}")]
    NoRow { name: String, known: String },
    #[error("nothing that was asked for runs on machine `{machine}`:\n  {}", reasons.join("\n  "))]
    NothingRuns { machine: &'static str, reasons: Vec<String> },
    #[error("suite {suite} always does the same work; leave --scale out")]
    NotScalable { suite: String },
    #[error("suite {suite} does each row once in a boot; leave --iterations out, and boot more often")]
    NotRepeated { suite: String },
    #[error("`{command}` {what}, so there are no figures of it; its last words were:\n{words}")]
    Program { command: String, what: String, words: String },
    #[error("`{command}` printed what is no figure of it: {message}")]
    NotFigures { command: String, message: String },
    #[error("row {row} of suite {suite} is not in the recording {profile}; this is a bug: the suite's rows file promises it")]
    NotRecorded { suite: String, row: String, profile: String },
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NothingRuns { .. } => ErrorClass::MissingPrerequisite,
            Self::Program { .. } | Self::NotFigures { .. } => ErrorClass::GuestFailure,
            Self::NotRecorded { .. } => ErrorClass::RecordingFailure,
            _ => ErrorClass::Usage,
        }
    }
}
