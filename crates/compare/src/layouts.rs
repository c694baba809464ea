//! Luck of layout: where a figure lies among those of the base kernel with its functions in random orders.

use crate::{Comparison, Costs, Measurement, Metric, Row};
use serde::{Deserialize, Serialize};

/// The base kernel with its functions in random orders, beside the two kernels that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layouts {
    /// The number that the random orders come from: the same number gives the same orders.
    pub seed: u64,
    /// The ids of the kernels, in the order of [`LayoutRow::values`].
    pub kernels: Vec<String>,
    /// Of operations and metrics in the order of the comparison's rows, those of [`Layouts::METRICS`].
    pub rows: Vec<LayoutRow>,
}

/// One metric of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayoutRow {
    /// Operation, or [`TOTAL`](crate::TOTAL).
    pub operation: String,
    /// What was counted; less is better of all of them.
    pub metric: Metric,
    /// Unit of the figures.
    pub unit: String,
    /// Whether it is a front-end model's figure.
    pub model: bool,
    /// Of the base kernel.
    pub base: f64,
    /// Of the tuned kernel.
    pub tuned: f64,
    /// Of each random order.
    pub values: Vec<f64>,
    /// Of the values: least, first quartile, median, third quartile, most; by linear interpolation.
    pub quartiles: [f64; 5],
    /// How many random orders have less than the base kernel: 0 if it is as good as the best.
    pub below_base: usize,
    /// The same of the tuned kernel.
    pub below_tuned: usize,
}

impl Layouts {
    /// What a layout can change, and the instructions, which it cannot.
    pub const METRICS: [Metric; 6] = [
        Metric::PathLength,
        Metric::L1iMisses,
        Metric::ItlbMisses,
        Metric::ModelCycles,
        Metric::UserL1iMisses,
        Metric::WholeCycles,
    ];

    /// Of a comparison's rows, and a measurement of each random order. Operations that one of them did not do have no rows.
    pub fn new(
        comparison: &Comparison,
        runs: &[Measurement],
        kernels: Vec<String>,
        seed: u64,
        costs: Option<&Costs>,
    ) -> Self {
        let rows =
            comparison.rows.iter().filter(|row| Self::METRICS.contains(&row.metric)).filter_map(|row| {
                let figure = |run: &Measurement| run.figure(&row.operation, row.metric, costs);
                LayoutRow::new(row, runs.iter().map(figure).collect::<Option<Vec<f64>>>()?)
            });
        Self { seed, kernels, rows: rows.collect() }
    }

    /// The row of an operation (or [`TOTAL`](crate::TOTAL)) and a metric.
    pub fn row(&self, operation: &str, metric: Metric) -> Option<&LayoutRow> {
        self.rows.iter().find(|row| row.operation == operation && row.metric == metric)
    }
}

impl LayoutRow {
    fn new(row: &Row, values: Vec<f64>) -> Option<Self> {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |part: f64| {
            let place = part * last as f64;
            let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            // Of two equal figures there is nothing between.
            if low == high {
                low
            } else {
                low + (high - low) * place.fract()
            }
        };
        let below = |figure: f64| values.iter().filter(|value| **value < figure).count();
        Some(Self {
            operation: row.operation.clone(),
            metric: row.metric,
            unit: row.unit.clone(),
            model: row.model,
            base: row.base,
            tuned: row.tuned,
            quartiles: [0.0, 0.25, 0.5, 0.75, 1.0].map(at),
            below_base: below(row.base),
            below_tuned: below(row.tuned),
            values,
        })
    }

    /// By how much the random orders differ, of their median, in percent; none where that is 0.
    pub fn spread_percent(&self) -> Option<f64> {
        let [least, _, median, _, most] = self.quartiles;
        (median > 0.0).then(|| 100.0 * (most - least) / median)
    }

    /// The change from the median of the random orders to the tuned kernel, percent; none where that is 0.
    pub fn change_from_median(&self) -> Option<f64> {
        let median = self.quartiles[2];
        (median > 0.0).then(|| 100.0 * (self.tuned / median - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Labels, RegionFigures, TOTAL};

    fn run(l1i: u64) -> Measurement {
        let counts = Metric::COUNTED.into_iter().zip([1000, 100, l1i, 0]).collect();
        let region = RegionFigures {
            name: "a",
            depth: 0,
            closed: true,
            operations: 10,
            counts,
            events: Default::default(),
            whole_events: Default::default(),
        };
        Measurement::from_regions([region]).unwrap()
    }

    #[test]
    fn a_kernel_has_a_place_among_random_layouts() {
        let comparison = Comparison::new(&run(80), &run(80), &run(50), Labels::default()).unwrap();
        let runs: Vec<_> = [100, 60, 90, 70, 80].map(run).into();
        let ids: Vec<String> = (0..5).map(|at| at.to_string()).collect();
        let layouts = Layouts::new(&comparison, &runs, ids, 1, None);
        let row = layouts.row("a", Metric::L1iMisses).unwrap();
        assert_eq!(row.quartiles, [6.0, 7.0, 8.0, 9.0, 10.0]);
        assert_eq!((row.below_base, row.below_tuned), (2, 0));
        assert_eq!((row.spread_percent(), row.change_from_median()), (Some(50.0), Some(-37.5)));
        let total = layouts.row(TOTAL, Metric::L1iMisses).unwrap();
        assert_eq!((total.values[0], total.quartiles[4]), (100.0, 100.0));
        let path = layouts.row("a", Metric::PathLength).unwrap();
        assert_eq!((path.below_tuned, path.spread_percent()), (0, Some(0.0)));
        assert_eq!(layouts.row("a", Metric::ItlbMisses).unwrap().spread_percent(), None);
        assert!(layouts.row("a", Metric::TakenBranches).is_none());
        assert!(Layouts::new(&comparison, &[], Vec::new(), 1, None).rows.is_empty());
    }
}
