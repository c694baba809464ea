//! Confidence intervals.

use serde::{Deserialize, Serialize};

/// Confidence interval. The upper end is infinite if the data do not bound it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end, possibly infinite.
    pub high: f64,
}

impl Interval {
    /// Checks whether `value` lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns the distance between the ends.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// Smallest mean that a ratio may divide by. As values are at most 1e100, every ratio is finite.
pub(crate) const MIN_MEAN: f64 = 1e-100;
