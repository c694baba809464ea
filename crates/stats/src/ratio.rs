//! Ratio of two means, with an interval and the tests that go with it.
//!
//! All computations use the logarithm of the ratio: so it does not matter which kernel is called
//! the base one, and no interval reaches 0. The standard error of the logarithm combines the
//! relative standard errors of the two means (the delta method). The error divided by it is
//! compared either with bootstrap replicates of itself ([`Bootstrap`](crate::Bootstrap)), or with
//! Student's distribution with degrees of freedom after Welch ("The generalization of 'Student's'
//! problem when several different population variances are involved", Biometrika 34, 1947) and
//! Satterthwaite (Biometrics Bulletin 2(6), 1946).
//!
//! The means are of the units of the slowest level that varies, since these include all variation
//! below them: Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013) and
//! "Quantifying performance changes with effect size confidence intervals" (2012,
//! arXiv:2007.10899), which do the same with Fieller's interval. `docs/statistics.md` has the
//! coverage of this interval and of the alternatives.

use crate::interval::{Interval, MIN_MEAN};
use crate::sample::mean;
use crate::shift::LocationShift;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Ratio tuned / base of means, with its uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    log: f64,
    error: f64,
    reference: ErrorDistribution,
}

/// Distribution of the studentized error.
#[derive(Debug, Clone, PartialEq)]
enum ErrorDistribution {
    /// Student's distribution with so many degrees of freedom.
    Student { degrees: f64 },
    /// These bootstrap replicates, sorted.
    Replicates(Vec<f64>),
    /// No studentized error: the interval comes from the ratios of all pairs.
    Pairs(LocationShift),
}

/// Method by which intervals and p-values are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatioMethod {
    /// Student's distribution.
    Student,
    /// Studentized hierarchical bootstrap. Student's distribution if a kernel has fewer than
    /// [`Bootstrap::MIN_UNITS`](crate::Bootstrap::MIN_UNITS) or more than
    /// [`Bootstrap::MAX_UNITS`](crate::Bootstrap::MAX_UNITS) units.
    Bootstrap,
    /// Median of the ratios of all pairs (Hodges and Lehmann), with the interval of Mann and
    /// Whitney's test. Student's distribution if a kernel has fewer than six or more than a
    /// thousand units.
    HodgesLehmann,
}

/// Returns the mean, and the square of its relative standard error.
fn moments(units: &[f64]) -> Result<(f64, f64)> {
    if units.len() < 2 {
        return Err(Error::TooFew { units: units.len() });
    }
    let mean = mean(units);
    if mean < MIN_MEAN {
        return Err(Error::ZeroMean);
    }
    Ok((mean, relative_variance(units, mean)))
}

/// Returns the relative variance of the mean of `units`.
pub(crate) fn relative_variance(units: &[f64], mean: f64) -> f64 {
    let n = units.len() as f64;
    units.iter().map(|unit| (unit / mean - 1.0).powi(2)).sum::<f64>() / (n - 1.0) / n
}

/// Returns Welch's degrees of freedom, from the variances of the two means and the numbers of
/// units.
///
/// Welch takes each variance as estimated. With two or three units the estimate is poor, and the
/// result is too high on one side and too low on the other: 2 against 10 units of equal spread
/// cover 90 %, 2 against 2 cover 98 %. Two kernels under one benchmark on one machine rarely have
/// very different spreads. So each variance is first shrunk towards the pooled one, with a weight
/// of half a degree of freedom, which is negligible from ten units on (`docs/statistics.md` has the
/// coverage of both).
fn degrees(of_means: [(f64, usize); 2]) -> f64 {
    const POOLED_WEIGHT: f64 = 0.5;
    let [base, tuned] = of_means.map(|(variance, units)| (variance * units as f64, units as f64 - 1.0));
    let pooled = (base.0 * base.1 + tuned.0 * tuned.1) / (base.1 + tuned.1);
    let moved = [base, tuned].map(|(variance, own)| {
        let variance = (variance * own + pooled * POOLED_WEIGHT) / (own + POOLED_WEIGHT);
        (variance / (own + 1.0), own)
    });
    let whole: f64 = moved.iter().map(|(variance, _)| variance).sum();
    let parts: f64 = moved.iter().map(|(variance, own)| variance * variance / own).sum();
    let degrees = whole * whole / parts;
    // Without variance there is no distribution, and the degrees are never used: any number will
    // do.
    if degrees.is_finite() {
        degrees
    } else {
        1.0
    }
}

