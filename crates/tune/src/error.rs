//! Whatever stopped the loop, by the room in which it happened.

/// Each variant speaks for itself; the room's message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a process or an interrupt.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// The source or the build of a kernel.
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    /// A workload or its image.
    #[error(transparent)]
    Guest(#[from] kerntune_guest::Error),
    /// A run of a guest.
    #[error(transparent)]
    Machine(#[from] kerntune_machine::Error),
    /// The analysis of a trace.
    #[error(transparent)]
    Analyze(#[from] kerntune_analyze::Error),
    /// A profile in the store.
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    /// Runs that cannot be compared.
    #[error(transparent)]
    Compare(#[from] kerntune_compare::Error),
    /// The way from a profile to a tuned kernel.
    #[error(transparent)]
    Optimize(#[from] kerntune_optimize::Error),
    /// A tuned kernel that does not carry the profile.
    #[error(transparent)]
    Refused(#[from] kerntune_optimize::Refused),
    /// A front-end model, a call graph or an order.
    #[error(transparent)]
    Model(#[from] kerntune_layout::Error),
    /// The names files of McRae's profiler.
    #[error(transparent)]
    Names(#[from] kerntune_convert::mcrae::NamesError),
    /// A dump of McRae's profiler that is none.
    #[error("{}: {source}", dump.display())]
    Dump {
        /// The dump's file.
        dump: std::path::PathBuf,
        /// What is wrong with it.
        source: kerntune_convert::mcrae::DumpError,
    },
    /// A dump that cannot be replayed.
    #[error("{}: {source}", dump.display())]
    Replay {
        /// The dump's file.
        dump: std::path::PathBuf,
        /// Where its replay stopped, and why.
        source: kerntune_convert::mcrae::ReplayError,
    },
    /// Branch records that are none, or of another kernel.
    #[error("{}: {reason}", file.display())]
    PerfData {
        /// The file with the branch records.
        file: std::path::PathBuf,
        /// What is wrong with them, and what to give instead.
        reason: String,
    },
    /// The patterns of `--only` and `--skip`.
    #[error(transparent)]
    Selection(#[from] kerntune_machine::SelectionError),
    /// A point of `--point`.
    #[error(transparent)]
    Point(#[from] kerntune_machine::PointError),
    /// A benchmark without figures.
    #[error(transparent)]
    Bench(#[from] crate::bench::Error),
    /// Boxed: it is by far the largest.
    #[error(transparent)]
    Stats(Box<kerntune_stats::Error>),
    /// A program or library of `--user`.
    #[error(transparent)]
    User(#[from] kerntune_machine::UserBinaryError),
    /// Patches that there are for other kernels.
    #[error("there are no patches {set} for Linux {version}: take a source of the series 6.12 (--source debian:6.12)")]
    NoPatches {
        /// What the patches are called.
        set: String,
        /// The kernel's release.
        version: String,
    },
    /// A recording from which a study's figures do not follow.
    #[error("kernel {kernel}: {source}")]
    Study {
        /// The kernel's label.
        kernel: String,
        /// Why they do not.
        source: kerntune_paper::CostError,
    },
    /// An image whose functions say no tags.
    #[error("{}: the compiler placed no triggers in it; build a kernel with the patches of kernel/patches/6.12/mcrae-compiler (docs/mcrae.md)", image.display())]
    NoTriggers {
        /// The image.
        image: std::path::PathBuf,
    },
    /// A recipe's name that is none.
    #[error("no recipe `{given}`; there are {known}")]
    UnknownRecipe {
        /// The name as it was typed.
        given: String,
        /// Which recipes there are.
        known: String,
    },
    /// A file of changes that is none.
    #[error("{0}")]
    Changes(String),
    /// Two changes that each tune the kernel.
    #[error("two of these changes have a recipe, and a kernel is tuned by one: give one of them the recipe that does both, as gcc-pgo+layout")]
    TwoRecipes,
    /// A figure that the workload does not have.
    #[error("there is no {metric} of {operation}; there are the operations {}", known.join(", "))]
    NoFigure {
        /// The operation.
        operation: String,
        /// The metric's title.
        metric: String,
        /// The operations that there are.
        known: Vec<String>,
    },
    /// A modifier by itself.
    #[error("a recipe begins with something that it modifies; this is a bug of kerntune")]
    NothingToModify,
    /// A kernel to start from that carries a profile.
    #[error("kernel {kernel} is tuned already, and cannot be built again from what it was built from: start from its base kernel. For two recipes one after the other there is `gcc-pgo+layout`")]
    TunedAlready {
        /// The kernel's label.
        kernel: String,
    },
    /// A tuned kernel that does something else than the one it was made from.
    #[error("kernel {kernel} does not do all that its base kernel does, and is not offered:\n  {}", differences.join("\n  "))]
    Misbehaves {
        /// The tuned kernel's label.
        kernel: String,
        /// One line for each check that it answers otherwise.
        differences: Vec<String>,
    },
    /// A kernel that fails for another reason than its objects.
    #[error("kernel {kernel} fails, but {good} linked with all objects of {kernel} in the place of its own does not: no object is to blame, but how they were linked")]
    NotTheObjects {
        /// The label of the kernel that fails.
        kernel: String,
        /// The label of the kernel that does not.
        good: String,
    },
    /// A good kernel that is none any more.
    #[error("kernel {good}, linked again from its own objects, {failure}: nothing can be told from mixing its objects with others")]
    LinkedAgain {
        /// The kernel's label.
        good: String,
        /// How it fails, to be read after its label.
        failure: String,
    },
    /// A kernel that fails although all that was found is left out.
    #[error("kernel {kernel} {failure}, although every object that was found to be to blame is left out: objects of the mixes that were tried behave in another way than the same ones in a kernel built at once. Start from what `kerntune kernel selftest` says of it")]
    StillFails {
        /// The tuned kernel's label.
        kernel: String,
        /// How it fails, to be read after its label.
        failure: String,
    },
    /// A recipe that can do nothing for kernels of an architecture.
    #[error("recipe {recipe} cannot be had for a kernel built with --arch {arch}: {part}: {why}. There are {known}")]
    NotOnArch {
        /// The recipe's name.
        recipe: &'static str,
        /// What the kernel was built for.
        arch: kerntune_kernel::Arch,
        /// The part of the recipe that cannot.
        part: &'static str,
        /// Why it cannot.
        why: &'static str,
        /// The recipes that can.
        known: String,
    },
    /// A recording of another source than that of the kernel that it is to stand for.
    #[error("kernel {recorded} was recorded, and its counts are not those of kernel {kernel}: they differ in {differs}")]
    AnotherSource {
        /// The label of the kernel that is to be tuned.
        kernel: String,
        /// The label of the kernel that was recorded.
        recorded: String,
        /// What differs, and how.
        differs: String,
    },
    /// Several trainings that are recordings, for a kernel that no machine records.
    #[error(
        "a kernel for {arch} is trained on one workload, unless the recipe is gcc-pgo: leave --also out"
    )]
    OneTraining {
        /// What the kernel is for.
        arch: kerntune_kernel::Arch,
    },
    /// What another recipe is trained by.
    #[error("{option} is not for recipe {recipe}, which takes {instead}")]
    NotOfRecipe {
        /// The option that was given.
        option: &'static str,
        /// The recipe's name.
        recipe: &'static str,
        /// The option that the recipe takes.
        instead: &'static str,
    },
    /// A profile of no kernel.
    #[error("profile {profile} is of no kernel that was built here (it was imported, or is of the running kernel): nothing can be held against it")]
    NoKernel {
        /// The profile's id.
        profile: String,
    },
    /// A recording that says nothing of branches.
    #[error("{} was recorded without edges, of which the counts are made; record again without --no-edges", profile.display())]
    NoEdges {
        /// The directory of the recording's profile.
        profile: std::path::PathBuf,
    },
    /// Wishes for single objects of a kernel that is not compiled.
    #[error("{option} is not for recipe {recipe}, which compiles nothing; leave it out")]
    CompilesNothing {
        /// The option that was given.
        option: &'static str,
        /// The recipe's name.
        recipe: &'static str,
    },
    /// What the recipe has no use for.
    #[error("--values is not for recipe {0}, which counts no values; leave it out")]
    NoValues(&'static str),
    /// `--weights` alone.
    #[error("--weights are the branches and the misses of a front-end model on each call path: they need the model (leave --no-edges out)")]
    WeightsWithoutModel,
    /// `--data` with a model that knows nothing of data.
    #[error("the front-end model {model} has no [data]: no caches of data to follow; docs/models.md shows how to give them")]
    NoDataModel {
        /// The model's name.
        model: String,
    },
    /// Options of a trace without one.
    #[error("{option}: with --no-functions there is no trace of functions for it; leave one of them out")]
    NeedsFunctions {
        /// The option that was given.
        option: &'static str,
    },
    /// A program that is nowhere.
    #[error("--user {word}: no program of kerntune's, no file here and no file of the guest's image has this name{hint}")]
    NoProgram {
        /// The program as it was typed.
        word: String,
        /// Names near to it, as the end of the message; empty if there are none.
        hint: String,
    },
    /// Nothing that could be left out of a kernel.
    #[error("nothing is trimmed from kernel {kernel}: {why}")]
    NothingToTrim {
        /// Its label.
        kernel: String,
        /// What is missing.
        why: String,
    },
    /// A run during which no region was opened.
    #[error("the run `{run}` of workload `{workload}` marked no region, so nothing was recorded: give its steps a `region`, or mark operations in the program (guest/kt_mark.h)")]
    NothingRecorded {
        /// The workload's name.
        workload: String,
        /// The name of its run.
        run: String,
    },
    /// A program that ended well and whose output says otherwise.
    #[error("{step} {complaint}{services}\nall that it printed is in {}", log.display())]
    Output {
        /// Which step it was: the run, the step's number and its program.
        step: String,
        /// What its output says.
        complaint: Box<kerntune_guest::Complaint>,
        /// What the workload's services printed last.
        services: kerntune_machine::LastWords,
        /// The file with all that the program printed.
        log: std::path::PathBuf,
    },
    /// The recorder says that it missed something.
    #[error("{lost} events were lost in the recording; its figures would be wrong. This is a bug of the recorder: keep {path}")]
    LostEvents {
        /// How many events are missing.
        lost: u64,
        /// The run's directory.
        path: std::path::PathBuf,
    },
    /// A profile that was made without a trace.
    #[error("{} has no trace: it was merged, imported or recorded without functions. Reports of its tables work (functions, graph, subsystems …); for single calls record again", profile.display())]
    NoTrace {
        /// The profile's directory.
        profile: std::path::PathBuf,
    },
    /// Functional checks whose results cannot be read.
    #[error("the functional checks ended with something else than results: {message}; all of it is in {}", path.display())]
    SelfTest {
        /// The file with what the checks printed, or with their saved results.
        path: std::path::PathBuf,
        /// What does not read.
        message: String,
    },
    /// Kernels for different machines.
    #[error("kernel {kernel} is for another machine than the first one: of kernels that are timed together all are built with --arch um, or none is")]
    OtherMachine {
        /// The kernel's label.
        kernel: String,
    },
    /// A program that printed something else than times.
    #[error("{} is not a row's times in each line: {message}; `kerntune time` needs a workload whose programs print {{\"row\":…,\"operations\":…,\"nanoseconds\":…}}, such as batched", path.display())]
    NotTimes {
        /// The file with what the program printed.
        path: std::path::PathBuf,
        /// The line that does not read, and why.
        message: String,
    },
    /// An output that would overwrite something.
    #[error("{} is there already; remove it or name another", path.display())]
    Exists {
        /// The output's path.
        path: std::path::PathBuf,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<kerntune_stats::Error> for Error {
    fn from(error: kerntune_stats::Error) -> Self {
        Error::Stats(Box::new(error))
    }
}
