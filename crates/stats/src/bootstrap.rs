//! Hierarchical bootstrap intervals: units are drawn with replacement, in each drawn unit its parts
//! are, and so on down (Davison and Hinkley, "Bootstrap methods and their application", 1997, 3.8).
//!
//! Two intervals are made of it. The percentile interval is the one in common use; with the few boots that a
//! kernel benchmark has it is much too narrow, and it is here so that the simulation can say so. The studentised one
//! (bootstrap-t: Efron 1979; Davison and Hinkley 5.2.1) divides each replicate's error by the replicate's own
//! standard error; it has no bounds to speak of with two or three units, and where iterations have a long tail it is too
//! narrow, so that [`Ratio::new`] is what is used unless this is asked for. `docs/statistics.md` has the figures.

use crate::interval::Interval;
use crate::ratio::{order_statistic, relative_variance};
use crate::sample::{mean, Unit};
use crate::{Level, Ratio, Result, Rng, Sample};
use serde::{Deserialize, Serialize};

/// How often to draw, and from which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// How many replicates: 999 for an interval of 95 %, 9,999 for small p-values.
    pub replicates: usize,
    /// What the random numbers begin from.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { replicates: 9_999, seed: 0 }
    }
}

/// The logarithm of the ratio of one replicate, and its standard error.
struct Replicate {
    log: f64,
    error: f64,
}

impl Bootstrap {
    /// The fewest units of each kernel that it is of use with: with fewer, a replicate that drew one unit again and
    /// again has no spread to speak of to divide by, and the interval is too wide or has no end.
    pub const LEAST: usize = 6;
    /// With more units than these of a kernel it is not worth its time: Student's interval is the same by then.
    pub const MOST: usize = 500;

    /// The ratio of the means of the units of `level`, held against studentised replicates.
    pub fn ratio(&self, base: &Sample, tuned: &Sample, level: Level) -> Result<Ratio> {
        let ratio = Ratio::new(&base.means(level), &tuned.means(level))?;
        let studentised = |replicate: Replicate| match (replicate.log - ratio.log()) / replicate.error {
            // Nothing but zeros was drawn of one kernel: as far off as can be.
            _ if replicate.log.is_infinite() => replicate.log,
            // Values that are all the same were drawn of both, and their ratio is that of all values.
            t if t.is_nan() => 0.0,
            t => t,
        };
        let replicates = self.draw(base, tuned, level).map(studentised).collect();
        Ok(ratio.with_replicates(replicates))
    }

    fn draw<'a>(
        &self,
        base: &'a Sample,
        tuned: &'a Sample,
        level: Level,
    ) -> impl Iterator<Item = Replicate> + 'a {
        let (base, tuned) = (units(base, level), units(tuned, level));
        let mut rng = Rng::new(self.seed);
        let mut drawn = Vec::new();
        (0..self.replicates).map(move |_| {
            let mut side = |units: &[Unit]| {
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

/// Long runs are drawn in batches of neighbours, so that the time that it takes has a bound. That also keeps what
/// neighbours have in common.
fn units(sample: &Sample, level: Level) -> Vec<Unit> {
    const MOST_VALUES: usize = 1_000;
    let units = sample.units(level);
    if sample.values().len() <= MOST_VALUES {
        return units;
    }
    let batches = (MOST_VALUES / sample.count(Level::Run)).max(4);
    units.into_iter().map(|unit| unit.in_batches(batches)).collect()
}

/// The percentile interval: the middle of the replicates' ratios. For comparison only.
pub fn percentile(
    bootstrap: Bootstrap,
    base: &Sample,
    tuned: &Sample,
    level: Level,
    confidence: f64,
) -> Interval {
    let mut logs: Vec<f64> = bootstrap.draw(base, tuned, level).map(|replicate| replicate.log).collect();
    logs.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let end = |share: f64, none: f64| order_statistic(&logs, share).map_or(none, f64::exp);
    Interval { low: end(tail, 0.0), high: end(1.0 - tail, f64::INFINITY) }
}

/// The mean of a unit whose parts are drawn anew.
fn resample(unit: &Unit, rng: &mut Rng) -> f64 {
    match unit {
        Unit::Value(value) => *value,
        Unit::Units(units) => {
            let draws = units.iter().map(|_| resample(&units[rng.index(units.len())], rng));
            draws.sum::<f64>() / units.len() as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn sample(scale: f64) -> Sample {
        let mut rng = Rng::new(scale.to_bits());
        let mut values = Vec::new();
        for boot in 0..8 {
            for iteration in 0..4 {
                let value = scale * (100.0 + rng.uniform() + f64::from(boot % 3));
                values.push((Place { build: 0, boot, run: 0, iteration }, value));
            }
        }
        Sample::new(values).unwrap()
    }

    #[test]
    fn it_repeats_to_the_bit_and_is_near_students() {
        let (base, tuned) = (sample(1.0), sample(0.9));
        let bootstrap = Bootstrap { replicates: 1_999, seed: 7 };
        let ratio = bootstrap.ratio(&base, &tuned, Level::Boot).unwrap();
        assert_eq!(ratio, bootstrap.ratio(&base, &tuned, Level::Boot).unwrap());
        let student = Ratio::new(&base.means(Level::Boot), &tuned.means(Level::Boot)).unwrap();
        assert_eq!(ratio.estimate(), student.estimate());
        let (one, other) = (ratio.interval(0.95), student.interval(0.95));
        assert!((one.width() / other.width() - 1.0).abs() < 0.15, "{one:?} {other:?}");
        let narrow = percentile(bootstrap, &base, &tuned, Level::Boot, 0.95);
        assert!(narrow.width() < other.width() && narrow.contains(ratio.estimate()), "{narrow:?}");
        // 2 / (1,999 + 1), the least that so many replicates can say.
        assert_eq!(ratio.p_different(), 0.001);
        assert!(ratio.p_not_equivalent(0.5) < 0.001 && ratio.p_not_equivalent(0.01) > 0.9);
    }

    #[test]
    fn two_units_bound_nothing() {
        let two = sample(1.0).only(Level::Boot, |at| at < 2).unwrap();
        let flat = two.means(Level::Boot);
        let values = flat
            .iter()
            .enumerate()
            .map(|(boot, value)| (Place { build: 0, boot: boot as u32, run: 0, iteration: 0 }, *value));
        let flat = Sample::new(values.collect()).unwrap();
        let interval = Bootstrap::default().ratio(&flat, &flat, Level::Boot).unwrap().interval(0.95);
        assert_eq!(interval, Interval { low: 0.0, high: f64::INFINITY });
    }
}
