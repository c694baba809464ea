//! Errors of this crate.

use kerntune_work::{ClassifyError, ErrorClass};

/// Error of a step of the loop. Errors of other crates pass through unchanged.
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
    Machine(#[from] kerntune_machine::Error),
    #[error(transparent)]
    Analyze(#[from] kerntune_analyze::Error),
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    #[error(transparent)]
    Compare(#[from] kerntune_compare::Error),
    #[error(transparent)]
    Optimize(#[from] kerntune_optimize::Error),
    #[error(transparent)]
    Refused(#[from] kerntune_optimize::ProofRefusal),
    #[error(transparent)]
    Model(#[from] kerntune_layout::Error),
    #[error("{}: {reason}", file.display())]
    PerfData { file: std::path::PathBuf, reason: String },
    #[error("the branch records of this machine cannot be used: {reason}")]
    Branches { reason: String },
    #[error(transparent)]
    Selection(#[from] kerntune_machine::SelectionError),
    #[error(transparent)]
    Point(#[from] kerntune_machine::PointError),
    #[error(transparent)]
    Bench(#[from] crate::bench::Error),
    /// Boxed: it is by far the largest.
    #[error(transparent)]
    Stats(Box<kerntune_stats::Error>),
    #[error(transparent)]
    User(#[from] kerntune_machine::UserBinaryError),
    #[error("{}: the compiler placed no triggers in it; build a kernel with the patches of embedded/kernel/patches/VERSION/mcrae-compiler (docs/mcrae.md)", image.display())]
    NoTriggers { image: std::path::PathBuf },
    #[error("no recipe `{given}`; there are {known}")]
    UnknownRecipe { given: String, known: String },
    #[error(
        "kernel {kernel} of profile {profile} counts no arcs, so that no .gcda files come of it: give a recording of an \
         instrumented kernel (`kerntune profile for` and `kerntune optimize --recipe gcc-pgo` make one), or a directory of \
         .gcda files with --kernel"
    )]
    CountsNoArcs { profile: String, kernel: String },
    #[error(
        "kernel {kernel} was compiled with profile {profile}, which is no longer there: its blocks are numbered by it. \
         Build that kernel again"
    )]
    ProfileGone { kernel: String, profile: String },
    #[error("the list of blocks of kernel {kernel} cannot be read: {reason}; please report it")]
    BadList { kernel: String, reason: String },
    #[error("Propeller's files are for Clang, and {compiler} is none: leave --propeller out, or give --compiler clang-19")]
    NotOfCompiler { compiler: String },
    #[error("{0}")]
    Changes(String),
    #[error("two of these changes have a recipe, and a kernel is tuned by one: give one of them the recipe that does both, as gcc-pgo+layout")]
    TwoRecipes,
    #[error("there is no {metric} of {operation}; there are the operations {}", known.join(", "))]
    NoFigure { operation: String, metric: String, known: Vec<String> },
    #[error("internal error: a modifier without a base recipe; please report it")]
    NothingToModify,
    #[error("kernel {kernel} is tuned already and cannot be tuned again: start from its base kernel. To apply two recipes, name a combination such as `gcc-pgo+layout`")]
    TunedAlready { kernel: String },
    #[error("kernel {kernel} does not do all that its base kernel does, and is not offered:\n  {}", differences.join("\n  "))]
    Misbehaves { kernel: String, differences: Vec<String> },
    #[error("kernel {kernel} fails, but its objects linked into {good} work: the fault is in the link step, not in an object")]
    NotTheObjects { kernel: String, good: String },
    #[error("kernel {good}, linked again from its own objects, {failure}: so mixing its objects with others shows nothing")]
    LinkedAgain { good: String, failure: String },
    #[error("kernel {kernel} {failure}, with all culprits excluded: the objects behave differently in a mix of two builds than in one build. `kerntune kernel selftest` shows which checks fail")]
    StillFails { kernel: String, failure: String },
    #[error("recipe {recipe} cannot be had for a kernel built with --arch {arch}: {part}: {why}. There are {known}")]
    NotOnArch {
        recipe: &'static str,
        arch: kerntune_kernel::Arch,
        part: &'static str,
        why: &'static str,
        known: String,
    },
    #[error("kernel {recorded} was recorded, and its counts are not those of kernel {kernel}: they differ in {differs}")]
    AnotherSource { kernel: String, recorded: String, differs: String },
    #[error(
        "a kernel for {arch} is trained on one workload, unless the recipe is gcc-pgo: leave --also out"
    )]
    OneTraining { arch: kerntune_kernel::Arch },
    #[error("{option} is not for recipe {recipe}, which takes {instead}")]
    NotOfRecipe { option: &'static str, recipe: &'static str, instead: &'static str },
    #[error("profile {profile} is of no kernel that was built here (it was imported, or is of the running kernel): there is no kernel to compare it with")]
    NoKernel { profile: String },
    #[error("profile {profile} is not for this recipe: {what} (docs/recipes.md)")]
    Lacking { profile: String, what: String },
    #[error("{option} is not for recipe {recipe}, which compiles nothing; leave it out")]
    CompilesNothing { option: &'static str, recipe: &'static str },
    #[error("--values is not for recipe {0}, which counts no values; leave it out")]
    NoValues(&'static str),
    #[error("--cold is not for recipe {0}, which compiles what did not run in one way only; leave it out")]
    NoColdCode(&'static str),
    #[error("--weights are the branches and the misses of a front-end model on each call path: they need the model (leave --no-edges out)")]
    WeightsWithoutModel,
    #[error("no patch that counts hints applies to Linux {version}: there are patches for the series 6.12 and 7.3, and those near them")]
    NoHintPatches { version: String },
    #[error("the front-end model {model} has no [data]: no caches of data to follow; docs/models.md shows how to give them")]
    NoDataModel { model: String },
    #[error("{option}: with --no-functions there is no trace of functions for it; leave one of them out")]
    NeedsFunctions { option: &'static str },
    #[error("--user {word}: no program of kerntune's, no file here and no file of the guest's image has this name{hint}")]
    NoProgram { word: String, hint: String },
    #[error("nothing is trimmed from kernel {kernel}: {why}")]
    NothingToTrim { kernel: String, why: String },
    #[error("the run `{run}` of workload `{workload}` marked no region, so nothing was recorded: give its steps a `region`, or mark operations in the program (embedded/guest/kt_mark.h)")]
    NothingRecorded { workload: String, run: String },
    #[error("{step} {complaint}{services}\nall that it printed is in {}", log.display())]
    Output {
        step: String,
        complaint: Box<kerntune_guest::OutputFailure>,
        services: kerntune_machine::ServiceLogTail,
        log: std::path::PathBuf,
    },
    #[error("{lost} events were lost in the recording; its figures would be wrong. This is a bug of the recorder: keep {path}")]
    LostEvents { lost: u64, path: std::path::PathBuf },
    #[error("{} has no trace: it was merged, imported or recorded without functions. Reports of its tables work (functions, graph, subsystems …); for single calls record again", profile.display())]
    NoTrace { profile: std::path::PathBuf },
    #[error("the functional checks ended with something else than results: {message}; all of it is in {}", path.display())]
    SelfTest { path: std::path::PathBuf, message: String },
    #[error("kernel {kernel} is for another machine than the first one: of kernels that are timed together all are built with --arch um, or none is")]
    OtherMachine { kernel: String },
    #[error("{} is not a row's times in each line: {message}; `kerntune time` needs a workload whose programs print {{\"row\":…,\"operations\":…,\"nanoseconds\":…}}, such as batched", path.display())]
    NotTimes { path: std::path::PathBuf, message: String },
    #[error("{} is there already; remove it or name another", path.display())]
    Exists { path: std::path::PathBuf },
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::Guest(inner) => inner.class(),
            Self::Machine(inner) => inner.class(),
            Self::Profile(inner) => inner.class(),
            Self::Optimize(inner) => inner.class(),
            Self::Refused(inner) => inner.class(),
            Self::Bench(inner) => inner.class(),
            Self::Output { .. }
            | Self::Misbehaves { .. }
            | Self::NotTheObjects { .. }
            | Self::LinkedAgain { .. }
            | Self::StillFails { .. } => ErrorClass::GuestFailure,
            Self::PerfData { .. }
            | Self::Branches { .. }
            | Self::CountsNoArcs { .. }
            | Self::ProfileGone { .. } => ErrorClass::RefusedResult,
            Self::Analyze(_) | Self::LostEvents { .. } => ErrorClass::RecordingFailure,
            _ => ErrorClass::Usage,
        }
    }
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<kerntune_stats::Error> for Error {
    fn from(error: kerntune_stats::Error) -> Self {
        Error::Stats(Box::new(error))
    }
}
