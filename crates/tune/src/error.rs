//! Whatever stopped the loop, by the room in which it happened.

/// Each variant speaks for itself; the room's message says what to do.
#[derive(Debug, thiserror::Error)]
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
    Refused(#[from] kerntune_optimize::Refused),
    #[error(transparent)]
    Model(#[from] kerntune_layout::Error),
    #[error(transparent)]
    Names(#[from] kerntune_convert::mcrae::NamesError),
    /// A dump of McRae's profiler that is none.
    #[error("{}: {source}", dump.display())]
    Dump { dump: std::path::PathBuf, source: kerntune_convert::mcrae::DumpError },
    /// A dump that cannot be replayed.
    #[error("{}: {source}", dump.display())]
    Replay { dump: std::path::PathBuf, source: kerntune_convert::mcrae::ReplayError },
    /// Branch records that are none, or of another kernel.
    #[error("{}: {reason}", file.display())]
    PerfData { file: std::path::PathBuf, reason: String },
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
    /// A kernel to start from that carries a profile.
    #[error("kernel {kernel} is tuned already, and cannot be built again from what it was built from: start from its base kernel. For two recipes one after the other there is `gcc-pgo+layout`")]
    TunedAlready { kernel: String },
    /// A tuned kernel that does something else than the one it was made from.
    #[error("kernel {kernel} does not do all that its base kernel does, and is not offered:\n  {}", differences.join("\n  "))]
    Misbehaves { kernel: String, differences: Vec<String> },
    /// A kernel that fails for another reason than its objects.
    #[error("kernel {kernel} fails, but {good} linked with all objects of {kernel} in the place of its own does not: no object is to blame, but how they were linked")]
    NotTheObjects { kernel: String, good: String },
    /// A good kernel that is none any more.
    #[error("kernel {good}, linked again from its own objects, {failure}: nothing can be told from mixing its objects with others")]
    LinkedAgain { good: String, failure: String },
    /// A kernel that fails although all that was found is left out.
    #[error("kernel {kernel} {failure}, although every object that was found to be to blame is left out: objects of the mixes that were tried behave in another way than the same ones in a kernel built at once. Start from what `kerntune kernel check` says of it")]
    StillFails { kernel: String, failure: String },
    /// What another recipe is trained by.
    #[error("{option} is not for recipe {recipe}, which takes {instead}")]
    NotOfRecipe { option: &'static str, recipe: &'static str, instead: &'static str },
    /// A recording that says nothing of branches.
    #[error("{} was recorded without edges, of which the counts are made; record again without --no-edges", profile.display())]
    NoEdges { profile: std::path::PathBuf },
    /// Wishes for single objects of a kernel that is not compiled.
    #[error("{option} is not for recipe {recipe}, which compiles nothing; leave it out")]
    CompilesNothing { option: &'static str, recipe: &'static str },
    /// What the recipe has no use for.
    #[error("--values is not for recipe {0}, which counts no values; leave it out")]
    NoValues(&'static str),
    /// `--weights` alone.
    #[error("--weights are the branches and the misses of a front-end model on each call path: they need the model (leave --no-edges out)")]
    WeightsWithoutModel,
    /// Options of a trace without one.
    #[error("{option}: with --no-functions there is no trace of functions for it; leave one of them out")]
    NeedsFunctions { option: &'static str },
    /// A program that is nowhere.
    #[error("--user {word}: no program of kerntune's, no file here and no file of the guest's image has this name{hint}")]
    NoProgram { word: String, hint: String },
    /// A run during which no region was opened.
    #[error("the run `{run}` of workload `{workload}` marked no region, so nothing was recorded: give its steps a `region`, or mark operations in the program (guest/kt_mark.h)")]
    NothingRecorded { workload: String, run: String },
    /// A program that ended well and whose output says otherwise.
    #[error("{step} {complaint}{services}\nall that it printed is in {}", log.display())]
    Output {
        step: String,
        complaint: Box<kerntune_guest::Complaint>,
        services: kerntune_machine::LastWords,
        log: std::path::PathBuf,
    },
    /// The recorder says that it missed something.
    #[error("{lost} events were lost in the recording; its figures would be wrong. This is a bug of the recorder: keep {path}")]
    LostEvents { lost: u64, path: std::path::PathBuf },
    /// A profile that was made without a trace.
    #[error("{} has no trace: it was merged, imported or recorded without functions. Reports of its tables work (functions, graph, subsystems …); for single calls record again", profile.display())]
    NoTrace { profile: std::path::PathBuf },
    /// Functional checks whose results cannot be read.
    #[error("the functional checks ended with something else than results: {message}; all of it is in {}", path.display())]
    SelfTest { path: std::path::PathBuf, message: String },
    /// Kernels for different machines.
    #[error("kernel {kernel} is for another machine than the first one: of kernels that are timed together all are built with --arch um, or none is")]
    OtherMachine { kernel: String },
    /// A program that printed something else than times.
    #[error("{} is not a row's times in each line: {message}; `kerntune time` needs a workload whose programs print {{\"row\":…,\"operations\":…,\"nanoseconds\":…}}, such as batched", path.display())]
    NotTimes { path: std::path::PathBuf, message: String },
    /// An output that would overwrite something.
    #[error("{} is there already; remove it or name another", path.display())]
    Exists { path: std::path::PathBuf },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<kerntune_stats::Error> for Error {
    fn from(error: kerntune_stats::Error) -> Self {
        Error::Stats(Box::new(error))
    }
}
