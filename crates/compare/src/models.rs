//! A change under several front-end models: which model is right is not known, so a gain is a range.

use crate::Metric;
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