impl Ratio {
    /// Computes the ratio from the means of independent units, at least two on each side. A kernel
    /// whose units are all the same contributes no error: then the interval is that of the other
    /// kernel, or a point.
    pub fn new(base: &[f64], tuned: &[f64]) -> Result<Self> {
        let (base_mean, base_variance) = moments(base)?;
        let (tuned_mean, tuned_variance) = moments(tuned)?;
        let variance = base_variance + tuned_variance;
        let degrees = degrees([(base_variance, base.len()), (tuned_variance, tuned.len())]);
        Ok(Self {
            log: (tuned_mean / base_mean).ln(),
            error: variance.sqrt(),
            reference: ErrorDistribution::Student { degrees },
        })
    }

    /// Computes the ratio from the means of pairs: the n-th units of both sides had the same work.
    ///
    /// Variation that both members of a pair share is not in the interval. This is Cochran's ratio
    /// estimator (Sampling Techniques, 3rd edition, 1977, 6.3): the error is that of the residuals
    /// of `tuned` after subtracting the ratio times `base`.
    ///
    /// # Errors
    /// Fewer than two pairs, lists of different lengths, a mean of 0.
    pub fn paired(base: &[f64], tuned: &[f64]) -> Result<Self> {
        let pairs = base.len().min(tuned.len());
        if pairs < 2 || base.len() != tuned.len() {
            return Err(Error::TooFew { units: pairs });
        }
        let (of_base, of_tuned) = (mean(base), mean(tuned));
        if of_base < MIN_MEAN || of_tuned < MIN_MEAN {
            return Err(Error::ZeroMean);
        }
        let rest = |(base, tuned): (&f64, &f64)| tuned / of_tuned - base / of_base;
        let squares: f64 = base.iter().zip(tuned).map(|pair| rest(pair).powi(2)).sum();
        let degrees = pairs as f64 - 1.0;
        Ok(Self {
            log: (of_tuned / of_base).ln(),
            error: (squares / degrees / pairs as f64).sqrt(),
            reference: ErrorDistribution::Student { degrees },
        })
    }

    /// Computes the factor between the values of the two kernels from all pairs: outliers in few
    /// units hardly move it.
    pub(crate) fn from_all_pairs(base: &[f64], tuned: &[f64]) -> Result<Self> {
        let shift = LocationShift::new(base, tuned)?;
        Ok(Self { log: shift.estimate(), error: shift.error(), reference: ErrorDistribution::Pairs(shift) })
    }

    /// Returns the same ratio with an interval from studentized bootstrap replicates.
    pub(crate) fn with_replicates(self, mut replicates: Vec<f64>) -> Self {
        replicates.sort_by(f64::total_cmp);
        Self { reference: ErrorDistribution::Replicates(replicates), ..self }
    }

    /// Returns tuned / base.
    pub fn estimate(&self) -> f64 {
        self.log.exp()
    }

    /// Returns the logarithm of the ratio.
    pub(crate) fn log(&self) -> f64 {
        self.log
    }

    /// Returns the standard error of the logarithm, which for a ratio near 1 is that of the ratio.
    pub fn standard_error(&self) -> f64 {
        self.error
    }

    /// Returns the method of the interval.
    pub fn method(&self) -> RatioMethod {
        match self.reference {
            ErrorDistribution::Student { .. } => RatioMethod::Student,
            ErrorDistribution::Replicates(_) => RatioMethod::Bootstrap,
            ErrorDistribution::Pairs(_) => RatioMethod::HodgesLehmann,
        }
    }

    /// Returns the interval that contains the true ratio with this confidence, with equal tails.
    /// `confidence` is above 0 and below 1.
    pub fn interval(&self, confidence: f64) -> Interval {
        let Interval { low, high } = self.reference.interval(self.log, self.error, (1.0 - confidence) / 2.0);
        Interval { low: low.exp(), high: high.exp() }
    }

    /// Returns the two-sided p-value: the probability of a ratio at least this far from 1 if there
    /// is no difference.
    pub fn p_different(&self) -> f64 {
        if self.error == 0.0 {
            return if self.log == 0.0 { 1.0 } else { 0.0 };
        }
        let (below, above) = self.reference.tails(self.log, self.error, 0.0);
        (2.0 * below.min(above)).min(1.0)
    }

