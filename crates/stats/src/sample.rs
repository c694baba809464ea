//! Values of one row on one kernel, in the order of nesting.

use crate::{Error, Level, Place, Result};

/// Values with their places, sorted. There is at least one, all are finite and none is negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    values: Vec<(Place, f64)>,
}

/// A unit of some level with all that is in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unit {
    Value(f64),
    Units(Vec<Unit>),
}

/// No measurement is larger; sums and squares of what is smaller stay finite.
pub(crate) const LARGEST: f64 = 1e100;

impl Sample {
    /// Of values in any order. An error if there is none, one is not a measurement, or a place comes twice.
    pub fn new(mut values: Vec<(Place, f64)>) -> Result<Self> {
        if values.is_empty() {
            return Err(Error::NoValues);
        }
        values.sort_by_key(|(place, _)| *place);
        for (place, value) in &values {
            if !(0.0..=LARGEST).contains(value) {
                return Err(Error::Value { place: *place, value: *value });
            }
        }
        if let Some(pair) = values.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::Twice { place: pair[0].0 });
        }
        Ok(Self { values })
    }

    /// All values, sorted by place.
    pub fn values(&self) -> &[(Place, f64)] {
        &self.values
    }

    /// How many units of `level` there are in all.
    pub fn count(&self, level: Level) -> usize {
        self.values.chunk_by(|a, b| a.0.unit(level) == b.0.unit(level)).count()
    }

    /// The mean of each unit of `level`: of a boot the mean of its runs' means, and so on down, so that a run
    /// that happens to have more iterations does not weigh more.
    pub fn means(&self, level: Level) -> Vec<f64> {
        self.units(level).iter().map(Unit::mean).collect()
    }

    /// The iterations of each run, in order.
    pub fn runs(&self) -> Vec<Vec<f64>> {
        let runs = self.values.chunk_by(|a, b| a.0.unit(Level::Run) == b.0.unit(Level::Run));
        runs.map(|run| run.iter().map(|(_, value)| *value).collect()).collect()
    }

    /// Without the first `count` iterations of each run; runs that have no more than that are kept whole.
    pub fn without_first(&self, count: usize) -> Sample {
        let runs = self.values.chunk_by(|a, b| a.0.unit(Level::Run) == b.0.unit(Level::Run));
        let kept = runs.flat_map(|run| if run.len() > count { &run[count..] } else { run });
        Sample { values: kept.copied().collect() }
    }

    /// Only the units of `level` for whose number, counted from 0, `wanted` says so. `None` if that is none.
    pub fn only(&self, level: Level, wanted: impl Fn(usize) -> bool) -> Option<Sample> {
        let units = self.values.chunk_by(|a, b| a.0.unit(level) == b.0.unit(level)).enumerate();
        let values: Vec<_> =
            units.filter(|(at, _)| wanted(*at)).flat_map(|(_, unit)| unit).copied().collect();
        (!values.is_empty()).then_some(Sample { values })
    }

    pub(crate) fn units(&self, level: Level) -> Vec<Unit> {
        units(&self.values, level)
    }
}

fn units(values: &[(Place, f64)], level: Level) -> Vec<Unit> {
    let unit = |unit: &[(Place, f64)]| match level.below() {
        Some(below) => Unit::Units(units(unit, below)),
        None => Unit::Value(unit[0].1),
    };
    values.chunk_by(|a, b| a.0.unit(level) == b.0.unit(level)).map(unit).collect()
}

impl Unit {
    pub fn mean(&self) -> f64 {
        match self {
            Unit::Value(value) => *value,
            Unit::Units(units) => units.iter().map(Unit::mean).sum::<f64>() / units.len() as f64,
        }
    }

    /// With the values of each run in at most so many batches of neighbours, of which only the means are kept. Sizes
    /// differ by one at most.
    pub fn in_batches(self, most: usize) -> Unit {
        let Unit::Units(units) = self else { return self };
        let n = units.len();
        if n <= most || matches!(units[0], Unit::Units(_)) {
            return Unit::Units(units.into_iter().map(|unit| unit.in_batches(most)).collect());
        }
        let batch = |at: usize| {
            let values: Vec<f64> = units[at * n / most..(at + 1) * n / most].iter().map(Unit::mean).collect();
            Unit::Value(mean(&values))
        };
        Unit::Units((0..most).map(batch).collect())
    }
}

