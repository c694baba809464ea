//! What a paper says, and what became of it here.

use crate::survey::Place;
use serde::Serialize;

/// What became of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// It is so here, too.
    Reproduced,
    /// Here it is otherwise.
    Contradicted,
    /// The figure's interval reaches over what it has to be: more boots, or more runs, would tell.
    NotShown,
    /// It cannot be seen here.
    CannotBeSeen,
    /// What it is to be seen in could not be run.
    NotMade,
}

/// A finding, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyFinding {
    /// What the paper says.
    pub says: String,
    /// What becomes of it here.
    pub seen: Seen,
    /// The figure that says so.
    pub value: Option<f64>,
    /// Its interval, if it is not exact; infinite where nothing bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Its unit.
    pub unit: String,
    /// What the figure has to be at least, at most.
    pub bounds: [Option<f64>; 2],
    /// What is looked at here, or why nothing is.
    pub here: String,
    /// Where.
    pub at: Option<Place>,
}
