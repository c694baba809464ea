//! Repetition of experiments in published papers: a paper's figures as data, with ours beside them.
//! All but [`run`] and the command are pure: text and comparisons in, tables out.
//!
//! Start from [`Paper::named`] (for the files of `data/papers/`) or [`Paper::parse`]. There are three
//! kinds of papers:
//!
//! - A paper that tunes kernels has [`Experiment`]s. [`ExperimentResult::new`] joins one with the
//!   [`Comparison`] of two kernels; [`PaperOutcome`] holds all, for `kerntune paper --json`. A
//!   [`PaperClaim`] is a statement of the paper, a [`TimedFigure`] our result by a clock.
//! - A paper that changes a kernel by hand is a [`Study`]. [`AbstractionCost`] is the cost of an
//!   abstraction in a recording of each kernel; [`StudyOutcome`] holds all.
//! - A paper that examines a kernel is a [`Survey`]. [`SurveyOutcome`] checks its findings against
//!   our figures.
//!
//! Improvements are computed as in the papers: 100 · (base / optimized − 1) of a time, 100 ·
//! (optimized / base − 1) of a rate. Our figures are counts per operation, where less is better, so
//! theirs is 100 · (base / tuned − 1): a count that fell to a half is an improvement of 100 %.
//!
//! [`Comparison`]: kerntune_compare::Comparison

mod calls;
mod claim;
mod command;
mod finding;
mod outcome;
mod paper;
pub mod report;
pub mod run;
mod study;
mod study_outcome;
mod survey;
mod survey_outcome;
mod timed;

pub use calls::CallTimes;
pub use claim::{FigureKind, FigureRef, PaperClaim};
pub use finding::{FindingResult, FindingVerdict};
pub use outcome::{
    ExperimentOutcome, ExperimentResult, ExperimentState, ImprovementFigure, MeasuredRow, OutcomeSummary,
    PaperOutcome, RecipeOutcome, RowResult, SCHEMA,
};
pub use paper::{names, BetterDirection, ClockRow, Experiment, Paper, PaperRow, RowSource, SelfOrChild};
pub use study::{
    change_percent, Abstraction, AbstractionCost, CacheFunctions, CostError, Study, StudyQuantity, StudyRow,
    StudyTable, StudyVariant,
};
pub use study_outcome::{StudyKernel, StudyOutcome, StudyRowResult, StudyTableResult};
pub use survey::{
    BoundaryPath, FigureReport, Measure, PathCount, RunLocation, Survey, SurveyClaim, SurveyFigure,
    SurveyRow, SurveyTable,
};
pub use survey_outcome::{
    SurveyOutcome, SurveyRowResult, SurveyRun, SurveyTableResult, SurveyText, SURVEY_SCHEMA,
};
pub use timed::{ClockSource, TimedFigure};

/// Error in a paper's file.
// Messages document the variants.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no paper {name}; there are {}", names().join(", "))]
    Unknown { name: String },
    #[error("{origin} is not a paper's file: {why}")]
    Syntax {
        origin: String,
        /// Place and reason, several lines.
        why: String,
    },
    #[error("{origin}, \"{experiment}\", row \"{row}\": {why}")]
    Row {
        origin: String,
        /// Title of the experiment or table.
        experiment: String,
        row: String,
        why: &'static str,
    },
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

use kerntune_command::Room;

/// The command `paper`.
pub static ROOM: Room =
    Room { commands: &[&command::COMMAND], examples: include_str!("examples.tsv"), ..Room::EMPTY };
