//! What a clock says of a paper's rows.

use crate::paper::improvement;
use kerntune_stats::{Better, Comparison, Row, Verdict};
use serde::Serialize;

/// A row by the clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timed {
    /// Of `base`, `tuned` and `std_dev`.
    pub unit: String,
    /// The mean of the base kernel's boots.
    pub base: f64,
    /// That of the tuned kernel's.
    pub tuned: f64,
    /// The standard deviation of the tuned kernel's boots.
    pub std_dev: f64,
    /// As the papers count: 100 · (base / tuned − 1) of times, the other way round of rates.
    pub improvement_percent: f64,
    /// The lower end of its 95 % interval.
    pub low_percent: f64,
    /// The upper end; none where there is no bound.
    pub high_percent: Option<f64>,
    /// Whether the difference is shown, all timed rows together.
    pub verdict: Verdict,
    /// How many boots, or runs, of both kernels.
    pub units: [usize; 2],
}

impl Timed {
    /// The row of a workload and an operation, if it was timed.
    pub(crate) fn find(comparisons: &[Comparison], workload: &str, operation: &str) -> Option<Self> {
        let mut rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
        rows.find(|row| row.suite == workload && row.row == operation).map(Self::of)
    }

    fn of(row: &Row) -> Self {
        // `improvement` is that of times: a rate has improved if its inverse has.
        let gain = |change: f64| match row.better {
            Better::Lower => improvement(100.0, 100.0 + change),
            Better::Higher => change,
        };
        let (low, high) = match row.better {
            Better::Lower => {
                (row.high_percent.map(gain), Some(row.low_percent).filter(|low| *low > -100.0).map(gain))
            }
            Better::Higher => (Some(row.low_percent), row.high_percent),
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
    use kerntune_stats::{Options, Results, ResultsRow, Set, Value, RESULTS_SCHEMA};

    fn set(better: Better, values: [f64; 4]) -> Set {
        let value = |(boot, value): (u32, f64)| Value { boot, value, ..Value::default() };
        let row = ResultsRow {
            suite: "rr".into(),
            row: "tcp_rr".into(),
            unit: "x".into(),
            better,
            values: (0..).zip(values).map(value).collect(),
            cpu: Vec::new(),
        };
        let results = Results {
            schema: RESULTS_SCHEMA.into(),
            machine: "uml".into(),
            rows: vec![row],
            ..Results::default()
        };
        Set::join(&[("a.json".into(), results)]).unwrap()
    }

    #[test]
    fn times_and_rates_are_counted_as_the_papers_do() {
        let [slow, fast] = [[124.0, 125.0, 126.0, 125.0], [99.0, 100.0, 101.0, 100.0]];
        for (better, base, tuned) in [(Better::Lower, slow, fast), (Better::Higher, fast, slow)] {
            let all = Comparison::new(&set(better, base), &set(better, tuned), None, &Options::default());
            let timed = Timed::find(&[all.unwrap()], "rr", "tcp_rr").unwrap();
            assert!((timed.improvement_percent - 25.0).abs() < 1e-9, "{timed:?}");
            assert!(timed.low_percent < 25.0 && timed.high_percent.unwrap() > 25.0, "{timed:?}");
            assert_eq!((timed.verdict, timed.units), (Verdict::Faster, [4, 4]));
            assert!((timed.std_dev - 0.8165).abs() < 1e-3, "{timed:?}");
        }
        assert_eq!(Timed::find(&[], "rr", "tcp_rr"), None);
    }
}
