//! Factor between the values of two kernels, for any distribution.
//!
//! The estimate is that of Hodges and Lehmann ("Estimates of location based on rank tests", Annals
//! of Mathematical Statistics 34(2), 1963), the median of the ratios of all pairs. The interval is
//! that of Mann and Whitney's test (Lehmann, "Nonparametrics", 1975, 2.5): all factors that the
//! test does not reject.
//!
//! The method assumes that both kernels' values have the same distribution apart from the factor.
//! This holds if something else slows the machine down in some of the boots, whichever kernel they
//! run; and as long as such boots are few, they hardly move a median.

use crate::interval::{Interval, MIN_MEAN};
use crate::{Error, Result};
use statrs::distribution::{ContinuousCDF, Normal};

/// Most values on each side for which the distribution is computed exactly; beyond, it is taken as
/// normal.
const MAX_EXACT: usize = 50;

/// Ratios of all pairs, with the number of them that may lie on one side by chance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LocationShift {
    /// ln(tuned / base) of each pair, ascending.
    logs: Vec<f64>,
    sizes: [usize; 2],
    /// Probability that at most n pairs lie on one side, by n; `None` beyond [`MAX_EXACT`].
    at_most: Option<Vec<f64>>,
}

impl LocationShift {
    /// Fewest values on each side for which an interval of 99 % has two ends.
    pub const MIN_VALUES: usize = 6;
    /// Most values on each side; more would make millions of pairs.
    pub const MAX_VALUES: usize = 1_000;

    /// Computes the shift from values of a base and a tuned kernel.
    ///
    /// # Errors
    /// A value of 0, which has no ratio.
    pub fn new(base: &[f64], tuned: &[f64]) -> Result<Self> {
        if base.iter().chain(tuned).any(|value| *value < MIN_MEAN) {
            return Err(Error::ZeroMean);
        }
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        Ok(Self::from_logs(&logs(base), &logs(tuned)))
    }

    /// Computes the shift from logarithms of values.
    pub fn from_logs(base: &[f64], tuned: &[f64]) -> Self {
        let mut logs: Vec<f64> =
            tuned.iter().flat_map(|tuned| base.iter().map(move |base| tuned - base)).collect();
        logs.sort_by(f64::total_cmp);
        let sizes = [base.len(), tuned.len()];
        let at_most = (sizes[0].max(sizes[1]) <= MAX_EXACT).then(|| distribution(sizes));
        Self { logs, sizes, at_most }
    }

    /// Checks whether these numbers of values are within the limits of the method.
    pub fn is_applicable(sizes: [usize; 2]) -> bool {
        sizes.iter().all(|size| (Self::MIN_VALUES..=Self::MAX_VALUES).contains(size))
    }

    /// Returns the median of the logarithms of all ratios.
    pub fn estimate(&self) -> f64 {
        let middle = self.logs.len() / 2;
        match self.logs.len() % 2 {
            0 => self.logs[middle - 1].midpoint(self.logs[middle]),
            _ => self.logs[middle],
        }
    }

    /// Returns the interval of the logarithm, with probability `tail` on each side; infinite if
    /// there are too few pairs for that.
    pub fn interval(&self, tail: f64) -> Interval {
        // Most pairs that lie beyond an end with a probability of at most `tail`.
        let beyond = (0..self.logs.len()).take_while(|count| self.at_most(*count) <= tail).count();
        match beyond.checked_sub(1).filter(|_| beyond <= self.logs.len() / 2) {
            Some(at) => Interval { low: self.logs[at], high: self.logs[self.logs.len() - 1 - at] },
            None => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY },
        }
    }

    /// Returns the probabilities that at most as many pairs lie below `log`, or above it, as are
    /// observed, if it is the true value. Ties count on both sides, so that neither is too small.
    pub fn tails(&self, log: f64) -> (f64, f64) {
        let below = self.logs.partition_point(|pair| *pair <= log);
        let above = self.logs.len() - self.logs.partition_point(|pair| *pair < log);
        (self.at_most(below), self.at_most(above))
    }

    /// Returns half of the interval that contains two of three such estimates: the standard error,
    /// if they were normal.
    pub fn error(&self) -> f64 {
        let Interval { low, high } = self.interval(Normal::standard().cdf(-1.0));
        let all_the_same = self.logs.first() == self.logs.last();
        // An error of 0 means that all values are equal.
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

/// Returns the probabilities of at most 0, 1, 2 … pairs in order, if all orders of the values are
/// equally likely.
fn distribution([n1, n2]: [usize; 2]) -> Vec<f64> {
    // Number of ways to have so many pairs with i of the first and j of the second sample: the
    // largest value is of the first and above all j, or of the second.
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
        let (below, above) = LocationShift::new(&base, &tuned).unwrap().tails(0.0);
        assert!((2.0 * below.min(above) - MannWhitney::new(&base, &tuned).p).abs() < 1e-12);
    }

    #[test]
    fn the_interval_is_what_the_test_does_not_reject() {
        let base: Vec<f64> =
            (0..12).map(|at| 100.0 + f64::from(at * at % 7) + 0.01 * f64::from(at)).collect();
        let tuned: Vec<f64> =
            (0..9).map(|at| 90.0 + f64::from(at * 5 % 11) + 0.003 * f64::from(at)).collect();
        let shift = LocationShift::new(&base, &tuned).unwrap();
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
        let of = |n| LocationShift::new(&values(n, 1.0), &values(n, 0.93)).unwrap();
        let (counted, taken) = (of(MAX_EXACT).interval(0.025), of(MAX_EXACT + 1).interval(0.025));
        assert!(
            (counted.low - taken.low).abs() < 0.01 && (counted.high - taken.high).abs() < 0.01,
            "{counted:?} {taken:?}"
        );
    }

    #[test]
    fn nothing_that_is_too_little_bounds_anything() {
        let few = LocationShift::new(&[1.0, 2.0], &[1.0, 3.0]).unwrap().interval(0.025);
        assert_eq!((few.low, few.high), (f64::NEG_INFINITY, f64::INFINITY));
        let min = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let interval = LocationShift::new(&min, &min).unwrap().interval(0.005);
        assert!(interval.low.is_finite() && interval.high.is_finite());
        assert!(matches!(LocationShift::new(&[0.0], &[1.0]), Err(Error::ZeroMean)));
        let same = LocationShift::new(&[2.0; 6], &[2.0; 6]).unwrap();
        assert_eq!((same.error(), same.tails(0.0)), (0.0, (1.0, 1.0)));
        assert_eq!(same.interval(0.025), Interval { low: 0.0, high: 0.0 });
    }
}
