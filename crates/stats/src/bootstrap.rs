//! Hierarchical bootstrap intervals: units are drawn with replacement, then the parts of each drawn
//! unit, and so on down (Davison and Hinkley, "Bootstrap methods and their application", 1997,
//! 3.8).
//!
//! There are two intervals. The percentile interval is in common use, but much too narrow with the
//! few boots of a kernel benchmark; it is here only for comparison in the simulation. The
//! studentized interval (bootstrap-t: Efron 1979; Davison and Hinkley 5.2.1) divides the error of
//! each replicate by the replicate's own standard error. With two or three units it is practically
//! unbounded, and with long-tailed iterations it is too narrow. Therefore [`Ratio::new`] is the
//! default and the bootstrap has to be asked for. `docs/statistics.md` has the coverage of all of
//! them.

use crate::interval::Interval;
use crate::ratio::{order_statistic, relative_variance};
use crate::sample::{mean, SampleUnit};
use crate::{Ratio, Result, Rng, Sample, VariationLevel};
use serde::{Deserialize, Serialize};

/// Parameters of a bootstrap: number of replicates and seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Number of replicates: 999 suffice for an interval of 95 %, small p-values need 9,999.
    pub replicates: usize,
    /// Seed of the random numbers; the same seed gives the same interval.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { replicates: 9_999, seed: 0 }
    }
}

/// Logarithm of the ratio of one replicate, with its standard error.
struct Replicate {
    log: f64,
    error: f64,
}

impl Bootstrap {
    /// Fewest units of each kernel for which the bootstrap is useful. With fewer, a replicate often
    /// draws one unit again and again and has hardly any spread to divide by: the interval is too
    /// wide or has no end.
    pub const MIN_UNITS: usize = 6;
    /// Most units of a kernel for which the bootstrap is worth its time; above, Student's interval
    /// is the same.
    pub const MAX_UNITS: usize = 500;

    /// Returns the ratio of the means of the units of `level`, with an interval from studentized
    /// replicates.
    pub fn ratio(&self, base: &Sample, tuned: &Sample, level: VariationLevel) -> Result<Ratio> {
        let ratio = Ratio::new(&base.means(level), &tuned.means(level))?;
        let studentized = |replicate: Replicate| match (replicate.log - ratio.log()) / replicate.error {
            // One kernel's draw is all zeros: infinitely far off.
            _ if replicate.log.is_infinite() => replicate.log,
            // Both draws have no variation, so their ratio is that of all values.
            t if t.is_nan() => 0.0,
            t => t,
        };
        let replicates = self.draw(base, tuned, level).map(studentized).collect();
        Ok(ratio.with_replicates(replicates))
    }

    fn draw<'a>(
        &self,
        base: &'a Sample,
        tuned: &'a Sample,
        level: VariationLevel,
    ) -> impl Iterator<Item = Replicate> + 'a {
        let (base, tuned) = (units(base, level), units(tuned, level));
        let mut rng = Rng::new(self.seed);
        let mut drawn = Vec::new();
        (0..self.replicates).map(move |_| {
            let mut side = |units: &[SampleUnit]| {
                drawn.clear();
                drawn.extend((0..units.len()).map(|_| resample(&units[rng.index(units.len())], &mut rng)));
                let mean = mean(&drawn);
                (mean, relative_variance(&drawn, mean))
            };
            let (base_mean, base_variance) = side(&base);
            let (tuned_mean, tuned_variance) = side(&tuned);
            Replicate { log: (tuned_mean / base_mean).ln(), error: (base_variance + tuned_variance).sqrt() }
        })
    }
}

/// Returns the units to draw. Long runs are drawn in batches of neighbors: this bounds the time,
/// and keeps the correlation of neighbors.
fn units(sample: &Sample, level: VariationLevel) -> Vec<SampleUnit> {
    const MAX_VALUES: usize = 1_000;
    let units = sample.units(level);
    if sample.values().len() <= MAX_VALUES {
        return units;
    }
    let batches = (MAX_VALUES / sample.count(VariationLevel::Run)).max(4);
    units.into_iter().map(|unit| unit.in_batches(batches)).collect()
}

/// Returns the percentile interval, the central share of the replicates' ratios. For comparison
/// only: it is too narrow.
pub fn percentile(
    bootstrap: Bootstrap,
    base: &Sample,
    tuned: &Sample,
    level: VariationLevel,
    confidence: f64,
) -> Interval {
    let mut logs: Vec<f64> = bootstrap.draw(base, tuned, level).map(|replicate| replicate.log).collect();
    logs.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let end = |share: f64, none: f64| order_statistic(&logs, share).map_or(none, f64::exp);
    Interval { low: end(tail, 0.0), high: end(1.0 - tail, f64::INFINITY) }
}

/// Returns the mean of a unit whose parts are redrawn.
fn resample(unit: &SampleUnit, rng: &mut Rng) -> f64 {
    match unit {
        SampleUnit::Value(value) => *value,
        SampleUnit::Units(units) => {
            let draws = units.iter().map(|_| resample(&units[rng.index(units.len())], rng));
            draws.sum::<f64>() / units.len() as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValuePosition;

    fn sample(scale: f64) -> Sample {
        let mut rng = Rng::new(scale.to_bits());
        let mut values = Vec::new();
        for boot in 0..8 {
            for iteration in 0..4 {
                let value = scale * (100.0 + rng.uniform() + f64::from(boot % 3));
                values.push((ValuePosition { build: 0, boot, run: 0, iteration }, value));
            }
        }
        Sample::new(values).unwrap()
    }

    #[test]
    fn it_repeats_to_the_bit_and_is_near_students() {
        let (base, tuned) = (sample(1.0), sample(0.9));
        let bootstrap = Bootstrap { replicates: 1_999, seed: 7 };
        let ratio = bootstrap.ratio(&base, &tuned, VariationLevel::Boot).unwrap();
        assert_eq!(ratio, bootstrap.ratio(&base, &tuned, VariationLevel::Boot).unwrap());
        let student =
            Ratio::new(&base.means(VariationLevel::Boot), &tuned.means(VariationLevel::Boot)).unwrap();
        assert_eq!(ratio.estimate(), student.estimate());
        let (one, other) = (ratio.interval(0.95), student.interval(0.95));
        assert!((one.width() / other.width() - 1.0).abs() < 0.15, "{one:?} {other:?}");
        let narrow = percentile(bootstrap, &base, &tuned, VariationLevel::Boot, 0.95);
        assert!(narrow.width() < other.width() && narrow.contains(ratio.estimate()), "{narrow:?}");
        // 2 / (1,999 + 1), the smallest p-value of 1,999 replicates.
        assert_eq!(ratio.p_different(), 0.001);
        assert!(ratio.p_not_equivalent(0.5) < 0.001 && ratio.p_not_equivalent(0.01) > 0.9);
    }

    #[test]
    fn two_units_bound_nothing() {
        let two = sample(1.0).only(VariationLevel::Boot, |at| at < 2).unwrap();
        let flat = two.means(VariationLevel::Boot);
        let values = flat.iter().enumerate().map(|(boot, value)| {
            (ValuePosition { build: 0, boot: boot as u32, run: 0, iteration: 0 }, *value)
        });
        let flat = Sample::new(values.collect()).unwrap();
        let interval = Bootstrap::default().ratio(&flat, &flat, VariationLevel::Boot).unwrap().interval(0.95);
        assert_eq!(interval, Interval { low: 0.0, high: f64::INFINITY });
    }
}
