//! Values of one row on one kernel, in nested units.

use crate::{Error, Result, ValuePosition, VariationLevel};

/// Values with their positions, sorted. There is at least one value; all are finite and none is
/// negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    values: Vec<(ValuePosition, f64)>,
}

/// Unit of some level with everything below it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SampleUnit {
    Value(f64),
    Units(Vec<SampleUnit>),
}

/// Largest value that is accepted as a measurement; sums and squares of such values stay finite.
pub(crate) const MAX_VALUE: f64 = 1e100;

impl Sample {
    /// Creates a sample from values in any order.
    ///
    /// # Errors
    /// An empty list, a value that is not a measurement, a position that occurs twice.
    pub fn new(mut values: Vec<(ValuePosition, f64)>) -> Result<Self> {
        if values.is_empty() {
            return Err(Error::NoValues);
        }
        values.sort_by_key(|(place, _)| *place);
        for (place, value) in &values {
            if !(0.0..=MAX_VALUE).contains(value) {
                return Err(Error::Value { place: *place, value: *value });
            }
        }
        if let Some(pair) = values.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::Twice { place: pair[0].0 });
        }
        Ok(Self { values })
    }

    /// Returns all values, sorted by position.
    pub fn values(&self) -> &[(ValuePosition, f64)] {
        &self.values
    }

    /// Returns the total number of units of `level`.
    pub fn count(&self, level: VariationLevel) -> usize {
        self.values.chunk_by(|a, b| a.0.unit(level) == b.0.unit(level)).count()
    }

    /// Returns the mean of each unit of `level`. A boot's mean is that of its runs' means, and so
    /// on down, so that a run with more iterations does not weigh more.
    pub fn means(&self, level: VariationLevel) -> Vec<f64> {
        self.units(level).iter().map(SampleUnit::mean).collect()
    }

    /// Returns the iterations of each run, in order.
    pub fn runs(&self) -> Vec<Vec<f64>> {
        let runs =
            self.values.chunk_by(|a, b| a.0.unit(VariationLevel::Run) == b.0.unit(VariationLevel::Run));
        runs.map(|run| run.iter().map(|(_, value)| *value).collect()).collect()
    }

    /// Returns the sample without the first `count` iterations of each run; runs with no more than
    /// `count` are kept whole.
    pub fn without_first(&self, count: usize) -> Sample {
        let runs =
            self.values.chunk_by(|a, b| a.0.unit(VariationLevel::Run) == b.0.unit(VariationLevel::Run));
        let kept = runs.flat_map(|run| if run.len() > count { &run[count..] } else { run });
        Sample { values: kept.copied().collect() }
    }

    /// Returns only the units of `level` whose number, counted from 0, `wanted` accepts. `None` if
    /// there are none.
    pub fn only(&self, level: VariationLevel, wanted: impl Fn(usize) -> bool) -> Option<Sample> {
        let units = self.values.chunk_by(|a, b| a.0.unit(level) == b.0.unit(level)).enumerate();
        let values: Vec<_> =
            units.filter(|(at, _)| wanted(*at)).flat_map(|(_, unit)| unit).copied().collect();
        (!values.is_empty()).then_some(Sample { values })
    }

    pub(crate) fn units(&self, level: VariationLevel) -> Vec<SampleUnit> {
        units(&self.values, level)
    }
}

fn units(values: &[(ValuePosition, f64)], level: VariationLevel) -> Vec<SampleUnit> {
    let unit = |unit: &[(ValuePosition, f64)]| match level.below() {
        Some(below) => SampleUnit::Units(units(unit, below)),
        None => SampleUnit::Value(unit[0].1),
    };
    values.chunk_by(|a, b| a.0.unit(level) == b.0.unit(level)).map(unit).collect()
}

impl SampleUnit {
    pub fn mean(&self) -> f64 {
        match self {
            SampleUnit::Value(value) => *value,
            SampleUnit::Units(units) => units.iter().map(SampleUnit::mean).sum::<f64>() / units.len() as f64,
        }
    }

