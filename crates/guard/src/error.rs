//! What can go wrong beside a figure that grew.

use kerntune_guest::Problem;
use std::path::PathBuf;

/// Each variant speaks for itself; the room's message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a process or an interrupt.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// A kernel or its source.
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
    /// A workload.
    #[error(transparent)]
    Guest(#[from] kerntune_guest::Error),
    /// A profile.
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    /// A recording.
    #[error(transparent)]
    Tune(Box<kerntune_tune::Error>),
    /// The file that says what is guarded.
    #[error("{}", listed(path, problems))]
    File {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
    /// A row that was not recorded.
    #[error(
        "profile {profile} has no row {row} with operations: `kerntune report {profile}` shows those it has"
    )]
    NoRow {
        /// The profile's id.
        profile: String,
        /// The row.
        row: String,
    },
    /// A profile that says too little.
    #[error("no figures can be made of profile {profile}: {what}")]
    NotWhole {
        /// Its id.
        profile: String,
        /// What is missing.
        what: &'static str,
    },
    /// An error of kerntune's.
    #[error(
        "the parts of row {row} do not sum to the whole: {rest} instructions are left; please report this"
    )]
    Sum {
        /// The row.
        row: String,
        /// What is left.
        rest: i128,
    },
    /// Figures of another making.
    #[error("the figures of {} cannot be held against ones made here: {differs}. Make them again with `kerntune guard record`, or name the kernel with --against", path.display())]
    OtherMaking {
        /// The file.
        path: PathBuf,
        /// What is another.
        differs: String,
    },
    /// Figures that are not there.
    #[error("{} has no figures of {what}: make them with `kerntune guard record`", path.display())]
    NoFigures {
        /// The file.
        path: PathBuf,
        /// Of what.
        what: String,
    },
    /// Git says no.
    #[error("git {what} in {}: {said}", tree.display())]
    Git {
        /// What was asked of it.
        what: String,
        /// Where.
        tree: PathBuf,
        /// What it said.
        said: String,
    },
    /// No git tree.
    #[error("which git tree? Name it with --git DIR, or as `git` in guard.toml")]
    NoTree,
    /// The file names several, and one is needed.
    #[error("{what} is of one {kind}, and guard.toml has {}: name one with --{kind}", names.join(", "))]
    Several {
        /// What asks.
        what: &'static str,
        /// Of what there are several.
        kind: &'static str,
        /// Their names.
        names: Vec<String>,
    },
    /// A name that the file does not have.
    #[error("guard.toml has no {kind} \"{name}\": it has {}", known.join(", "))]
    NotInFile {
        /// Of what kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// An end of a bisection that has no figures.
    #[error("{commit} cannot be an end of the search: {why}")]
    NoEnd {
        /// The commit.
        commit: String,
        /// Why.
        why: String,
    },
    /// Nothing to look for.
    #[error("no row of {workload} grew by more than its tolerance from {good} to {bad}: there is nothing to find. Name a row with --row to look for it all the same")]
    NothingGrew {
        /// The workload.
        workload: String,
        /// The one end.
        good: String,
        /// The other.
        bad: String,
    },
    /// The row shrank.
    #[error("{row} did not grow from {good} to {bad} ({paths} instructions/op): exchange the two to look for what made it shorter")]
    NotLonger {
        /// The row.
        row: String,
        /// The one end.
        good: String,
        /// The other.
        bad: String,
        /// Its path at the one, and at the other.
        paths: String,
    },
    /// Not one before the other.
    #[error("{good} is no ancestor of {bad}: there is no way from the one to the other")]
    NotBefore {
        /// The commit that is to be the earlier.
        good: String,
        /// The one that is to be the later.
        bad: String,
    },
}

impl From<kerntune_tune::Error> for Error {
    fn from(error: kerntune_tune::Error) -> Self {
        Self::Tune(Box::new(error))
    }
}

fn listed(path: &std::path::Path, problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{}:{problem}", path.display())).collect::<Vec<_>>().join("\n")
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