/// The slowest level at which both sides have at least two units: what varies between these is what an interval
/// has to be made of, as all that varies below is in their means. `None` if there is no such level.
pub fn common_level(a: &Sample, b: &Sample) -> Option<Level> {
    Level::ALL.into_iter().find(|&level| a.count(level) >= 2 && b.count(level) >= 2)
}

/// The arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of the population that the values are a sample of (n − 1); 0 if there are fewer than two.
pub fn std_dev(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    if values.len() < 2 {
        0.0
    } else {
        (squares / (values.len() - 1) as f64).sqrt()
    }
}

/// The middle value, or the mean of the two in the middle; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(boot: u32, run: u32, iteration: u32) -> Place {
        Place { build: 0, boot, run, iteration }
    }

    fn sample() -> Sample {
        // Two boots; the first with a run of two and a run of one iteration.
        let values = vec![
            (place(1, 0, 0), 40.0),
            (place(0, 0, 1), 14.0),
            (place(0, 0, 0), 10.0),
            (place(0, 1, 0), 20.0),
        ];
        Sample::new(values).unwrap()
    }

    #[test]
    fn a_mean_is_of_means() {
        let sample = sample();
        assert_eq!(sample.means(Level::Iteration), [10.0, 14.0, 20.0, 40.0]);
        assert_eq!(sample.means(Level::Run), [12.0, 20.0, 40.0]);
        assert_eq!(sample.means(Level::Boot), [16.0, 40.0]);
        assert_eq!(sample.means(Level::Build), [28.0]);
        assert_eq!(Level::ALL.map(|level| sample.count(level)), [1, 2, 3, 4]);
        assert_eq!(sample.runs(), [vec![10.0, 14.0], vec![20.0], vec![40.0]]);
    }

    #[test]
    fn what_varies_is_the_slowest_level_with_two_units_on_both_sides() {
        let sample = sample();
        assert_eq!(common_level(&sample, &sample), Some(Level::Boot));
        let one_boot = sample.only(Level::Boot, |at| at == 0).unwrap();
        assert_eq!(common_level(&sample, &one_boot), Some(Level::Run));
        let one_value = sample.only(Level::Boot, |at| at == 1).unwrap();
        assert_eq!(common_level(&sample, &one_value), None);
        assert_eq!(sample.only(Level::Boot, |_| false), None);
    }

    #[test]
    fn runs_of_fewer_iterations_than_the_warm_up_are_kept() {
        assert_eq!(sample().without_first(1).runs(), [vec![14.0], vec![20.0], vec![40.0]]);
    }

    #[test]
    fn long_runs_in_batches() {
        let values = (0..10).map(|at| (place(0, at / 7, at), f64::from(at))).collect();
        let units = Sample::new(values).unwrap().units(Level::Boot);
        let [unit] = &units[..] else { panic!() };
        let Unit::Units(runs) = unit.clone().in_batches(3) else { panic!() };
        let values = |values: &[f64]| Unit::Units(values.iter().map(|value| Unit::Value(*value)).collect());
        // 0 1, 2 3, 4 5 6; the other run is short enough.
        assert_eq!(runs, [values(&[0.5, 2.5, 5.0]), values(&[7.0, 8.0, 9.0])]);
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        for value in [-1.0, f64::NAN, f64::INFINITY, 1e200] {
            assert!(matches!(Sample::new(vec![(place(0, 0, 0), value)]), Err(Error::Value { .. })));
        }
        let twice = vec![(place(0, 0, 0), 1.0), (place(0, 0, 0), 2.0)];
        assert!(matches!(Sample::new(twice), Err(Error::Twice { .. })));
        assert!(matches!(Sample::new(vec![]), Err(Error::NoValues)));
    }

    #[test]
    fn middle_and_spread() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
        assert_eq!(
            (std_dev(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), std_dev(&[1.0])),
            ((32.0f64 / 7.0).sqrt(), 0.0)
        );
    }
}
