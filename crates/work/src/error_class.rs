//! Classes of errors, by what went wrong and what helps. The command's exit status follows from the
//! class; docs/exit-status.md describes each.

use crate::Error;

/// Class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nothing failed, but the answer is negative or tasks are left.
    NegativeResult,
    /// An argument or an input file cannot be used, or a file cannot be read or written.
    Usage,
    /// A tool, package, source, permission or ability of the machine is missing.
    MissingPrerequisite,
    /// A kernel or package cannot be built, or differs from the recorded one.
    BuildFailure,
    /// The guest or a program in it failed.
    GuestFailure,
    /// A recording or its figures cannot be used.
    RecordingFailure,
    /// A profile, kernel or other result was refused: damaged, of another build, or without effect.
    RefusedResult,
    /// Ctrl-C or SIGTERM.
    Interruption,
}

/// Errors that know their class.
pub trait ClassifyError {
    /// Returns the class. A transparent error has the class of the inner one.
    fn class(&self) -> ErrorClass;
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Interrupted => ErrorClass::Interruption,
            Self::Spawn { .. } => ErrorClass::MissingPrerequisite,
            Self::Changed { .. } | Self::Seal { .. } | Self::Json { .. } => ErrorClass::RefusedResult,
            _ => ErrorClass::Usage,
        }
    }
}
