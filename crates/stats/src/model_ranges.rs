//! Agreement of several front-end models with the clock.

use crate::RankCorrelation;
use serde::{Deserialize, Serialize};

/// Agreement of the ranges of several front-end models with the clock. It is not known which model
/// is right, so each row's change is a range over all models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRangeSummary {
    /// Names of the models, in the order of [`crate::PredictedRow::under_models_percent`].
    pub models: Vec<String>,
    /// Number of rows with a range.
    pub points: usize,
    /// Rows of `points` whose timed change lies in the range.
    pub inside: usize,
    /// Rows of `points` whose timed interval overlaps the range.
    pub overlapping: usize,
    /// Rows of `points` that the clock shows to have changed: the interval excludes 0.
    pub shown: usize,
    /// Rows of `shown` whose whole range has the sign of the timed change.
    pub right_sign: usize,
    /// Correlation of the middle of each range with the time; `None` with fewer than three points.
    pub middle: Option<RankCorrelation>,
    /// Correlation of each model's change with the time, in the order of `models`.
    pub by_model: Vec<Option<RankCorrelation>>,
}

/// Range of one row's change over all models.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelRange {
    /// Lowest change under a model, in per cent.
    pub low_percent: f64,
    /// Highest change under a model, in per cent.
    pub high_percent: f64,
    /// True if the timed change lies in the range.
    pub inside: bool,
    /// True if the timed interval overlaps the range.
    pub overlaps: bool,
}
