//! By what factor the values of one kernel are those of another, whatever their distribution: the estimate of Hodges and
//! Lehmann ("Estimates of location based on rank tests", Annals of Mathematical Statistics 34(2), 1963), which is the median of
//! the ratios of all pairs, and the interval that belongs to Mann and Whitney's test (Lehmann, "Nonparametrics", 1975, 2.5):
//! the factors that the test does not reject.
//!
//! It assumes that both kernels' values are distributed alike but for the factor. Of a machine that something else slows down
//! in some of the boots, whichever kernel they are of, that is true; and as long as these are few, they hardly move a median.

use crate::interval::{Interval, SMALLEST};
use crate::{Error, Result};
use statrs::distribution::{ContinuousCDF, Normal};

/// Up to so many values on each side the distribution is counted, and beyond it taken for normal.
const EXACT: usize = 50;

/// The ratios of all pairs, and how many of them may lie on one side by chance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shift {
    /// ln(tuned / base) of each pair, rising.
    logs: Vec<f64>,
    sizes: [usize; 2],
    /// The probability that at most so many pairs lie on one side, if it is counted.
    at_most: Option<Vec<f64>>,
}

impl Shift {
    /// The fewest values on each side with which an interval of 99 % has two ends.
    pub const LEAST: usize = 6;
    /// With more values on a side there would be millions of pairs.
    pub const MOST: usize = 1_000;

    /// Of values of a base and of a tuned kernel.
    ///
    /// # Errors
    /// A value of 0, which has no ratio.
    pub fn new(base: &[f64], tuned: &[f64]) -> Result<Self> {
        if base.iter().chain(tuned).any(|value| *value < SMALLEST) {
            return Err(Error::ZeroMean);
        }
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        Ok(Self::of_logs(&logs(base), &logs(tuned)))
    }

    /// The same of logarithms.
    pub fn of_logs(base: &[f64], tuned: &[f64]) -> Self {
        let mut logs: Vec<f64> =
            tuned.iter().flat_map(|tuned| base.iter().map(move |base| tuned - base)).collect();
        logs.sort_by(f64::total_cmp);
        let sizes = [base.len(), tuned.len()];
        let at_most = (sizes[0].max(sizes[1]) <= EXACT).then(|| distribution(sizes));
        Self { logs, sizes, at_most }
    }

    /// Whether so many values on each side are enough, and not too many.
    pub fn is_of_use(sizes: [usize; 2]) -> bool {
        sizes.iter().all(|size| (Self::LEAST..=Self::MOST).contains(size))
    }

    /// The median of the logarithms of all ratios.
    pub fn estimate(&self) -> f64 {
        let middle = self.logs.len() / 2;
        match self.logs.len() % 2 {
            0 => self.logs[middle - 1].midpoint(self.logs[middle]),
            _ => self.logs[middle],
        }
    }

    /// Both ends as logarithms, with `tail` on each side; infinite if so few pairs say nothing as sure as that.
    pub fn interval(&self, tail: f64) -> Interval {
        // The most pairs that lie beyond an end less often than `tail`.
        let beyond = (0..self.logs.len()).take_while(|count| self.at_most(*count) <= tail).count();
        match beyond.checked_sub(1).filter(|_| beyond <= self.logs.len() / 2) {
            Some(at) => Interval { low: self.logs[at], high: self.logs[self.logs.len() - 1 - at] },
            None => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY },
        }
    }

    /// How likely the true factor's logarithm is to leave as many pairs below `log`, or as many above it, as there are: ties
    /// count on both sides, so that neither is too small.
    pub fn tails(&self, log: f64) -> (f64, f64) {
        let below = self.logs.partition_point(|pair| *pair <= log);
        let above = self.logs.len() - self.logs.partition_point(|pair| *pair < log);
        (self.at_most(below), self.at_most(above))
    }

    /// Half of the interval in which two of three such estimates lie: a standard error, if it were normal.
    pub fn error(&self) -> f64 {
        let Interval { low, high } = self.interval(Normal::standard().cdf(-1.0));
        let all_the_same = self.logs.first() == self.logs.last();
        // An error of 0 says that no value differs from another.
        if all_the_same {
            0.0
        } else {
            ((high - low) / 2.0).max(f64::MIN_POSITIVE)
        }
    }

    fn at_most(&self, pairs: usize) -> f64 {
        match &self.at_most {
            Some(at_most) => at_most.get(pairs).copied().unwrap_or(1.0),
            None => {
                let [n1, n2] = self.sizes.map(|size| size as f64);
                let error = (n1 * n2 * (n1 + n2 + 1.0) / 12.0).sqrt();
                Normal::standard().cdf((pairs as f64 + 0.5 - n1 * n2 / 2.0) / error)
            }
        }
    }
}

