//! Mean of a sample with its interval.

use crate::interval::MIN_MEAN;
use crate::ratio::relative_variance;
use crate::{mean, student_quantile, Interval, Sample, VariationLevel};

/// Mean of one kernel's values, with an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleMean {
    /// Mean of the units' means.
    pub mean: f64,
    /// Contains the true mean with the confidence that was asked for.
    pub interval: Interval,
    /// Level of the units that the interval comes from.
    pub level: VariationLevel,
    /// Number of these units.
    pub units: usize,
}

impl Sample {
    /// Returns the mean and its interval by Student's distribution of the logarithm, from the
    /// variation between units of the slowest level of which there are two. `None` for a single value,
    /// or a mean of 0. `confidence` is above 0 and below 1.
    pub fn mean_with_interval(&self, confidence: f64) -> Option<SampleMean> {
        let level = VariationLevel::ALL.into_iter().find(|level| self.count(*level) >= 2)?;
        let units = self.means(level);
        let mean = mean(&units);
        if mean < MIN_MEAN {
            return None;
        }
        let error = relative_variance(&units, mean).sqrt();
        let factor = (student_quantile((1.0 + confidence) / 2.0, units.len() as f64 - 1.0) * error).exp();
        let interval = Interval { low: mean / factor, high: mean * factor };
        Some(SampleMean { mean, interval, level, units: units.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValuePosition;

    fn sample(values: &[(u32, u32, f64)]) -> Sample {
        let at = |&(boot, run, value): &(u32, u32, f64)| {
            (ValuePosition { build: 0, boot, run, iteration: 0 }, value)
        };
        Sample::new(values.iter().map(at).collect()).unwrap()
    }

    #[test]
    fn the_interval_is_students() {
        // Mean 10, standard error 1 / √3, quantile 4.3027 for two degrees of freedom.
        let of_runs = sample(&[(0, 0, 9.0), (0, 1, 10.0), (0, 2, 11.0)]).mean_with_interval(0.95).unwrap();
        assert_eq!((of_runs.mean, of_runs.level, of_runs.units), (10.0, VariationLevel::Run, 3));
        let expected = (4.302_652_73_f64 / 3f64.sqrt() / 10.0).exp();
        assert!((of_runs.interval.high / (10.0 * expected) - 1.0).abs() < 1e-6);
        assert!((of_runs.interval.low * expected / 10.0 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn boots_count_and_not_the_runs_within_them() {
        let values = [(0, 0, 9.0), (0, 1, 11.0), (1, 0, 10.0), (1, 1, 10.0)];
        let of_boots = sample(&values).mean_with_interval(0.95).unwrap();
        assert_eq!(
            (of_boots.level, of_boots.units, of_boots.interval.width()),
            (VariationLevel::Boot, 2, 0.0)
        );
        assert_eq!(sample(&values[..1]).mean_with_interval(0.95), None);
        assert_eq!(sample(&[(0, 0, 0.0), (1, 0, 0.0)]).mean_with_interval(0.95), None);
    }
}
