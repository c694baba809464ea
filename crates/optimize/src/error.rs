//! Errors between a profile and a tuned kernel.

use crate::quality::ProfileRefusal;
use crate::ProofRefusal;
use kerntune_kernel::install_advice;
use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// Error of a recipe's steps: each message says what failed, where, and what to do next.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    #[error("recipe {recipe} cannot use {found}: it needs {needs}; choose one with --compiler")]
    Compiler { recipe: &'static str, found: String, needs: String },
    #[error(
        "recipe {recipe} cannot use {found}: {reason}; {}",
        match fits {
            Some(other) => format!("choose another one, such as --compiler {other}"),
            None => "install another version of it".to_owned(),
        }
    )]
    CompilerFails { recipe: &'static str, found: String, reason: String, fits: Option<String> },
    #[error("exclusion `{path}` of the gcov build: {reason}")]
    Exclusion { path: String, reason: String },
    #[error("cannot parse the list of exclusions: {0}")]
    ExclusionList(#[from] toml::de::Error),
    #[error(
        "kernel {kernel} has no {missing}, which says which build its counters are from: build it again with \
         its objects kept"
    )]
    NoObjects { kernel: String, missing: &'static str },
    #[error("no training run was given: run the workload on the gcov kernel first")]
    NoRuns,
    #[error(
        "the gcov kernel exported nothing: no .gcda file below {dir}; look in the run's console log whether \
         debugfs was mounted and /sys/kernel/debug/gcov was there (CONFIG_GCOV_KERNEL), then run the training again"
    )]
    NothingExported { dir: PathBuf },
    #[error(
        "{missing} of {expected} .gcda files of kernel {kernel} are missing below {dir}, the first of them {}: a \
         running kernel exports one for each of its objects, so the copy was cut short; run the training again",
        first.display()
    )]
    Incomplete { dir: PathBuf, kernel: String, missing: usize, expected: usize, first: PathBuf },
    #[error(
        ".gcda from another build: {file}: {reason}; run the training on kernel {kernel} itself, or name the kernel \
         that it ran on"
    )]
    OtherBuild { file: PathBuf, reason: String, kernel: String },
    #[error("{file} was written by {found}, but kernel {kernel} is compiled by {expected}; build the gcov kernel \
         and the tuned kernel with one compiler")]
    OtherCompiler { file: PathBuf, found: String, expected: String, kernel: String },
    #[error("{file}: {source}")]
    BadFile { file: PathBuf, source: kerntune_convert::Error },
    #[error("{file}: {reason}; build the gcov kernel again")]
    BadNotes { file: PathBuf, reason: String },
    #[error(
        "{file}: counters of function {ident:#x} overflowed (an arc count is negative): hot code cannot be \
         identified. Train for a shorter time"
    )]
    Overflowed { file: PathBuf, ident: u32 },
    #[error(
        "{file}: the weighted sum of the counters of function {ident:#x} overflows, so that hot code cannot be \
         identified: give smaller weights"
    )]
    WeightOverflow { file: PathBuf, ident: u32 },
    #[error(
        "{file} is damaged: expected `nodes N of N`, `unlisted N` and `crowded N`; run the training again"
    )]
    BadHealth { file: PathBuf },
    #[error(
        "the kernel's value counters overflowed in {dir}: {unlisted} of {listed} values found none of the {nodes} nodes \
         free, so whom calls usually reach is not known. Set CONFIG_GCOV_VALUES_NODES higher in the kernel's \
         configuration, or go without values (leave out --values)"
    )]
    Unlisted { dir: PathBuf, unlisted: u64, listed: u64, nodes: u64 },
    #[error(
        "nothing was executed: all {counters} counters of {files} .gcda files below {dir} are 0; were the counters \
         copied before the training run, or reset after it?"
    )]
    NothingExecuted { dir: PathBuf, files: u64, counters: u64 },
    #[error("the counters of kernel {kernel} cannot be read from a recording of it: {reason}")]
    ImageCounters { kernel: String, reason: String },
    #[error(
        "recipe {recipe} needs {}, which is not on the PATH: {}", programs.join(" and "),
        install_advice(std::slice::from_ref(package))
    )]
    NoPrograms { recipe: &'static str, programs: Vec<String>, package: String },
    #[error("{program} failed on the counts of kernel {kernel}:\n{printed}")]
    Program { program: String, kernel: String, printed: String },
    #[error(
        "kernel {kernel} has no {missing}: LLVM would silently make an empty profile of its counts. Build it with `kerntune tune --recipe clang-autofdo` or with --kcflags={flag}"
    )]
    NoDebugInfo { kernel: String, missing: &'static str, flag: &'static str },
    #[error(transparent)]
    Unfit(#[from] ProfileRefusal),
    #[error("profile {profile} is of kernel {kernel} already: use it as it is")]
    NothingToTransfer { profile: String, kernel: String },
    #[error(
        "profile {profile} has calls and no blocks: its functions are found by name in any kernel, so there is nothing \
         to transfer. Give it as it is to {recipes}"
    )]
    FoundByName { profile: String, recipes: String },
    #[error(
        "{profile} is not transferred to kernel {kernel}: {usable} of what it executed is the same there, \
         {at_least} % are needed. Most of what is lost is in {lost}. Record the training run on kernel {kernel}, or take what there \
         is with a lower --min-percent"
    )]
    TooLittleTransferred { profile: String, kernel: String, usable: String, at_least: u64, lost: String },
    #[error("profile {profile}: {reason}")]
    NoCounts { profile: String, reason: kerntune_convert::autofdo::NoCounts },
    #[error("{file}: {reason}; remove it and run the command again")]
    BadSamples { file: PathBuf, reason: kerntune_convert::autofdo::SampleError },
    #[error("the profile made from recording {profile} is useless: {reason}")]
    PoorSamples { profile: String, reason: String },
    #[error("kernel {kernel} cannot be rewritten by BOLT: {reason}")]
    NotRewritable { kernel: String, reason: String },
    #[error(
        "kernel {kernel} has no map of its blocks ({}): its compiler or linker did not take the flag for it. Recipes with \
         propeller need Clang 19 and lld 19 or later; with thinlto Linux before 6.13", kerntune_convert::propeller::SECTION
    )]
    NoBlockMap { kernel: String },
    #[error("the map of blocks of kernel {kernel} cannot be used: {reason}")]
    BadBlockMap { kernel: String, reason: String },
    #[error(
        "of the {ran} functions of kernel {kernel} that ran and are in its map of blocks, {listed} can be named in a list: \
         too few. Not among them: {left_out}. Are there line tables (-gmlt)?"
    )]
    FewBlocks { kernel: String, listed: u64, ran: u64, left_out: String },
    #[error(transparent)]
    Layout(#[from] kerntune_layout::Error),
    #[error(transparent)]
    Refused(#[from] ProofRefusal),
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::NoPrograms { .. } => ErrorClass::MissingPrerequisite,
            Self::NotRewritable { .. }
            | Self::Compiler { .. }
            | Self::CompilerFails { .. }
            | Self::Exclusion { .. }
            | Self::ExclusionList(_) => ErrorClass::Usage,
            _ => ErrorClass::RefusedResult,
        }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
