//! Verdicts over figures (pure).

use crate::cause::RowCauses;
use crate::deferred::DeferralClass;
use crate::figures::RowFigure;
use crate::file::Tolerance;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Verdict over a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// The path grew by more than its tolerance: a finding.
    Longer,
    /// The path did not grow, but a part of it did and others compensate: a finding.
    #[serde(rename = "made-up")]
    Compensated,
    /// The path shrank by more than its tolerance.
    Shorter,
    /// The path changed by no more than its tolerance.
    Same,
}

impl RowVerdict {
    /// Checks whether the verdict makes a check fail.
    pub fn is_finding(self) -> bool {
        matches!(self, RowVerdict::Longer | RowVerdict::Compensated)
    }
}

impl fmt::Display for RowVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowVerdict::Longer => "LONGER",
            RowVerdict::Compensated => "MADE UP FOR",
            RowVerdict::Shorter => "shorter",
            RowVerdict::Same => "same",
        })
    }
}

/// Returns a change in percent; `None` if `before` is 0.
pub fn percent(before: f64, after: f64) -> Option<f64> {
    (before != 0.0).then(|| 100.0 * (after / before - 1.0))
}

/// Checks whether a path length changed by more than its tolerance.
pub fn is_beyond(before: f64, after: f64, tolerance: &Tolerance) -> bool {
    let change = (after - before).abs();
    change > tolerance.min && change > before * tolerance.path / 100.0
}

/// Judges a row. Calls `compensated`, which returns instructions per operation, only if the path
/// did not get longer.
pub fn judge_row(
    figures: [&RowFigure; 2],
    tolerance: &Tolerance,
    compensated: impl FnOnce() -> f64,
) -> RowVerdict {
    let [before, after] = figures.map(RowFigure::path);
    match is_beyond(before, after, tolerance) {
        true if after > before => return RowVerdict::Longer,
        changed => {
            let min = tolerance.min.max(before * tolerance.compensated / 100.0);
            if compensated() > min {
                return RowVerdict::Compensated;
            }
            if changed {
                return RowVerdict::Shorter;
            }
        }
    }
    RowVerdict::Same
}

/// Returns the largest compensated change, in instructions per operation.
pub fn compensated(causes: &RowCauses) -> f64 {
    let operations = causes.operations.into_iter().max().unwrap_or(1).max(1);
    causes.compensated.first().map_or(0.0, |of| of.instructions as f64 / operations as f64)
}

/// Deferred work in all rows of a workload. Pairs are base and new.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DeferredWork {
    /// Instructions by class.
    pub classes: BTreeMap<DeferralClass, [u64; 2]>,
    /// Sum over all classes.
    pub sum: [u64; 2],
    /// Change of the sum in percent; `None` if it was 0.
    pub change_percent: Option<f64>,
    /// Largest tolerated growth, in percent.
    pub tolerance: f64,
    /// True if it grew by more: a finding.
    pub longer: bool,
}

impl DeferredWork {
    /// Sums over rows that did the same work on both sides.
    pub fn of<'a>(rows: impl Iterator<Item = [&'a RowFigure; 2]>, tolerance: f64) -> Self {
        let mut of = Self { tolerance, ..Self::default() };
        for pair in rows {
            for (side, row) in pair.into_iter().enumerate() {
                for (class, count) in &row.deferred {
                    of.classes.entry(*class).or_default()[side] += count;
                    of.sum[side] += count;
                }
            }
        }
        let [before, after] = of.sum.map(|sum| sum as f64);
        of.change_percent = percent(before, after);
        of.longer = after > before && of.change_percent.is_none_or(|change| change > tolerance);
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(own: u64, timer: u64) -> RowFigure {
        let deferred = if timer > 0 { [(DeferralClass::Timer, timer)].into() } else { BTreeMap::new() };
        RowFigure { row: "r".into(), operations: 100, kernel_instructions: own + timer, deferred }
    }

    fn judged(before: u64, after: u64, compensated: f64) -> RowVerdict {
        let tolerance = Tolerance { path: 0.1, compensated: 1.0, ..Tolerance::default() };
        judge_row([&figure(before, 0), &figure(after, 9_999)], &tolerance, || compensated)
    }

    #[test]
    fn a_row_is_judged_by_its_own_instructions_alone() {
        assert_eq!(judged(100_000, 100_000, 0.0), RowVerdict::Same);
        assert_eq!(judged(100_000, 100_099, 0.0), RowVerdict::Same, "less than a tenth of a per cent");
        assert_eq!(judged(100_000, 100_200, 0.0), RowVerdict::Longer);
        assert_eq!(judged(100_000, 99_800, 0.0), RowVerdict::Shorter);
        // In a row of ten instructions, a tenth of one is far beyond the tolerance in percent, but
        // too little to matter.
        assert_eq!(judged(1_000, 1_010, 0.0), RowVerdict::Same);
        assert_eq!(judged(100_000, 100_000, 9.9), RowVerdict::Same);
        assert_eq!(judged(100_000, 100_000, 10.1), RowVerdict::Compensated);
        assert_eq!(judged(100_000, 99_000, 10.1), RowVerdict::Compensated);
    }

    #[test]
    fn what_is_put_off_has_a_sum_and_a_tolerance_of_its_own() {
        let pairs = [[figure(1, 100), figure(1, 104)], [figure(1, 0), figure(1, 5)]];
        let of = |tolerance| DeferredWork::of(pairs.iter().map(|[a, b]| [a, b]), tolerance);
        let found = of(10.0);
        assert_eq!((found.sum, found.longer), ([100, 109], false));
        assert!(of(5.0).longer);
        assert_eq!(
            DeferredWork::of([].into_iter(), 1.0),
            DeferredWork { tolerance: 1.0, ..DeferredWork::default() }
        );
    }
}
