//! Spearman's rank correlation ("The proof and measurement of association between two things",
//! American Journal of Psychology 15(1), 1904): the degree to which two figures put the same things
//! in the same order.

use crate::Rng;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

/// Number of random permutations for the p-value.
const PERMUTATIONS: u32 = 100_000;
/// Fixed seed of the permutations, so that results repeat.
const SEED: u64 = 1904;

/// Rank correlation with interval and p-value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankCorrelation {
    /// Number of pairs.
    pub pairs: usize,
    /// Coefficient, from −1 (opposite order) to 1 (same order).
    pub rho: f64,
    /// Confidence interval, as if the pairs were independent; `None` below four pairs or if all of
    /// them agree.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value: probability of a correlation at least this far from 0 if the figures are
    /// independent. It is computed from random permutations of the pairs, among which the observed
    /// order counts as one.
    pub p: f64,
}

impl RankCorrelation {
    /// Correlates pairs without NaN. `None` if there are fewer than three, or if one side is the
    /// same in all.
    ///
    /// The interval is Fisher's z with the variance of Bonett and Wright ("Sample size requirements
    /// for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65(1), 2000).
    pub fn new(pairs: &[(f64, f64)], confidence: f64) -> Option<Self> {
        if pairs.len() < 3 {
            return None;
        }
        let x = centered_ranks(pairs.iter().map(|pair| pair.0));
        let mut y = centered_ranks(pairs.iter().map(|pair| pair.1));
        let scale = (dot(&x, &x) * dot(&y, &y)).sqrt();
        if scale == 0.0 {
            return None;
        }
        let rho = (dot(&x, &y) / scale).clamp(-1.0, 1.0);
        let interval = (pairs.len() > 3 && rho.abs() < 1.0).then(|| {
            let error = ((1.0 + rho * rho / 2.0) / (pairs.len() as f64 - 3.0)).sqrt();
            let away = Normal::standard().inverse_cdf(0.5 + confidence / 2.0) * error;
            [-away, away].map(|by| (rho.atanh() + by).tanh())
        });
        // Ranks are multiples of one half: equal sums may differ only by rounding.
        let found = dot(&x, &y).abs() - 1e-6;
        let mut rng = Rng::new(SEED);
        let mut as_far = 0;
        for _ in 0..PERMUTATIONS {
            for last in (1..y.len()).rev() {
                y.swap(last, rng.index(last + 1));
            }
            as_far += u32::from(dot(&x, &y).abs() >= found);
        }
        let p = f64::from(as_far + 1) / f64::from(PERMUTATIONS + 1);
        Some(Self { pairs: pairs.len(), rho, interval, p })
    }
}

/// Returns each value's rank (the mean rank of ties) minus the mean of all ranks.
fn centered_ranks(values: impl ExactSizeIterator<Item = f64>) -> Vec<f64> {
    let middle = (values.len() as f64 + 1.0) / 2.0;
    let mut ordered: Vec<(usize, f64)> = values.enumerate().collect();
    ordered.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranks = vec![0.0; ordered.len()];
    let mut before = 0;
    for group in ordered.chunk_by(|a, b| a.1 == b.1) {
        let rank = before as f64 + (group.len() as f64 + 1.0) / 2.0;
        group.iter().for_each(|(at, _)| ranks[*at] = rank - middle);
        before += group.len();
    }
    ranks
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(x: &[f64], y: &[f64]) -> RankCorrelation {
        let pairs: Vec<_> = x.iter().copied().zip(y.iter().copied()).collect();
        RankCorrelation::new(&pairs, 0.95).unwrap()
    }

    /// Example of R's `cor.test` (Hollander and Wolfe, 1973, p. 187): rho = 0.6, p = 0.0968 of all
    /// 9! orders.
    #[test]
    fn it_is_what_r_says() {
        let found = of(
            &[44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1],
            &[2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8],
        );
        assert!((found.rho - 0.6).abs() < 1e-12, "{found:?}");
        assert!((found.p - 0.0968).abs() < 0.004, "{found:?}");
        // z = atanh 0.6 = 0.6931, standard error sqrt((1 + 0.18) / 6) = 0.4435.
        let [low, high] = found.interval.unwrap();
        assert!((low + 0.1743).abs() < 1e-3 && (high - 0.9153).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn orders_the_same_and_opposite_and_ties() {
        let up = of(&[1.0, 2.0, 3.0, 4.0, 5.0], &[10.0, 100.0, 101.0, 1e9, 1e10]);
        assert_eq!((up.rho, up.interval), (1.0, None));
        // Two of 120 orders are as far off: the same and the opposite one.
        assert!((up.p - 2.0 / 120.0).abs() < 0.002, "{up:?}");
        assert_eq!(of(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]).rho, -1.0);
        // Ranks 1.5, 1.5, 3, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
        assert!((of(&[7.0, 7.0, 8.0, 9.0], &[1.0, 2.0, 3.0, 4.0]).rho - 0.948_683).abs() < 1e-6);
    }

    #[test]
    fn what_has_no_order_has_no_correlation() {
        assert_eq!(RankCorrelation::new(&[], 0.95), None);
        assert_eq!(RankCorrelation::new(&[(1.0, 2.0), (2.0, 1.0)], 0.95), None);
        assert_eq!(RankCorrelation::new(&[(1.0, 2.0), (1.0, 1.0), (1.0, 3.0)], 0.95), None);
    }
}
