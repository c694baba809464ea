//! Random sampling periods, so that no sampler runs in lockstep with the sampled code.

use kerntune_stats::SplitMix64;
use std::time::{SystemTime, UNIX_EPOCH};

/// Generator of periods, seeded differently in each collector.
#[derive(Debug, Clone)]
pub(crate) struct PeriodGenerator(SplitMix64);

impl PeriodGenerator {
    pub fn new() -> Self {
        // The time is a sufficient seed without an entropy source.
        let time = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
        Self(SplitMix64(getrandom::u64().unwrap_or_else(|_| time())))
    }

    /// Returns a period uniformly distributed between half and one and a half of `mean`.
    pub fn period(&mut self, mean: u64) -> u64 {
        (mean / 2).saturating_add(self.0.below(mean)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_around_their_mean() {
        let mut random = PeriodGenerator::new();
        let periods: Vec<u64> = (0..10_000).map(|_| random.period(1_000_000)).collect();
        assert!(periods.iter().all(|period| (500_000..1_500_000).contains(period)));
        let mean = periods.iter().sum::<u64>() / periods.len() as u64;
        // The standard error of this mean is 2,900.
        assert!((970_000..1_030_000).contains(&mean), "{mean}");
        assert_eq!(random.period(0), 1);
    }
}
