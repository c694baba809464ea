//! What can go wrong between a profile and a tuned kernel.

use crate::quality::Unfit;
use crate::Refused;
use std::path::PathBuf;

/// Each message says what failed, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a process or an interrupt.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// A kernel could not be read.
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    /// The compiler cannot carry the recipe out.
    #[error("recipe {recipe} cannot use {found}: it needs {needs}; choose one with --compiler")]
    Compiler {
        /// The recipe's name.
        recipe: &'static str,
        /// The compiler's name or version.
        found: String,
        /// What it has to be.
        needs: String,
    },
    /// A line of the exclusion list, ours or the user's, that cannot be used.
    #[error("exclusion `{path}` of the gcov build: {reason}")]
    Exclusion {
        /// The object or directory of the line.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The exclusion list as a whole does not read.
    #[error("the list of exclusions does not read: {0}")]
    ExclusionList(#[from] toml::de::Error),
    /// The gcov kernel lacks what identifies its objects.
    #[error(
        "kernel {kernel} has no {missing}, which says which build its counters are from: build it again with \
         its objects kept"
    )]
    NoObjects {
        /// The kernel's label.
        kernel: String,
        /// What it lacks.
        missing: &'static str,
    },
    /// There is no training run to take a profile from.
    #[error("no training run was given: run the workload on the gcov kernel first")]
    NoRuns,
    /// Nothing came out of the running kernel.
    #[error(
        "the gcov kernel exported nothing: no .gcda file below {dir}; look in the run's console log whether \
         debugfs was mounted and /sys/kernel/debug/gcov was there (CONFIG_GCOV_KERNEL), then run the training again"
    )]
    NothingExported {
        /// The training run's directory.
        dir: PathBuf,
    },
    /// Only a part of the kernel's counters came out.
    #[error(
        "{missing} of {expected} .gcda files of kernel {kernel} are missing below {dir}, the first of them {}: a \
         running kernel exports one for each of its objects, so the copy was cut short; run the training again",
        first.display()
    )]
    Incomplete {
        /// The training run's directory.
        dir: PathBuf,
        /// The gcov kernel's label.
        kernel: String,
        /// How many files are missing.
        missing: usize,
        /// How many the kernel exports.
        expected: usize,
        /// The first missing file's path in the kernel's build directory.
        first: PathBuf,
    },
    /// The files belong to another kernel than the one named.
    #[error(
        ".gcda from another build: {file}: {reason}; run the training on kernel {kernel} itself, or name the kernel \
         that it ran on"
    )]
    OtherBuild {
        /// The `.gcda` file.
        file: PathBuf,
        /// How it differs from the kernel's.
        reason: String,
        /// The label of the kernel that was named.
        kernel: String,
    },
    /// The files were made by another compiler than the one that will read them.
    #[error("{file} was written by {found}, but kernel {kernel} is compiled by {expected}; build the gcov kernel \
         and the tuned kernel with one compiler")]
    OtherCompiler {
        /// The `.gcda` file.
        file: PathBuf,
        /// The version of GCC that stands in the file.
        found: String,
        /// The version line of the kernel's compiler.
        expected: String,
        /// The kernel's label.
        kernel: String,
    },
    /// A file that is damaged.
    #[error("{file}: {source}")]
    BadFile {
        /// The `.gcda` file.
        file: PathBuf,
        /// What is wrong with it.
        source: kerntune_convert::Error,
    },
    /// A notes file of the gcov build that is damaged.
    #[error("{file}: {reason}; build the gcov kernel again")]
    BadNotes {
        /// The `.gcno` file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A counter below 0.
    #[error(
        "{file}: counters of function {ident:#x} overflowed (an arc was taken less than 0 times): what is hot cannot be \
         told any more. Train for a shorter time"
    )]
    Overflowed {
        /// The `.gcda` file.
        file: PathBuf,
        /// GCC's number of the function.
        ident: u32,
    },
    /// The file of the value counters' own figures.
    #[error("{file} does not read: `nodes N of N`, `unlisted N` and `crowded N` were expected; run the training again")]
    BadHealth {
        /// The file `values` of the training run.
        file: PathBuf,
    },
    /// Lists of values that had no room.
    #[error(
        "the kernel's value counters overflowed in {dir}: {unlisted} of {listed} values found none of the {nodes} nodes \
         free, so whom calls usually reach is not known. Set CONFIG_GCOV_VALUES_NODES higher in the kernel's \
         configuration, or go without values (leave out --values)"
    )]
    Unlisted {
        /// The directory of the first training run.
        dir: PathBuf,
        /// Times that a value found no node, in all training runs together.
        unlisted: u64,
        /// Times that a value came to a list.
        listed: u64,
        /// Nodes for lists that the kernel has: `CONFIG_GCOV_VALUES_NODES`.
        nodes: u64,
    },
    /// All counters are 0.
    #[error(
        "nothing was executed: all {counters} counters of {files} .gcda files below {dir} are 0; were the counters \
         brought out before the training run, or reset after it?"
    )]
    NothingExecuted {
        /// The directory of the first training run.
        dir: PathBuf,
        /// How many `.gcda` files there are.
        files: u64,
        /// How many counters they hold.
        counters: u64,
    },
    /// A program of LLVM's is absent.
    #[error("recipe {recipe} needs {}, which is not on the PATH: run `apt-get install {package}`", programs.join(" and "))]
    NoPrograms {
        /// The recipe's name.
        recipe: &'static str,
        /// Names of the programs that are absent.
        programs: Vec<String>,
        /// The Debian package that has them.
        package: String,
    },
    /// A program of LLVM's failed.
    #[error("{program} failed on the counts of kernel {kernel}:\n{said}")]
    Program {
        /// The program's name.
        program: String,
        /// The kernel's label.
        kernel: String,
        /// The beginning of what it printed.
        said: String,
    },
    /// A kernel whose addresses cannot be led back to its source.
    #[error(
        "kernel {kernel} has no {missing}: LLVM would make an empty profile of its counts without a word. Build it with `kerntune tune --recipe clang-autofdo` or with --kcflags={flag}"
    )]
    NoDebugInfo {
        /// The kernel's label.
        kernel: String,
        /// The sections that it lacks.
        missing: &'static str,
        /// The compiler flag that makes them.
        flag: &'static str,
    },
    /// A profile that does not pass the gate.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// A recording that is where it should be.
    #[error("profile {profile} is of kernel {kernel} already: use it as it is")]
    NothingToCarry {
        /// The profile's id.
        profile: String,
        /// The kernel as `label (id)`.
        kernel: String,
    },
    /// A recording of another kernel of which too little is the same in this one.
    #[error(
        "{profile} is not carried to kernel {kernel}: {usable} of what it executed is the same there, \
         {at_least} % are needed. Most of what is lost is in {lost}. Record the training run on kernel {kernel}, or take what there \
         is with a lower --at-least"
    )]
    LittleCarried {
        /// The profile and its kernel, in words.
        profile: String,
        /// The other kernel as `label (id)`.
        kernel: String,
        /// The share of what was executed that is the same, in percent with its sign.
        usable: String,
        /// The share that is needed, in percent.
        at_least: u64,
        /// Up to five functions that lost the most, separated by commas.
        lost: String,
    },
    /// A recording without counts.
    #[error("profile {profile}: {reason}")]
    NoCounts {
        /// The profile's id.
        profile: String,
        /// What it lacks.
        reason: kerntune_convert::autofdo::NoCounts,
    },
    /// A sample profile that does not read.
    #[error("{file}: {reason}; remove it and run the command again")]
    BadSamples {
        /// The sample profile as text.
        file: PathBuf,
        /// The line that does not read, and why.
        reason: kerntune_convert::autofdo::SampleError,
    },
    /// A sample profile that holds next to nothing of what ran.
    #[error("the profile made of recording {profile} is of no use: {reason}")]
    PoorSamples {
        /// The recording's id.
        profile: String,
        /// How little of what ran is in it.
        reason: String,
    },
    /// A kernel whose code cannot be rewritten in place.
    #[error("kernel {kernel} cannot be rewritten by BOLT: {reason}")]
    NotRewritable {
        /// The kernel's label.
        kernel: String,
        /// What of it BOLT cannot rewrite.
        reason: String,
    },
    /// A kernel that does not say where its blocks are.
    #[error(
        "kernel {kernel} has no map of its blocks ({}): its compiler or linker did not take the flag for it. Recipes with \
         propeller need Clang 19 and lld 19 or later; with thinlto Linux before 6.13", kerntune_convert::propeller::SECTION
    )]
    NoBlockMap {
        /// The kernel's label.
        kernel: String,
    },
    /// A map of blocks that does not read.
    #[error("the map of blocks of kernel {kernel} cannot be used: {reason}")]
    BadBlockMap {
        /// The kernel's label.
        kernel: String,
        /// What is wrong with the map or the image that it is in.
        reason: String,
    },
    /// A list that would leave the kernel as it is.
    #[error(
        "of the {ran} functions of kernel {kernel} that ran and are in its map of blocks, {listed} can be named in a list: \
         too few. Not among them: {left_out}. Are there line tables (-gmlt)?"
    )]
    FewBlocks {
        /// The kernel's label.
        kernel: String,
        /// Functions that can be named in a list.
        listed: u64,
        /// Functions that ran and are in the map.
        ran: u64,
        /// Up to five that cannot be named, separated by commas.
        left_out: String,
    },
    /// A call graph that cannot be ordered.
    #[error(transparent)]
    Layout(#[from] kerntune_layout::Error),
    /// The tuned kernel does not carry the profile.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
