//! Luck of layout: where a figure lies among those of the base kernel with its functions in random orders.

use crate::Metric;
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

    /// The row of an operation (or [`TOTAL`](crate::TOTAL)) and a metric.
    pub fn row(&self, operation: &str, metric: Metric) -> Option<&LayoutRow> {
        self.rows.iter().find(|row| row.operation == operation && row.metric == metric)
    }
}

impl LayoutRow {
    /// The same with these values of the random orders; none of none.
    pub(crate) fn with_values(self, values: Vec<f64>) -> Option<Self> {
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
            quartiles: [0.0, 0.25, 0.5, 0.75, 1.0].map(at),
            below_base: below(self.base),
            below_tuned: below(self.tuned),
            values,
            ..self
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
