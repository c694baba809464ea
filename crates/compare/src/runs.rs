//! Comparison of several runs of each kernel, with several seeds of the workload, several start
//! offsets, or both.

use crate::comparison::percent;
use crate::{
    ComparedRun, Comparison, ComparisonLabels, Error, Measurement, Metric, MetricRow, MissingOperation,
    ModelCosts, Result, UnequalUserCode, CONFIDENCE, TOTAL,
};
use kerntune_stats::{mean, Ratio};

impl Measurement {
    /// Returns a figure of an operation, per operation, or of [`TOTAL`] as a sum. `None` if the run
    /// lacks the operation or the count.
    pub fn figure(&self, operation: &str, metric: Metric, costs: Option<&ModelCosts>) -> Option<f64> {
        let is_total = operation == TOTAL;
        let of = if is_total { Some(&self.total) } else { self.operation(operation) }?;
        let sum = metric.count(of).map(|sum| sum as f64).or_else(|| metric.computed(of, costs?))?;
        Some(if is_total { sum } else { sum / of.operations as f64 })
    }
}

impl Comparison {
    /// Compares several runs of each kernel: for each seed of the workload, and in the same order
    /// for both kernels, a list of runs with different start offsets. `base_again` repeats the
    /// first run of the base kernel. Operations that are missing in some run have no rows. With one
    /// run of each kernel this is [`Comparison::new`].
    pub fn from_runs(
        base: &[Vec<Measurement>],
        base_again: &Measurement,
        tuned: &[Vec<Measurement>],
        labels: ComparisonLabels,
    ) -> Result<Self> {
        let first = |runs: &[Vec<Measurement>]| runs.first().and_then(|of| of.first()).cloned();
        let (Some(one), Some(other)) = (first(base), first(tuned)) else {
            return Err(Error::NothingMeasured);
        };
        let costs = labels.costs;
        let mut comparison = Self::new(&one, base_again, &other, labels)?;
        if base.iter().chain(tuned).map(Vec::len).max() == Some(1) && base.len().min(tuned.len()) < 2 {
            return Ok(comparison);
        }
        (comparison.seeds, comparison.runs) = (base.len(), base[0].len());
        let all = |runs: &[Vec<Measurement>], row: &MetricRow| -> Option<Vec<Vec<f64>>> {
            let figure = |run: &Measurement| run.figure(&row.operation, row.metric, costs.as_ref());
            runs.iter().map(|of_seed| of_seed.iter().map(figure).collect()).collect()
        };
        let mut absent = Vec::new();
        comparison.rows.retain_mut(|row| match [base, tuned].map(|runs| all(runs, row)) {
            [Some(base), Some(tuned)] => {
                row.average(&base, &tuned);
                true
            }
            [base, _] => {
                let run = if base.is_none() { ComparedRun::Base } else { ComparedRun::Tuned };
                absent.push(MissingOperation { operation: row.operation.clone(), runs: vec![run] });
                false
            }
        });
        comparison.unequal_user_code = UnequalUserCode::mark(&mut comparison.rows);
        absent.dedup();
        comparison.missing.extend(absent);
        Ok(comparison)
    }
}

impl MetricRow {
    /// Replaces the figures of one run by the means of several; `base` and `tuned` have a list for
    /// each seed.
    fn average(&mut self, base: &[Vec<f64>], tuned: &[Vec<f64>]) {
        let repeats = self.base_again - self.base;
        let is_seeds = base.len() > 1;
        let units = |runs: &[Vec<f64>]| -> Vec<f64> {
            match is_seeds {
                true => runs.iter().map(|of_seed| mean(of_seed)).collect(),
                false => runs.concat(),
            }
        };
        let (base, tuned) = (units(base), units(tuned));
        (self.base, self.tuned) = (mean(&base), mean(&tuned));
        self.base_again = self.base + repeats;
        self.change_percent = percent(self.base, self.tuned);
        self.aa_percent = percent(self.base, self.base_again);
        let is_some = base.iter().chain(&tuned).all(|value| *value > 0.0);
        // With the same seed both kernels do the same work, so runs are pairs. Start offsets do not
        // pair runs.
        let of = if is_seeds { Ratio::paired } else { Ratio::new };
        let is_apart =
            match of(&base, &tuned).ok().filter(|_| is_some).map(|ratio| ratio.interval(CONFIDENCE)) {
                Some(interval) => {
                    self.interval_percent =
                        Some([interval.low, interval.high].map(|end| 100.0 * (end - 1.0)));
                    !interval.contains(1.0)
                }
                // Without a ratio (a value is 0) the only evidence is that the two ranges do not
                // overlap.
                None => {
                    let min = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
                    let max = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    max(&base) < min(&tuned) || max(&tuned) < min(&base)
                }
            };
        self.within_noise = !is_apart || (self.tuned - self.base).abs() <= repeats.abs();
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
