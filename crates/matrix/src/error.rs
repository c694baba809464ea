//! What can go wrong with a matrix.

use std::path::PathBuf;

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, each with what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a process or an interrupt.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// A kernel: its source, build or files.
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    /// A workload or its image.
    #[error(transparent)]
    Guest(#[from] kerntune_guest::Error),
    /// A profile.
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    /// Figures that are not whole.
    #[error(transparent)]
    Compare(#[from] kerntune_compare::Error),
    /// A step of a recording or a recipe.
    #[error(transparent)]
    Tune(#[from] kerntune_tune::Error),
    /// A plan file that does not read.
    #[error("{path}: {message}; docs/matrix.md describes the file")]
    PlanFile {
        /// The file.
        path: PathBuf,
        /// What does not fit, with its line.
        message: String,
    },
    /// A plan that cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// A store's object that is none of ours.
    #[error("{store}: {name} is damaged ({what}); remove it, and the task is computed again")]
    Object {
        /// The store.
        store: String,
        /// The object.
        name: String,
        /// What does not fit.
        what: String,
    },
    /// A plan of another version of kerntune.
    #[error("the plan {plan} is of another version of kerntune, whose figures may be others: run the version that made it, or plan again")]
    OtherCode {
        /// The plan's id.
        plan: String,
    },
    /// Nothing is in the store that was named.
    #[error("there is no store at {store}, or nothing is in it: `kerntune matrix run FILE --store {store}` makes one")]
    NoStore {
        /// The store.
        store: String,
    },
    /// No plan by that name.
    #[error("{store} has no plan {plan:?}; `kerntune matrix plan FILE --store {store}` puts one there")]
    NoPlan {
        /// The store.
        store: String,
        /// The name as it was given.
        plan: String,
    },
    /// The store does not answer, or refuses.
    #[error("the store {store} failed: {message}")]
    Store {
        /// Its address.
        store: String,
        /// What it said.
        message: String,
    },
    /// The program for object stores is not there.
    #[error(
        "{store} is reached through the program {program}, which is not there: build it with `make objects` and put it beside \
         kerntune or on the PATH"
    )]
    NoHelper {
        /// The store's address.
        store: String,
        /// The program's name.
        program: &'static str,
    },
    /// Two machines computed the same task and disagree.
    #[error(
        "task {task} came out differently on two machines: one of them is not what the plan says, or lies; the other result is kept as \
         {kept}. Remove both, and the task is computed again"
    )]
    Differs {
        /// The task.
        task: String,
        /// Where the other result is in the store.
        kept: String,
    },
    /// A result in the store is not the one that this machine computed.
    #[error("{name} is another result of task {task} than this machine computed: remove it, and the task is computed again")]
    Replaced {
        /// The task.
        task: String,
        /// The object.
        name: String,
    },
    /// A task of a foreign plan that runs code on this machine.
    #[error("{title}: not run, since {reason}: --trust-commands runs it, if you trust the plan's author as you trust a program")]
    Untrusted {
        /// The task's title.
        title: String,
        /// What is run.
        reason: String,
    },
    /// An id, a hash, a label or a file's name that is none.
    #[error(transparent)]
    Name(#[from] kerntune_work::NameError),
    /// A task whose inputs are not computed yet.
    #[error("task {task} needs {need}, which is not there yet")]
    NotReady {
        /// The task.
        task: String,
        /// What it waits for.
        need: String,
    },
    /// No such task or cell.
    #[error("the plan has no {what} {name:?}")]
    Unknown {
        /// `task` or `cell`.
        what: &'static str,
        /// The name as it was given.
        name: String,
    },
    /// git has no such commit.
    #[error("{tree}: git: {message}")]
    Git {
        /// The tree.
        tree: PathBuf,
        /// What git said.
        message: String,
    },
    /// Slurm does not do as it is told.
    #[error("{program}: {message}")]
    Slurm {
        /// Which of its programs.
        program: String,
        /// What it said.
        message: String,
    },
    /// A command of the plan failed.
    #[error("`kerntune {command}` ended with status {status}: {last}")]
    Command {
        /// The command.
        command: String,
        /// Its exit status.
        status: i32,
        /// The last line that it wrote to standard error.
        last: String,
    },
    /// A process that computed a task was killed: by a user, by the kernel for want of memory, with its machine.
    #[error("{title}: the process that computed it was ended by signal {signal}; the last that it said is: {last}")]
    Lost {
        /// What it did.
        title: String,
        /// By which signal.
        signal: i32,
        /// The last line that it wrote.
        last: String,
    },
    /// A process that computed a task ended without a result.
    #[error("{title}: {last}")]
    Ended {
        /// What it did.
        title: String,
        /// The last line that it wrote.
        last: String,
    },
    /// A thread of ours panicked.
    #[error("a thread that works on the plan panicked; please report it")]
    Panicked,
}

impl Error {
    /// Whether it is this machine that cannot, and another one may: then nothing is said of the task.
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
            matches!(error, Error::Work(_) | Error::NoRecorder { .. })
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

    /// Whether Ctrl-C or SIGTERM ended it.
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