    /// Returns the larger p-value of two one-sided tests that the true ratio is not between
    /// `1 / (1 + margin)` and `1 + margin` (Schuirmann, "A comparison of the two one-sided tests
    /// procedure and the power approach", J. Pharmacokinetics and Biopharmaceutics 15(6), 1987). It
    /// is at most α exactly if the interval of confidence 1 − 2α lies between these.
    pub fn p_not_equivalent(&self, margin: f64) -> f64 {
        let margin = margin.ln_1p();
        if self.error == 0.0 {
            return if self.log.abs() <= margin { 0.0 } else { 1.0 };
        }
        let tails = |truth| self.reference.tails(self.log, self.error, truth);
        let ((_, above), (below, _)) = (tails(-margin), tails(margin));
        above.max(below)
    }
}

impl ErrorDistribution {
    /// Returns the interval around `log`, with probability `tail` on each side.
    fn interval(&self, log: f64, error: f64, tail: f64) -> Interval {
        let end = |quantile: f64| if error == 0.0 { log } else { log - quantile * error };
        match self {
            ErrorDistribution::Student { degrees } => {
                let quantile = student(*degrees).inverse_cdf(1.0 - tail);
                Interval { low: end(quantile), high: end(-quantile) }
            }
            ErrorDistribution::Replicates(sorted) => {
                let upper = order_statistic(sorted, 1.0 - tail).unwrap_or(f64::INFINITY);
                Interval {
                    low: end(upper),
                    high: end(order_statistic(sorted, tail).unwrap_or(f64::NEG_INFINITY)),
                }
            }
            ErrorDistribution::Pairs(shift) => shift.interval(tail),
        }
    }

    /// Returns the probabilities of `log` or less, and of `log` or more, if the true logarithm is
    /// `truth`.
    fn tails(&self, log: f64, error: f64, truth: f64) -> (f64, f64) {
        let t = (log - truth) / error;
        match self {
            ErrorDistribution::Student { degrees } => {
                let student = student(*degrees);
                (student.cdf(t), student.sf(t))
            }
            ErrorDistribution::Replicates(sorted) => {
                // The observation counts as a replicate (Davison and Hinkley 1997, 4.2), so that no
                // share is 0.
                let share = |count: usize| (count + 1) as f64 / (sorted.len() + 1) as f64;
                let less = sorted.partition_point(|replicate| *replicate < t);
                let at_most = sorted.partition_point(|replicate| *replicate <= t);
                (share(at_most), share(sorted.len() - less))
            }
            ErrorDistribution::Pairs(shift) => {
                let (few_below, few_above) = shift.tails(truth);
                (few_above, few_below)
            }
        }
    }
}

/// Returns the value of rank `share` × (n + 1) of n sorted ones; `None` if there is no such rank.
pub(crate) fn order_statistic(sorted: &[f64], share: f64) -> Option<f64> {
    // Rounds up by a little: 0.975 × 1,000 is not quite 975.
    let rank = (share * (sorted.len() + 1) as f64 + 1e-9).floor() as usize;
    rank.checked_sub(1).and_then(|at| sorted.get(at)).copied()
}

/// Returns the quantile of Student's distribution: the value below which t is with this
/// probability.
///
/// ```
/// // Student's table: 99.5 %, 7 degrees of freedom.
/// assert!((kerntune_stats::student_quantile(0.995, 7.0) - 3.4995).abs() < 1e-3);
/// ```
///
/// # Panics
/// If `degrees` is not positive.
pub fn student_quantile(probability: f64, degrees: f64) -> f64 {
    student(degrees).inverse_cdf(probability)
}

/// Returns the probability of more than `value`.
pub(crate) fn student_tail(value: f64, degrees: f64) -> f64 {
    student(degrees).sf(value)
}

