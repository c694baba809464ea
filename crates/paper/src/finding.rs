//! Findings of papers, with our verdicts.

use crate::survey::RunLocation;
use serde::Serialize;

/// Verdict on a finding of a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingVerdict {
    /// Our figure is within the bounds.
    Reproduced,
    /// Our figure is outside the bounds.
    Contradicted,
    /// The figure's interval crosses a bound: more boots or runs are needed.
    NotShown,
    /// kerntune cannot check the finding.
    CannotBeSeen,
    /// The run that it needs failed.
    NotMade,
}

/// Finding of a paper with our figure and verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingResult {
    /// Statement of the paper.
    pub says: String,
    /// Verdict for our figure.
    pub seen: FindingVerdict,
    /// Our figure; `None` if there is none.
    pub value: Option<f64>,
    /// Interval of a figure that is not exact; infinite at an end without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Unit of the figure.
    pub unit: String,
    /// Smallest and largest figure with which the finding holds.
    pub bounds: [Option<f64>; 2],
    /// Description of our figure, or the reason that there is none.
    pub here: String,
    /// Run and region of the figure.
    pub at: Option<RunLocation>,
}
