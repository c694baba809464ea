//! Figures in, verdicts out. Pure.

use crate::cause::Causes;
use crate::figures::RowFigure;
use crate::file::Tolerance;
use crate::put_off::Class;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It grew by more than its tolerance: a finding.
    Longer,
    /// It did not, but a part of it did, and others make up for it: a finding.
    MadeUp,
    /// It shrank by more than its tolerance.
    Shorter,
    /// Neither.
    Same,
}

impl Verdict {
    /// Whether a check fails by it.
    pub fn is_finding(self) -> bool {
        matches!(self, Verdict::Longer | Verdict::MadeUp)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Longer => "LONGER",
            Verdict::MadeUp => "MADE UP FOR",
            Verdict::Shorter => "shorter",
            Verdict::Same => "same",
        })
    }
}

/// A change in per cent; none from nothing.
pub fn percent(before: f64, after: f64) -> Option<f64> {
    (before != 0.0).then(|| 100.0 * (after / before - 1.0))
}

/// Whether a path of so many instructions changed by more than is tolerated.
pub fn is_beyond(before: f64, after: f64, tolerance: &Tolerance) -> bool {
    let change = (after - before).abs();
    change > tolerance.least && change > before * tolerance.path / 100.0
}

/// The verdict over a row; `causes` are asked only where it did not get longer.
pub fn row(figures: [&RowFigure; 2], tolerance: &Tolerance, made_up: impl FnOnce() -> f64) -> Verdict {
    let [before, after] = figures.map(RowFigure::path);
    match is_beyond(before, after, tolerance) {
        true if after > before => return Verdict::Longer,
        changed => {
            let least = tolerance.least.max(before * tolerance.made_up / 100.0);
            if made_up() > least {
                return Verdict::MadeUp;
            }
            if changed {
                return Verdict::Shorter;
            }
        }
    }
    Verdict::Same
}

/// Instructions of an operation that are made up for: the most at one place of the call tree.
pub fn made_up(causes: &Causes) -> f64 {
    let operations = causes.operations.into_iter().max().unwrap_or(1).max(1);
    causes.made_up.first().map_or(0.0, |of| of.instructions as f64 / operations as f64)
}

/// What was put off in all rows of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PutOff {
    /// Instructions of both sides, by class.
    pub classes: BTreeMap<Class, [u64; 2]>,
    /// Their sums.
    pub sum: [u64; 2],
    /// The change of the sum, per cent.
    pub change_percent: Option<f64>,
    /// By how much it may grow.
    pub tolerance: f64,
    /// Whether it did by more: a finding.
    pub longer: bool,
}

impl PutOff {
    /// Of rows that did the same work on both sides.
    pub fn of<'a>(rows: impl Iterator<Item = [&'a RowFigure; 2]>, tolerance: f64) -> Self {
        let mut of = Self { tolerance, ..Self::default() };
        for pair in rows {
            for (side, row) in pair.into_iter().enumerate() {
                for (class, count) in &row.put_off {
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
        let put_off = if timer > 0 { [(Class::Timer, timer)].into() } else { BTreeMap::new() };
        RowFigure { row: "r".into(), operations: 100, kernel_instructions: own + timer, put_off }
    }

    fn judged(before: u64, after: u64, made_up: f64) -> Verdict {
        let tolerance = Tolerance { path: 0.1, least: 0.5, made_up: 1.0, put_off: 10.0 };
        row([&figure(before, 0), &figure(after, 9_999)], &tolerance, || made_up)
    }

    #[test]
    fn a_row_is_judged_by_its_own_instructions_alone() {
        assert_eq!(judged(100_000, 100_000, 0.0), Verdict::Same);
        assert_eq!(judged(100_000, 100_099, 0.0), Verdict::Same, "less than a tenth of a per cent");
        assert_eq!(judged(100_000, 100_200, 0.0), Verdict::Longer);
        assert_eq!(judged(100_000, 99_800, 0.0), Verdict::Shorter);
        // A row of ten instructions: a hundredth of one is ten times the tolerance, and nothing.
        assert_eq!(judged(1_000, 1_010, 0.0), Verdict::Same);
        assert_eq!(judged(100_000, 100_000, 9.9), Verdict::Same);
        assert_eq!(judged(100_000, 100_000, 10.1), Verdict::MadeUp);
        assert_eq!(judged(100_000, 99_000, 10.1), Verdict::MadeUp);
    }

    #[test]
    fn what_is_put_off_has_a_sum_and_a_tolerance_of_its_own() {
        let pairs = [[figure(1, 100), figure(1, 104)], [figure(1, 0), figure(1, 5)]];
        let of = |tolerance| PutOff::of(pairs.iter().map(|[a, b]| [a, b]), tolerance);
        let found = of(10.0);
        assert_eq!((found.sum, found.longer), ([100, 109], false));
        assert!(of(5.0).longer);
        assert_eq!(PutOff::of([].into_iter(), 1.0), PutOff { tolerance: 1.0, ..PutOff::default() });
    }
}