    /// Groups the values of each run into at most `max` batches of neighbors, and keeps only the
    /// means of the batches. Sizes of batches differ by one at most.
    pub fn in_batches(self, max: usize) -> SampleUnit {
        let SampleUnit::Units(units) = self else { return self };
        let n = units.len();
        if n <= max || matches!(units[0], SampleUnit::Units(_)) {
            return SampleUnit::Units(units.into_iter().map(|unit| unit.in_batches(max)).collect());
        }
        let batch = |at: usize| {
            let values: Vec<f64> =
                units[at * n / max..(at + 1) * n / max].iter().map(SampleUnit::mean).collect();
            SampleUnit::Value(mean(&values))
        };
        SampleUnit::Units((0..max).map(batch).collect())
    }
}

/// Returns the slowest level of which both sides have at least two units. Intervals are computed
/// from the variation between these units, whose means include all variation below. `None` if there
/// is no such level.
pub fn common_level(a: &Sample, b: &Sample) -> Option<VariationLevel> {
    VariationLevel::ALL.into_iter().find(|&level| a.count(level) >= 2 && b.count(level) >= 2)
}

/// Returns the arithmetic mean; NaN if `values` is empty.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample standard deviation (n − 1); 0 for fewer than two values.
pub fn std_dev(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    if values.len() < 2 {
        0.0
    } else {
        (squares / (values.len() - 1) as f64).sqrt()
    }
}

/// Returns the middle value, or the mean of the two middle values; NaN if `values` is empty.
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

    fn place(boot: u32, run: u32, iteration: u32) -> ValuePosition {
        ValuePosition { build: 0, boot, run, iteration }
    }

    fn sample() -> Sample {
        // Two boots; the first one has a run of two iterations and a run of one.
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
        assert_eq!(sample.means(VariationLevel::Iteration), [10.0, 14.0, 20.0, 40.0]);
        assert_eq!(sample.means(VariationLevel::Run), [12.0, 20.0, 40.0]);
        assert_eq!(sample.means(VariationLevel::Boot), [16.0, 40.0]);
        assert_eq!(sample.means(VariationLevel::Build), [28.0]);
        assert_eq!(VariationLevel::ALL.map(|level| sample.count(level)), [1, 2, 3, 4]);
        assert_eq!(sample.runs(), [vec![10.0, 14.0], vec![20.0], vec![40.0]]);
    }

    #[test]
    fn what_varies_is_the_slowest_level_with_two_units_on_both_sides() {
        let sample = sample();
        assert_eq!(common_level(&sample, &sample), Some(VariationLevel::Boot));
        let one_boot = sample.only(VariationLevel::Boot, |at| at == 0).unwrap();
        assert_eq!(common_level(&sample, &one_boot), Some(VariationLevel::Run));
        let one_value = sample.only(VariationLevel::Boot, |at| at == 1).unwrap();
        assert_eq!(common_level(&sample, &one_value), None);
        assert_eq!(sample.only(VariationLevel::Boot, |_| false), None);
    }

    #[test]
    fn runs_of_fewer_iterations_than_the_warm_up_are_kept() {
        assert_eq!(sample().without_first(1).runs(), [vec![14.0], vec![20.0], vec![40.0]]);
    }

    #[test]
    fn long_runs_in_batches() {
        let values = (0..10).map(|at| (place(0, at / 7, at), f64::from(at))).collect();
        let units = Sample::new(values).unwrap().units(VariationLevel::Boot);
        let [unit] = &units[..] else { panic!() };
        let SampleUnit::Units(runs) = unit.clone().in_batches(3) else { panic!() };
        let values = |values: &[f64]| {
            SampleUnit::Units(values.iter().map(|value| SampleUnit::Value(*value)).collect())
        };
        // Batches of 0 1, 2 3, 4 5 6; the other run is short enough.
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
