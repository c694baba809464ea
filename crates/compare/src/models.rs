//! Change under several front-end models. It is not known which model is right, so a gain is a
//! range.

use crate::Metric;
use serde::{Deserialize, Serialize};

/// Change of a comparison under several front-end models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelChanges {
    /// Names of the models, in the order of [`ModelChangeRow::changes_percent`].
    pub models: Vec<String>,
    /// Rows of the comparison's operations, and of its total.
    pub rows: Vec<ModelChangeRow>,
}

/// One metric of one operation under all models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelChangeRow {
    /// Operation, or [`TOTAL`](crate::TOTAL).
    pub operation: String,
    /// Compared metric.
    pub metric: Metric,
    /// Change under each model, in per cent; `None` (`null`) if the model has no costs or the base
    /// has 0.
    pub changes_percent: Vec<Option<f64>>,
}

impl ModelChanges {
    /// Metrics that depend on the model.
    pub const METRICS: [Metric; 5] = [
        Metric::L1iMisses,
        Metric::ItlbMisses,
        Metric::ModelCycles,
        Metric::WholeL1iMisses,
        Metric::WholeCycles,
    ];

    /// Returns the row of an operation (or [`TOTAL`](crate::TOTAL)) and a metric.
    pub fn row(&self, operation: &str, metric: Metric) -> Option<&ModelChangeRow> {
        self.rows.iter().find(|row| row.operation == operation && row.metric == metric)
    }
}

impl ModelChangeRow {
    /// Returns the lowest and the highest change, in per cent, each with the index of its model in
    /// [`ModelChanges::models`].
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
