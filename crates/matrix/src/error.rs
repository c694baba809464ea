//! Errors of matrices.

use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a plan, a store or a task; the message says what to do.
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
    Profile(#[from] kerntune_profile::Error),
    #[error(transparent)]
    Compare(#[from] kerntune_compare::Error),
    #[error(transparent)]
    Tune(#[from] kerntune_tune::Error),
    #[error("{path}: {message}; docs/matrix.md describes the file")]
    PlanFile { path: PathBuf, message: String },
    #[error("{0}")]
    Plan(String),
    #[error("{store}: {name} is damaged ({what}); remove it, and the task is computed again")]
    Object { store: String, name: String, what: String },
    #[error("the plan {plan} is of another version of kerntune, whose figures may be others: run the version that made it, or plan again")]
    OtherCode { plan: String },
    #[error("there is no store at {store}, or nothing is in it: `kerntune matrix run FILE --store {store}` makes one")]
    NoStore { store: String },
    #[error("{store} has no plan {plan:?}; `kerntune matrix plan FILE --store {store}` puts one there")]
    NoPlan { store: String, plan: String },
    #[error("the store {store} failed: {message}")]
    Store { store: String, message: String },
    #[error(
        "{store} is reached through the program {program}, which is not there: build it with `make objects` and put it beside \
         kerntune or on the PATH"
    )]
    NoHelper { store: String, program: &'static str },
    #[error(
        "task {task} came out differently on two machines: one of them differs from the plan, or its result is forged; the second result is kept \
         as {kept}. Remove both to compute the task again"
    )]
    Differs { task: String, kept: String },
    #[error("{name} is another result of task {task} than this machine computed: remove it to compute the task again")]
    Replaced { task: String, name: String },
    #[error("{title}: not run, since {reason}: --trust-commands runs it, if you trust the plan's author as you trust a program")]
    Untrusted { title: String, reason: String },
    #[error(transparent)]
    Name(#[from] kerntune_work::NameError),
    #[error("task {task} needs {need}, which has no result yet")]
    NotReady { task: String, need: String },
    #[error("the plan has no {what} {name:?}")]
    Unknown { what: &'static str, name: String },
    #[error("{tree}: git: {message}")]
    Git { tree: PathBuf, message: String },
    #[error("{program}: {message}")]
    Slurm { program: String, message: String },
    #[error("`kerntune {command}` ended with status {status}: {last}")]
    Command { command: String, status: i32, last: String },
    #[error("{title}: the process that computed it was ended by signal {signal}; its last output: {last}")]
    Lost { title: String, signal: i32, last: String },
    #[error("{title}: {last}")]
    Ended { title: String, last: String },
    #[error("a thread that works on the plan panicked; please report it")]
    Panicked,
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::Guest(inner) => inner.class(),
            Self::Profile(inner) => inner.class(),
            Self::Tune(inner) => inner.class(),
            Self::Compare(_) | Self::Differs { .. } | Self::Replaced { .. } | Self::Object { .. } => {
                ErrorClass::RecordingFailure
            }
            Self::Store { .. }
            | Self::NoHelper { .. }
            | Self::Slurm { .. }
            | Self::OtherCode { .. }
            | Self::Untrusted { .. } => ErrorClass::MissingPrerequisite,
            Self::NotReady { .. } => ErrorClass::NegativeResult,
            _ => ErrorClass::Usage,
        }
    }
}

impl Error {
    /// Checks whether the error is this machine's fault, so that another machine may succeed and
    /// the task is not marked as failed.
    pub fn is_of_the_machine(&self) -> bool {
        use kerntune_tune::Error as Tune;
        let of_kernel = |error: &kerntune_kernel::Error| {
            use kerntune_kernel::Error;
            matches!(error, Error::Work(_) | Error::MissingTools { .. } | Error::NoDebianSource { .. })
        };
        let of_guest = |error: &kerntune_guest::Error| {
            use kerntune_guest::Error;
            matches!(
                error,
                Error::Work(_) | Error::Package { .. } | Error::Program { .. } | Error::Library { .. }
            )
        };
        let of_machine = |error: &kerntune_machine::Error| {
            use kerntune_machine::Error;
            matches!(
                error,
                Error::Work(_)
                    | Error::NoRecorder { .. }
                    | Error::NoFirmware { .. }
                    | Error::PluginApi { .. }
            )
        };
        match self {
            Self::Kernel(error) | Self::Tune(Tune::Kernel(error)) => of_kernel(error),
            Self::Guest(error) | Self::Tune(Tune::Guest(error)) => of_guest(error),
            Self::Tune(Tune::Machine(error)) => of_machine(error),
            Self::Tune(Tune::Work(_)) => true,
            Self::Work(_) | Self::Store { .. } | Self::NoHelper { .. } | Self::Git { .. } => true,
            Self::Untrusted { .. } | Self::Differs { .. } | Self::Replaced { .. } => true,
            Self::NotReady { .. } | Self::OtherCode { .. } | Self::Panicked | Self::Slurm { .. } => true,
            _ => false,
        }
    }

    /// Checks whether Ctrl-C or SIGTERM was the cause.
    pub fn is_interrupt(&self) -> bool {
        use kerntune_work::Error::Interrupted;
        matches!(
            self,
            Self::Work(Interrupted)
                | Self::Kernel(kerntune_kernel::Error::Work(Interrupted))
                | Self::Guest(kerntune_guest::Error::Work(Interrupted))
                | Self::Tune(kerntune_tune::Error::Work(Interrupted))
                | Self::Tune(kerntune_tune::Error::Kernel(kerntune_kernel::Error::Work(Interrupted)))
                | Self::Tune(kerntune_tune::Error::Machine(kerntune_machine::Error::Work(Interrupted)))
        )
    }
}