/// The probabilities of 0, of at most 1, of at most 2 … pairs in order, if all orders of so many values are equally likely.
fn distribution([n1, n2]: [usize; 2]) -> Vec<f64> {
    // Ways to have so many pairs with i of the first and j of the second: the largest value is of the first, and above all j,
    // or of the second.
    let mut ways = vec![vec![0.0f64; n1 * n2 + 1]; n1 + 1];
    ways.iter_mut().for_each(|of| of[0] = 1.0);
    for j in 1..=n2 {
        for i in 1..=n1 {
            let (fewer, rest) = ways.split_at_mut(i);
            for (to, from) in rest[0][j..=i * j].iter_mut().zip(&fewer[i - 1]) {
                *to += from;
            }
        }
    }
    let counts = &ways[n1];
    let all: f64 = counts.iter().sum();
    let mut sum = 0.0;
    counts
        .iter()
        .map(|count| {
            sum += count;
            sum / all
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MannWhitney;

    #[test]
    fn ways_are_counted_as_the_test_counts_them() {
        // 3 against 2: U is 0, 1, 2 … 6 in 1, 1, 2, 2, 2, 1, 1 of 10 orders.
        let expected = [1.0, 2.0, 4.0, 6.0, 8.0, 9.0, 10.0];
        let counted = distribution([3, 2]);
        assert!(
            counted.iter().zip(expected).all(|(is, of_ten)| (is - of_ten / 10.0).abs() < 1e-12),
            "{counted:?}"
        );
        assert_eq!(distribution([2, 3]).len(), 7);
        let (base, tuned) = ([1.0, 4.0, 5.0, 9.0, 11.0, 17.0], [2.0, 3.0, 6.0, 7.0, 8.0, 10.0, 1.5]);
        let (below, above) = Shift::new(&base, &tuned).unwrap().tails(0.0);
        assert!((2.0 * below.min(above) - MannWhitney::new(&base, &tuned).p).abs() < 1e-12);
    }

    #[test]
    fn the_interval_is_what_the_test_does_not_reject() {
        let base: Vec<f64> =
            (0..12).map(|at| 100.0 + f64::from(at * at % 7) + 0.01 * f64::from(at)).collect();
        let tuned: Vec<f64> =
            (0..9).map(|at| 90.0 + f64::from(at * 5 % 11) + 0.003 * f64::from(at)).collect();
        let shift = Shift::new(&base, &tuned).unwrap();
        let Interval { low, high } = shift.interval(0.025);
        let p = |log: f64| {
            let moved: Vec<f64> = base.iter().map(|value| value * f64::exp(log)).collect();
            MannWhitney::new(&moved, &tuned).p
        };
        assert!(p(low - 1e-9) <= 0.05 && p(low + 1e-9) > 0.05, "{} {}", p(low - 1e-9), p(low + 1e-9));
        assert!(p(high + 1e-9) <= 0.05 && p(high - 1e-9) > 0.05);
        assert!(low < shift.estimate() && shift.estimate() < high && shift.error() > 0.0);
    }

    #[test]
    fn the_normal_distribution_takes_over_where_counting_ends() {
        let values = |n: usize, times: f64| -> Vec<f64> {
            (0..n).map(|at| times * (100.0 + (at * 37 % n) as f64)).collect()
        };
        let of = |n| Shift::new(&values(n, 1.0), &values(n, 0.93)).unwrap();
        let (counted, taken) = (of(EXACT).interval(0.025), of(EXACT + 1).interval(0.025));
        assert!(
            (counted.low - taken.low).abs() < 0.01 && (counted.high - taken.high).abs() < 0.01,
            "{counted:?} {taken:?}"
        );
    }

    #[test]
    fn nothing_that_is_too_little_bounds_anything() {
        let few = Shift::new(&[1.0, 2.0], &[1.0, 3.0]).unwrap().interval(0.025);
        assert_eq!((few.low, few.high), (f64::NEG_INFINITY, f64::INFINITY));
        let least = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let interval = Shift::new(&least, &least).unwrap().interval(0.005);
        assert!(interval.low.is_finite() && interval.high.is_finite());
        assert!(matches!(Shift::new(&[0.0], &[1.0]), Err(Error::ZeroMean)));
        let same = Shift::new(&[2.0; 6], &[2.0; 6]).unwrap();
        assert_eq!((same.error(), same.tails(0.0)), (0.0, (1.0, 1.0)));
        assert_eq!(same.interval(0.025), Interval { low: 0.0, high: 0.0 });
    }
}
