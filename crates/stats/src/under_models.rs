//! What several front-end models say of the same rows: a range, held against the clock.

use crate::RankCorrelation;
use serde::{Deserialize, Serialize};

/// What all models together are worth: which is right is not known, so that each row's change is a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnderModels {
    /// The models, in the order of [`crate::PredictedRow::under_models_percent`].
    pub models: Vec<String>,
    /// Rows with a range.
    pub points: usize,
    /// Of these, those whose timed change lies in it.
    pub inside: usize,
    /// Those whose timed interval has a part of it.
    pub overlapping: usize,
    /// Rows that the clock shows to have changed: the interval leaves 0 out.
    pub shown: usize,
    /// Of these, those whose whole range has the clock's sign.
    pub right_sign: usize,
    /// Of the middle of each range with the time; `None` with fewer than three points.
    pub middle: Option<RankCorrelation>,
    /// Of each model's own change with the time, in the order of `models`.
    pub by_model: Vec<Option<RankCorrelation>>,
}

/// The range of one row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelledRange {
    /// The most that a model takes off, per cent.
    pub low_percent: f64,
    /// The least.
    pub high_percent: f64,
    /// Whether the timed change lies in it.
    pub inside: bool,
    /// Whether its interval has a part of it.
    pub overlaps: bool,
}
