//! Timed results of a paper's rows.

use crate::paper::improvement;
use crate::ClockRow;
use kerntune_stats::{KernelFiles, MeasuredKernel, RowDirection, RowVerdict, TimedComparison, TimedRow};
use serde::Serialize;
use std::fmt;

/// Timed result of a row, for both kernels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimedFigure {
    /// Unit of `base`, `tuned` and `std_dev`.
    pub unit: String,
    /// Mean over the base kernel's boots.
    pub base: f64,
    /// Mean over the tuned kernel's boots.
    pub tuned: f64,
    /// Standard deviation of the tuned kernel's boots.
    pub std_dev: f64,
    /// Improvement by the papers' formula: 100 · (base / tuned − 1) of times, the inverse ratio of
    /// rates.
    pub improvement_percent: f64,
    /// Lower end of the 95 % interval.
    pub low_percent: f64,
    /// Upper end of the 95 % interval; `None` if unbounded.
    pub high_percent: Option<f64>,
    /// Verdict, corrected for the number of timed rows.
    pub verdict: RowVerdict,
    /// Number of boots or runs of the base and the tuned kernel.
    pub units: [usize; 2],
}

/// Kernels of timed results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockSource {
    /// Workload that was timed.
    pub workload: String,
    /// Machine that ran it.
    pub machine: String,
    /// Base kernel: release and id.
    pub base: String,
    /// Tuned kernel: release and id.
    pub tuned: String,
}

impl ClockSource {
    pub(crate) fn of(comparison: &TimedComparison, workload: &str) -> Self {
        Self {
            workload: workload.into(),
            machine: comparison.machine.clone(),
            base: kernels(&comparison.base),
            tuned: kernels(&comparison.tuned),
        }
    }
}

impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, machine, base, tuned } = self;
        write!(f, "workload {workload} on {machine}: {base} against {tuned}")
    }
}

/// Names the kernels of one side: `Linux 7.3.4 (b95360c8e0553b44)`.
fn kernels(of: &KernelFiles) -> String {
    let name = |kernel: &MeasuredKernel| {
        let id = kernel.id.as_ref().or(kernel.build_id.as_ref());
        let id = id.map(|id| format!(" ({id})")).unwrap_or_default();
        format!("Linux {}{id}", kernel.release)
    };
    of.kernels.iter().map(name).collect::<Vec<_>>().join(", ")
}

impl TimedFigure {
    /// Finds a row, and the comparison that has it; returns `None` if it was not timed.
    pub(crate) fn find<'a>(
        comparisons: &'a [TimedComparison],
        of: &ClockRow,
    ) -> Option<(&'a TimedComparison, Self)> {
        comparisons.iter().find_map(|comparison| {
            let row = comparison.rows.iter().find(|row| row.suite == of.workload && row.row == of.row)?;
            Some((comparison, Self::of(row)))
        })
    }

    fn of(row: &TimedRow) -> Self {
        // `improvement` is that of times: a rate has improved if its inverse has.
        let gain = |change: f64| match row.better {
            RowDirection::Lower => improvement(100.0, 100.0 + change),
            RowDirection::Higher => change,
        };
        let (low, high) = match row.better {
            RowDirection::Lower => {
                (row.high_percent.map(gain), Some(row.low_percent).filter(|low| *low > -100.0).map(gain))
            }
            RowDirection::Higher => (Some(row.low_percent), row.high_percent),
        };
        Self {
            unit: row.unit.clone(),
            base: row.base,
            tuned: row.tuned,
            std_dev: row.std_devs[1],
            improvement_percent: gain(row.change_percent),
            low_percent: low.unwrap_or(-100.0),
            high_percent: high,
            verdict: row.verdict,
            units: row.units,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_stats::{
        BenchResults, ComparisonOptions, JoinedResults, MeasuredValue, ResultsRow, RESULTS_SCHEMA,
    };

    fn set(better: RowDirection, values: [f64; 4]) -> JoinedResults {
        let value = |(boot, value): (u32, f64)| MeasuredValue { boot, value, ..MeasuredValue::default() };
        let row = ResultsRow {
            suite: "rr".into(),
            row: "tcp_rr".into(),
            unit: "x".into(),
            better,
            values: (0..).zip(values).map(value).collect(),
            cpu: Vec::new(),
        };
        let results = BenchResults {
            schema: RESULTS_SCHEMA.into(),
            machine: "uml".into(),
            rows: vec![row],
            ..BenchResults::default()
        };
        JoinedResults::join(&[("a.json".into(), results)]).unwrap()
    }

    #[test]
    fn times_and_rates_are_counted_as_the_papers_do() {
        let [slow, fast] = [[124.0, 125.0, 126.0, 125.0], [99.0, 100.0, 101.0, 100.0]];
        let tcp_rr = ClockRow { workload: "rr".into(), row: "tcp_rr".into() };
        for (better, base, tuned) in [(RowDirection::Lower, slow, fast), (RowDirection::Higher, fast, slow)] {
            let all = TimedComparison::new(
                &set(better, base),
                &set(better, tuned),
                None,
                &ComparisonOptions::default(),
            );
            let all = [all.unwrap()];
            let (comparison, timed) = TimedFigure::find(&all, &tcp_rr).unwrap();
            assert_eq!(comparison, &all[0]);
            assert!((timed.improvement_percent - 25.0).abs() < 1e-9, "{timed:?}");
            assert!(timed.low_percent < 25.0 && timed.high_percent.unwrap() > 25.0, "{timed:?}");
            assert_eq!((timed.verdict, timed.units), (RowVerdict::Faster, [4, 4]));
            assert!((timed.std_dev - 0.8165).abs() < 1e-3, "{timed:?}");
        }
        assert_eq!(TimedFigure::find(&[], &tcp_rr), None);
    }
}
