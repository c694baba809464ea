//! Exit statuses, as documented in docs/exit-status.md, and the errors that end a command. Start
//! from [`Failure`].

use kerntune_work::{is_out_of_memory, ClassifyError, ErrorClass};
use std::error::Error as StdError;
use std::fmt::Display;
use std::process::ExitCode;

/// Exit statuses of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Ok,
    /// The command worked, and its result is negative: problems in a workload file, failed checks
    /// of a kernel.
    Findings,
    /// The arguments or an input file are wrong.
    Usage,
    /// A tool, package or source is missing.
    Missing,
    /// A build failed.
    Build,
    /// The guest failed: panic, hang, service not ready, out of memory.
    Guest,
    /// The recording failed: disk full, damaged recording.
    Recording,
    /// A profile or kernel was refused: damaged, of another build, without effect.
    Profile,
    /// Standard output does not accept the results.
    Output,
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// The recorded command ended with this status other than 0, which is passed on.
    Command(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Missing => 3,
            Exit::Build => 4,
            Exit::Guest => 5,
            Exit::Recording => 6,
            Exit::Profile => 7,
            Exit::Output => 8,
            Exit::Interrupted => 130,
            Exit::Command(status) => status,
        })
    }
}

/// An error message, with the exit status that it leads to.
#[derive(Debug)]
pub struct Failure {
    /// Status of the command.
    pub exit: Exit,
    /// Text for the user: the error, where, and what to do.
    pub message: String,
}

impl Failure {
    /// Makes the failure of a wrong argument or input file.
    pub fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// Makes the failure for an unreadable recording.
    pub fn recording(error: impl StdError + 'static) -> Self {
        Self::new(Exit::Recording, error)
    }

    /// Makes a failure with status `exit`, except that a full disk, a quota, a file size limit and
    /// lack of memory have their own statuses.
    fn new(exit: Exit, error: impl StdError + 'static) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
        let mut full = is_out_of_memory(&error);
        while let Some(error) = cause {
            let io = error.downcast_ref::<std::io::Error>();
            full |= io.is_some_and(|io| [StorageFull, QuotaExceeded, FileTooLarge].contains(&io.kind()));
            cause = error.source();
        }
        Self { exit: if full { Exit::Recording } else { exit }, message: error.to_string() }
    }
}

/// Separates damage from errors that must end a command at once. The command continues without the
/// damaged part, reports it ([`CliOutput::left_out`](crate::output::CliOutput::left_out)) and ends
/// with the status of the damage.
pub fn separate_damage<T>(read: Result<Option<T>, Failure>) -> Result<(Option<T>, Option<Failure>), Failure> {
    match read {
        Ok(found) => Ok((found, None)),
        Err(failure) if failure.exit == Exit::Profile => Ok((None, Some(failure))),
        Err(other) => Err(other),
    }
}

impl From<ErrorClass> for Exit {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::NegativeResult => Self::Findings,
            ErrorClass::Usage => Self::Usage,
            ErrorClass::MissingPrerequisite => Self::Missing,
            ErrorClass::BuildFailure => Self::Build,
            ErrorClass::GuestFailure => Self::Guest,
            ErrorClass::RecordingFailure => Self::Recording,
            ErrorClass::RefusedResult => Self::Profile,
            ErrorClass::Interruption => Self::Interrupted,
        }
    }
}

impl<E: ClassifyError + StdError + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.class().into(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_no_fault_of_a_profile() {
        let zstd = || std::io::Error::other("Allocation error : not enough memory");
        let refused = std::io::Error::from_raw_os_error(12);
        let path = || std::path::PathBuf::from("p/functions.parquet");
        for error in [
            kerntune_profile::Error::Memory { path: path(), source: zstd().into() },
            kerntune_work::Error::Io { action: "read", path: path(), source: refused }.into(),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.exit, Exit::Recording, "{}", failure.message);
            assert!(!failure.message.contains("remove"), "{}", failure.message);
        }
        let trace = kerntune_analyze::Error::Memory { chunk: 1, source: zstd() };
        assert_eq!(Failure::from(kerntune_tune::Error::from(trace)).exit, Exit::Recording);
    }

    #[test]
    fn an_interruption_keeps_its_status_through_other_errors() {
        let kernel = kerntune_kernel::Error::from(kerntune_work::Error::Interrupted);
        let tune = kerntune_tune::Error::from(kerntune_machine::Error::from(kernel));
        assert_eq!(Failure::from(kerntune_guard::Error::from(tune)).exit, Exit::Interrupted);
    }
}
