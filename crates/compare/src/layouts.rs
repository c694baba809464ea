//! Layout sensitivity: rank of a figure among those of the base kernel with its functions in random
//! orders.

use crate::Metric;
use serde::{Deserialize, Serialize};

/// Base kernel with its functions in random orders, beside the two compared kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RandomLayouts {
    /// Seed of the random orders: the same seed gives the same orders.
    pub seed: u64,
    /// Ids of the kernels, in the order of [`RandomLayoutRow::values`].
    pub kernels: Vec<String>,
    /// Rows in the order of the comparison's rows, for the metrics of [`RandomLayouts::METRICS`].
    pub rows: Vec<RandomLayoutRow>,
}

/// One metric of one operation on all random layouts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RandomLayoutRow {
    /// Operation, or [`TOTAL`](crate::TOTAL).
    pub operation: String,
    /// Compared metric; less is better for all of them.
    pub metric: Metric,
    /// Unit of the figures.
    pub unit: String,
    /// True for figures of the front-end model.
    pub model: bool,
    /// Figure of the base kernel.
    pub base: f64,
    /// Figure of the tuned kernel.
    pub tuned: f64,
    /// Figure of each random order.
    pub values: Vec<f64>,
    /// Minimum, first quartile, median, third quartile and maximum of the values, by linear
    /// interpolation.
    pub quartiles: [f64; 5],
    /// Number of random orders with less than the base kernel; 0 if it is as good as the best.
    pub below_base: usize,
    /// Number of random orders with less than the tuned kernel.
    pub below_tuned: usize,
}

impl RandomLayouts {
    /// Metrics that a layout can change, and the instructions, which it cannot.
    pub const METRICS: [Metric; 6] = [
        Metric::PathLength,
        Metric::L1iMisses,
        Metric::ItlbMisses,
        Metric::ModelCycles,
        Metric::UserL1iMisses,
        Metric::WholeCycles,
    ];

    /// Returns the row of an operation (or [`TOTAL`](crate::TOTAL)) and a metric.
    pub fn row(&self, operation: &str, metric: Metric) -> Option<&RandomLayoutRow> {
        self.rows.iter().find(|row| row.operation == operation && row.metric == metric)
    }
}

impl RandomLayoutRow {
    /// Replaces the values of the random orders; `None` if `values` is empty.
    pub(crate) fn with_values(self, values: Vec<f64>) -> Option<Self> {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |part: f64| {
            let place = part * last as f64;
            let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            // Equal neighbors need no interpolation.
            if low == high {
                low
            } else {
                low + (high - low) * place.fract()
            }
        };
        let below = |figure: f64| values.iter().filter(|value| **value < figure).count();
        Some(Self {
            quartiles: [0.0, 0.25, 0.5, 0.75, 1.0].map(at),
            below_base: below(self.base),
            below_tuned: below(self.tuned),
            values,
            ..self
        })
    }

    /// Returns the difference between the extreme random orders, in per cent of their median;
    /// `None` if that is 0.
    pub fn spread_percent(&self) -> Option<f64> {
        let [min, _, median, _, max] = self.quartiles;
        (median > 0.0).then(|| 100.0 * (max - min) / median)
    }

    /// Returns the change from the median of the random orders to the tuned kernel, in per cent;
    /// `None` if the median is 0.
    pub fn change_from_median(&self) -> Option<f64> {
        let median = self.quartiles[2];
        (median > 0.0).then(|| 100.0 * (self.tuned / median - 1.0))
    }
}
