//! How the command ends: docs/exit-status.md.

use kerntune_work::is_out_of_memory;
use std::error::Error as StdError;
use std::fmt::Display;
use std::process::ExitCode;

/// The exit statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Ok = 0,
    /// It worked, and the answer is no: problems in a workload file, failed checks of a kernel.
    Findings = 1,
    /// The arguments or an input file are wrong.
    Usage = 2,
    /// A tool, package or source is missing.
    Missing = 3,
    /// A build failed.
    Build = 4,
    /// The guest failed: panic, hang, service not ready, out of memory.
    Guest = 5,
    /// The recording failed: disk full, damaged recording.
    Recording = 6,
    /// A profile or kernel was refused: damaged, of another build, without effect.
    Profile = 7,
    /// Standard output does not take the results.
    Output = 8,
    /// Ctrl-C or SIGTERM.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// What went wrong and how to end.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
}

impl Failure {
    pub fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// The recording cannot be read.
    pub fn recording(error: impl StdError + 'static) -> Self {
        Self::new(Exit::Recording, error)
    }

    /// A full disk is a full disk, whoever noticed it, and so is a quota or a limit of file sizes; too little memory as well.
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

/// Holds damage apart from what ends a command at once: the command goes on without the damaged thing, says so
/// ([`Output::left_out`](crate::output::Output::left_out)) and ends with that status.
pub fn held_apart<T>(read: Result<Option<T>, Failure>) -> Result<(Option<T>, Option<Failure>), Failure> {
    match read {
        Ok(found) => Ok((found, None)),
        Err(failure) if failure.exit == Exit::Profile => Ok((None, Some(failure))),
        Err(other) => Err(other),
    }
}

impl From<kerntune_work::Error> for Failure {
    fn from(error: kerntune_work::Error) -> Self {
        use kerntune_work::Error;
        let exit = match &error {
            Error::Interrupted => Exit::Interrupted,
            Error::Spawn { .. } => Exit::Missing,
            Error::Changed { .. } | Error::Seal { .. } | Error::Json { .. } => Exit::Profile,
            _ => Exit::Usage,
        };
        Self::new(exit, error)
    }
}

impl From<kerntune_kernel::Error> for Failure {
    fn from(error: kerntune_kernel::Error) -> Self {
        use kerntune_kernel::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::NoDebianSource { .. } | Error::MissingTools { .. } | Error::OtherInputs { .. } => {
                Self::new(Exit::Missing, error)
            }
            Error::Make { .. }
            | Error::NotReproduced { .. }
            | Error::OtherImage { .. }
            | Error::Package { .. } => Self::new(Exit::Build, error),
            Error::Damaged { .. } => Self::new(Exit::Profile, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_guest::Error> for Failure {
    fn from(error: kerntune_guest::Error) -> Self {
        use kerntune_guest::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Package { .. }
            | Error::PackageQuery { .. }
            | Error::Program { .. }
            | Error::Library { .. }
            | Error::Compile { .. } => Self::new(Exit::Missing, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_machine::Error> for Failure {
    fn from(error: kerntune_machine::Error) -> Self {
        use kerntune_machine::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Kernel(inner) => inner.into(),
            Error::NoRecorder { .. } | Error::NoKvm { .. } | Error::NotContained { .. } => {
                Self::new(Exit::Missing, error)
            }
            Error::Code { .. }
            | Error::NotOnKvm { .. }
            | Error::NotOnUml { .. }
            | Error::NoDriver { .. }
            | Error::NoMitigations { .. }
            | Error::MitigatedSelection
            | Error::NotOnEmulator { .. } => Self::new(Exit::Usage, error),
            Error::Recorder { .. } | Error::Recording { .. } | Error::Qemu { .. } => {
                Self::new(Exit::Recording, error)
            }
            other => Self::new(Exit::Guest, other),
        }
    }
}

/// Whether it is no profile that is to blame, but where it is kept, or nobody.
fn is_of_the_place(error: &kerntune_work::Error) -> bool {
    use std::io::ErrorKind::{OutOfMemory, PermissionDenied, ReadOnlyFilesystem};
    match error {
        kerntune_work::Error::Interrupted => true,
        kerntune_work::Error::Io { source, .. } => {
            [OutOfMemory, PermissionDenied, ReadOnlyFilesystem].contains(&source.kind())
        }
        _ => false,
    }
}

impl From<kerntune_profile::Error> for Failure {
    fn from(error: kerntune_profile::Error) -> Self {
        use kerntune_profile::Error;
        match error {
            Error::Work(inner) if is_of_the_place(&inner) => inner.into(),
            Error::NotFound { .. } | Error::Ambiguous { .. } => Self::new(Exit::Usage, error),
            other => Self::new(Exit::Profile, other),
        }
    }
}

impl From<kerntune_fleet::Error> for Failure {
    fn from(error: kerntune_fleet::Error) -> Self {
        use kerntune_fleet::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Profile(inner) => inner.into(),
            Error::Misplaced { .. } | Error::Another { .. } => Self::new(Exit::Profile, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_matrix::Error> for Failure {
    fn from(error: kerntune_matrix::Error) -> Self {
        use kerntune_matrix::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Kernel(inner) => inner.into(),
            Error::Guest(inner) => inner.into(),
            Error::Profile(inner) => inner.into(),
            Error::Tune(inner) => inner.into(),
            Error::Compare(_) | Error::Differs { .. } | Error::Replaced { .. } | Error::Object { .. } => {
                Self::new(Exit::Recording, error)
            }
            Error::Store { .. }
            | Error::NoHelper { .. }
            | Error::Slurm { .. }
            | Error::OtherCode { .. }
            | Error::Untrusted { .. } => Self::new(Exit::Missing, error),
            Error::NotReady { .. } => Self::new(Exit::Findings, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_live::Error> for Failure {
    fn from(error: kerntune_live::Error) -> Self {
        use kerntune_live::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Profile(inner) => inner.into(),
            Error::Symbols(inner) => inner.into(),
            Error::NotPermitted { .. }
            | Error::NoPerf { .. }
            | Error::NoCalls { .. }
            | Error::Event { .. }
            | Error::Spawn { .. } => Self::new(Exit::Missing, error),
            Error::Nothing(_) => Self::new(Exit::Recording, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_symbols::Error> for Failure {
    fn from(error: kerntune_symbols::Error) -> Self {
        use kerntune_symbols::Error;
        match error {
            Error::Kernel(inner) => inner.into(),
            other => Self::new(Exit::Missing, other),
        }
    }
}

impl From<kerntune_report::Error> for Failure {
    fn from(error: kerntune_report::Error) -> Self {
        match error {
            kerntune_report::Error::Trace(_) => Self::new(Exit::Recording, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_stats::Error> for Failure {
    fn from(error: kerntune_stats::Error) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<kerntune_analyze::path::PathError> for Failure {
    fn from(error: kerntune_analyze::path::PathError) -> Self {
        use kerntune_analyze::path::PathError;
        match error {
            PathError::Trace(_) | PathError::AnotherCall { .. } => Self::new(Exit::Recording, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_tune::Error> for Failure {
    fn from(error: kerntune_tune::Error) -> Self {
        use kerntune_tune::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Kernel(inner) => inner.into(),
            Error::Guest(inner) => inner.into(),
            Error::Machine(inner) => inner.into(),
            Error::Profile(inner) => inner.into(),
            Error::Optimize(inner) => inner.into(),
            Error::Refused(inner) => inner.into(),
            Error::Bench(inner) => inner.into(),
            Error::Output { .. }
            | Error::Misbehaves { .. }
            | Error::NotTheObjects { .. }
            | Error::LinkedAgain { .. }
            | Error::StillFails { .. } => Self::new(Exit::Guest, error),
            Error::PerfData { .. } => Self::new(Exit::Profile, error),
            Error::Study { .. } => Self::new(Exit::Recording, error),
            Error::Analyze(_) | Error::LostEvents { .. } => Self::new(Exit::Recording, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_guard::Error> for Failure {
    fn from(error: kerntune_guard::Error) -> Self {
        use kerntune_guard::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Kernel(inner) => inner.into(),
            Error::Guest(inner) => inner.into(),
            Error::Profile(inner) => inner.into(),
            Error::Tune(inner) => (*inner).into(),
            Error::NotWhole { .. } | Error::OtherMaking { .. } => Self::new(Exit::Profile, error),
            Error::NoRow { .. } | Error::Sum { .. } => Self::new(Exit::Recording, error),
            Error::NoEnd { .. } => Self::new(Exit::Guest, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_tune::bench::Error> for Failure {
    fn from(error: kerntune_tune::bench::Error) -> Self {
        use kerntune_tune::bench::Error;
        match error {
            Error::NothingRuns { .. } => Self::new(Exit::Missing, error),
            Error::Program { .. } | Error::NotFigures { .. } => Self::new(Exit::Guest, error),
            Error::NotRecorded { .. } => Self::new(Exit::Recording, error),
            other => Self::new(Exit::Usage, other),
        }
    }
}

impl From<kerntune_optimize::Error> for Failure {
    fn from(error: kerntune_optimize::Error) -> Self {
        use kerntune_optimize::Error;
        match error {
            Error::Work(inner) => inner.into(),
            Error::Kernel(inner) => inner.into(),
            Error::NoPrograms { .. } => Self::new(Exit::Missing, error),
            Error::NotRewritable { .. }
            | Error::Compiler { .. }
            | Error::Exclusion { .. }
            | Error::ExclusionList(_) => Self::new(Exit::Usage, error),
            other => Self::new(Exit::Profile, other),
        }
    }
}

impl From<kerntune_optimize::Refused> for Failure {
    fn from(refused: kerntune_optimize::Refused) -> Self {
        Self::new(Exit::Profile, refused)
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
}