fn student(degrees: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees).expect("degrees of freedom are positive and finite")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 5] = [101.0, 100.0, 99.5, 100.5, 99.0];
    const TUNED: [f64; 4] = [95.5, 94.5, 97.0, 96.0];

    #[test]
    fn swapping_the_kernels_turns_everything_round() {
        let (one, other) = (Ratio::new(&BASE, &TUNED).unwrap(), Ratio::new(&TUNED, &BASE).unwrap());
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(one.estimate() * other.estimate(), 1.0);
        close(one.p_different(), other.p_different());
        close(one.p_not_equivalent(0.05), other.p_not_equivalent(0.05));
        let (one, other) = (one.interval(0.9), other.interval(0.9));
        close(one.low * other.high, 1.0);
        close(one.high * other.low, 1.0);
    }

    #[test]
    fn tests_and_intervals_say_the_same() {
        let ratio = Ratio::new(&BASE, &TUNED).unwrap();
        // The interval of confidence 1 − p ends at 1.
        assert!((ratio.interval(1.0 - ratio.p_different()).high - 1.0).abs() < 1e-9);
        // The interval of confidence 1 − 2 p ends at the margin.
        let margin = 0.06;
        let interval = ratio.interval(1.0 - 2.0 * ratio.p_not_equivalent(margin));
        assert!((interval.low - 1.0 / (1.0 + margin)).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn no_variation_is_a_point() {
        let same = Ratio::new(&[2.0, 2.0], &[2.0, 2.0]).unwrap();
        assert_eq!((same.interval(0.95), same.p_different()), (Interval { low: 1.0, high: 1.0 }, 1.0));
        assert_eq!(same.p_not_equivalent(0.01), 0.0);
        let half = Ratio::new(&[2.0, 2.0], &[1.0, 1.0]).unwrap();
        assert!((half.interval(0.95).width(), half.p_different()) == (0.0, 0.0));
        assert_eq!(half.p_not_equivalent(0.01), 1.0);
    }

    #[test]
    fn what_pairs_have_in_common_is_not_in_the_interval() {
        // The work differs by half from pair to pair; the ratio is constant, and then varies by a
        // hundredth.
        let base = [100.0, 150.0, 80.0, 120.0, 110.0, 90.0];
        let exact = Ratio::paired(&base, &base.map(|value| value * 0.9)).unwrap();
        assert!(exact.interval(0.99).width() < 1e-9 && (exact.estimate() - 0.9).abs() < 1e-12);
        let tuned = [90.9, 134.0, 72.3, 107.5, 99.4, 80.6];
        let (paired, apart) = (Ratio::paired(&base, &tuned).unwrap(), Ratio::new(&base, &tuned).unwrap());
        assert_eq!(paired.estimate(), apart.estimate());
        assert!(10.0 * paired.interval(0.99).width() < apart.interval(0.99).width());
        assert!(paired.interval(0.99).contains(0.9) && !paired.interval(0.99).contains(1.0));
        assert!(matches!(Ratio::paired(&[1.0], &[1.0]), Err(Error::TooFew { units: 1 })));
        assert!(matches!(Ratio::paired(&base, &tuned[1..]), Err(Error::TooFew { units: 5 })));
        assert!(matches!(Ratio::paired(&[0.0; 3], &[1.0; 3]), Err(Error::ZeroMean)));
    }

    #[test]
    fn the_interval_of_pairs_is_right_as_often_as_it_says() {
        let mut rng = crate::Rng::new(11);
        let mut noise = |size: f64| size * ((0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0);
        let times = 4_000;
        let right = (0..times).filter(|_| {
            let base: Vec<f64> = (0..10).map(|_| 100.0 * (1.0 + noise(0.1))).collect();
            let tuned: Vec<f64> = base.iter().map(|base| 0.95 * base * (1.0 + noise(0.01))).collect();
            Ratio::paired(&base, &tuned).unwrap().interval(0.99).contains(0.95)
        });
        let right = right.count() as f64 / f64::from(times);
        assert!((0.98..1.0).contains(&right), "{right}");
    }

    #[test]
    fn too_little_is_an_error() {
        assert!(matches!(Ratio::new(&[1.0], &TUNED), Err(Error::TooFew { units: 1 })));
        assert!(matches!(Ratio::new(&[0.0, 0.0], &TUNED), Err(Error::ZeroMean)));
    }

    #[test]
    fn ranks_of_order_statistics() {
        let sorted: Vec<f64> = (1..=999).map(f64::from).collect();
        assert_eq!(order_statistic(&sorted, 0.025), Some(25.0));
        assert_eq!(order_statistic(&sorted, 0.975), Some(975.0));
        assert_eq!(order_statistic(&sorted, 0.0001), None);
    }
}
