//! Experiments of published papers, to be repeated: a paper's figures as data, and ours beside them.
//! Pure: text and comparisons in, tables out.
//!
//! Start from [`Paper::named`] (those of `papers/`) or [`Paper::parse`], which says for each row of the paper's tables
//! what of a workload answers to it. [`Measured::new`] joins an [`Experiment`] with the [`Comparison`] of two kernels,
//! one tuned for its workload; [`Outcome`] is all of the paper, and `kerntune paper --json`. What the paper says of them is a
//! [`Claim`], what a clock says [`Timed`]. A paper that changes its kernel
//! by hand is a [`Study`]: [`Cost`] says what an abstraction cost in a recording of each kernel, [`StudyOutcome`] is all. One
//! that looks at a kernel and finds something is a [`Survey`], whose findings [`SurveyOutcome`] holds against our figures.
//!
//! An improvement is what the papers call so: 100 · (base / optimised − 1) of a time, 100 · (optimised / base − 1) of
//! a rate. Our figures are counts per operation, where less is better, so that theirs is 100 · (base / tuned − 1): of
//! one that fell to a half, 100 %.
//!
//! [`Comparison`]: kerntune_compare::Comparison

mod calls;
mod claim;
mod finding;
mod outcome;
mod paper;
mod study;
mod study_outcome;
mod survey;
mod survey_outcome;
mod timed;

pub use calls::Calls;
pub use claim::{Claim, Evidence, Gain};
pub use finding::{Seen, SurveyFinding};
pub use outcome::{Figure, Line, Measured, Ours, Outcome, Part, State, Summary, SCHEMA};
pub use paper::{names, Better, Experiment, Paper, Row, SelfOrChild, Source};
pub use study::{change_percent, Abstraction, Cost, CostError, Quantity, Study, StudyRow, Table, Variant};
pub use study_outcome::{StudyKernel, StudyLine, StudyOutcome, StudyTable};
pub use survey::{
    Before, Counted, Finding, Measure, Place, Shows, Survey, SurveyFigure, SurveyRow, SurveyTable,
};
pub use survey_outcome::{SurveyLine, SurveyOutcome, SurveyPart, SurveyRun, SurveyText, SURVEY_SCHEMA};
pub use timed::Timed;

/// What can be wrong with a paper's file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such paper.
    #[error("there is no paper {name}; there are {}", names().join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// Not TOML, or keys that are not a paper's.
    #[error("{origin} is not a paper's file: {why}")]
    Syntax {
        /// The file.
        origin: String,
        /// Where and what, several lines.
        why: String,
    },
    /// A row that does not say what it is to be compared with.
    #[error("{origin}, \"{experiment}\", row \"{row}\": {why}")]
    Row {
        /// The file.
        origin: String,
        /// The experiment's title.
        experiment: String,
        /// The row's name.
        row: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
