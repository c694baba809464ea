//! A change under several front-end models: which model is right is not known, so a gain is a range.

use crate::{Comparison, Metric};
use serde::{Deserialize, Serialize};

/// How the same change looks under several front-end models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// The models, in the order of [`ModelRow::changes_percent`].
    pub models: Vec<String>,
    /// Of the operations of the comparison, and its total.
    pub rows: Vec<ModelRow>,
}

/// One metric of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRow {
    /// Operation, or [`TOTAL`](crate::TOTAL).
    pub operation: String,
    /// What was counted.
    pub metric: Metric,
    /// The change under each model in percent; null of a model that does not say what events cost, and where the base has 0.
    pub changes_percent: Vec<Option<f64>>,
}

impl Models {
    /// What a model decides.
    pub const METRICS: [Metric; 5] = [
        Metric::L1iMisses,
        Metric::ItlbMisses,
        Metric::ModelCycles,
        Metric::WholeL1iMisses,
        Metric::WholeCycles,
    ];

    /// Of comparisons of the same kernels and workload, each under a model of its own.
    pub fn new(comparisons: &[Comparison]) -> Self {
        let models = comparisons.iter().map(|of| of.model.clone()).collect();
        let Some(first) = comparisons.first() else { return Self { models, rows: Vec::new() } };
        let operations = first.operations().chain([crate::TOTAL]);
        let rows = operations.flat_map(|operation| {
            Self::METRICS.into_iter().filter_map(move |metric| {
                let change = |of: &Comparison| of.row(operation, metric).and_then(|row| row.change_percent);
                let changes_percent: Vec<_> = comparisons.iter().map(change).collect();
                let some = changes_percent.iter().any(Option::is_some);
                some.then(|| ModelRow { operation: operation.into(), metric, changes_percent })
            })
        });
        Self { models, rows: rows.collect() }
    }

    /// The row of an operation (or [`TOTAL`](crate::TOTAL)) and a metric.
    pub fn row(&self, operation: &str, metric: Metric) -> Option<&ModelRow> {
        self.rows.iter().find(|row| row.operation == operation && row.metric == metric)
    }
}

impl ModelRow {
    /// The lowest and the highest change, percent, each with the number of its model in [`Models::models`].
    pub fn range(&self) -> Option<[(usize, f64); 2]> {
        let mut changes: Vec<(usize, f64)> = self
            .changes_percent
            .iter()
            .enumerate()
            .filter_map(|(at, change)| Some((at, (*change)?)))
            .collect();
        changes.sort_by(|a, b| a.1.total_cmp(&b.1));
        Some([*changes.first()?, *changes.last()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Costs, Labels, Measurement, RegionFigures, TOTAL};

    #[test]
    fn a_gain_is_a_range_over_models() {
        let run = |l1i: u64| {
            Measurement::from_regions([RegionFigures {
                name: "a",
                depth: 0,
                closed: true,
                operations: 10,
                counts: Metric::COUNTED.into_iter().zip([1000, 100, l1i, 0]).collect(),
                events: Default::default(),
                whole_events: Default::default(),
            }])
            .unwrap()
        };
        let of = |model: &str, costs: Option<Costs>, tuned: u64| {
            let labels = Labels { model: model.into(), costs, ..Labels::default() };
            Comparison::new(&run(100), &run(100), &run(tuned), labels).unwrap()
        };
        let costs = Some(Costs { l1i_misses: 1.0, ..Costs::default() });
        let models = Models::new(&[of("x", costs, 60), of("y", None, 90), of("x+next-line", costs, 105)]);
        let row = models.row(TOTAL, Metric::L1iMisses).unwrap();
        assert_eq!(row.range(), Some([(0, -40.0), (2, 5.0)]));
        let cycles = models.row("a", Metric::ModelCycles).unwrap();
        assert_eq!(cycles.changes_percent, [Some(-40.0), None, Some(5.0)]);
        assert_eq!(models.row("a", Metric::ItlbMisses).unwrap().range(), Some([(0, 0.0), (2, 0.0)]));
        assert!(models.row("a", Metric::WholeCycles).is_none() && models.models[1] == "y");
        assert!(Models::new(&[]).rows.is_empty());
    }
}
