//! Errors of the guard.

use kerntune_guest::Problem;
use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// An error of the guard; the message says what to do.
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
    Tune(Box<kerntune_tune::Error>),
    #[error("{}", listed(path, problems))]
    File { path: PathBuf, problems: Vec<Problem> },
    #[error(
        "profile {profile} has no row {row} with operations: `kerntune report {profile}` shows those it has"
    )]
    NoRow { profile: String, row: String },
    #[error("no figures can be made of profile {profile}: {what}")]
    NotWhole { profile: String, what: &'static str },
    #[error(
        "the parts of row {row} do not sum to the whole: {rest} instructions are left; please report this"
    )]
    Sum { row: String, rest: i128 },
    #[error("the figures of {} are not comparable with those of this machine: {differs}. Make them again with `kerntune guard record`, or name the kernel with --against", path.display())]
    OtherMaking { path: PathBuf, differs: String },
    #[error("the figures of {} cannot be compared with those of this program: {differs}. Make them again from the older program with `kerntune guard record --program`", path.display())]
    OtherProgramMaking { path: PathBuf, differs: String },
    #[error("workload {workload} starts its work with {shell}: name the program to guard in guard.toml, as `program = [\"NAME\"]` of the workload")]
    WhichProgram { workload: String, shell: String },
    #[error("the guest of workload {workload} has no file {name}, which is to be guarded: `program` of guard.toml names files that the workload packs")]
    NoProgram { workload: String, name: String },
    #[error("{} has no figures of {what}: make them with `kerntune guard record`", path.display())]
    NoFigures { path: PathBuf, what: String },
    #[error("git {what} in {}: {said}", tree.display())]
    Git { what: String, tree: PathBuf, said: String },
    #[error("which git tree? Name it with --git DIR, or as `git` in guard.toml")]
    NoTree,
    #[error("{what} is of one {kind}, and guard.toml has {}: name one with --{kind}", names.join(", "))]
    Several { what: &'static str, kind: &'static str, names: Vec<String> },
    #[error("guard.toml has no {kind} \"{name}\": it has {}", known.join(", "))]
    NotInFile { kind: &'static str, name: String, known: Vec<String> },
    #[error("{commit} cannot be an end of the search: {why}")]
    NoEnd { commit: String, why: String },
    #[error("no row of {workload} grew by more than its tolerance from {good} to {bad}: there is nothing to find. Name a row with --row to search for it anyway")]
    NothingGrew { workload: String, good: String, bad: String },
    #[error("{row} did not grow from {good} to {bad} ({paths} instructions/op): swap the two to find what made it shorter")]
    NotLonger { row: String, good: String, bad: String, paths: String },
    #[error("{good} is not an ancestor of {bad}")]
    NotBefore { good: String, bad: String },
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Kernel(inner) => inner.class(),
            Self::Guest(inner) => inner.class(),
            Self::Profile(inner) => inner.class(),
            Self::Tune(inner) => inner.class(),
            Self::NotWhole { .. } | Self::OtherMaking { .. } | Self::OtherProgramMaking { .. } => {
                ErrorClass::RefusedResult
            }
            Self::NoRow { .. } | Self::Sum { .. } => ErrorClass::RecordingFailure,
            Self::NoEnd { .. } => ErrorClass::GuestFailure,
            _ => ErrorClass::Usage,
        }
    }
}

impl From<kerntune_tune::Error> for Error {
    fn from(error: kerntune_tune::Error) -> Self {
        Self::Tune(Box::new(error))
    }
}

fn listed(path: &std::path::Path, problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{}:{problem}", path.display())).collect::<Vec<_>>().join("\n")
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
