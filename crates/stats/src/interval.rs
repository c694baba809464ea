//! Both ends of what a figure may be.

use serde::{Deserialize, Serialize};

/// Both ends. The upper one is infinite where the data bound nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` is inside.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// From end to end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// No smaller mean is divided by, so that every ratio is finite: values are at most 1e100.
pub(crate) const SMALLEST: f64 = 1e-100;
