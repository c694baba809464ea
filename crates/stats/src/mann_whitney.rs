//! Test of Mann and Whitney ("On a test of whether one of two random variables is stochastically
//! larger than the other", Annals of Mathematical Statistics 18(1), 1947).
//!
//! The test assumes only independence, and serves as a check of the ratio's own test. It cannot be
//! the main test, since with three units on each side its smallest p-value is 0.1. The p-value is
//! exact up to the sizes where `benchstat`'s is, ties included (Klotz, "The Wilcoxon, ties, and the
//! computer", JASA 61, 1966). Beyond, it is the normal approximation with corrections for ties and
//! continuity.

use statrs::distribution::{ContinuousCDF, Normal};

/// Most values on each side for an exact p-value without ties.
const MAX_EXACT: usize = 50;
/// Most values on each side for an exact p-value with ties.
const MAX_EXACT_TIED: usize = 25;

/// Statistic U of two samples, and its p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Number of pairs whose larger value is in the first sample; a tie counts one half.
    pub u: f64,
    /// Two-sided p-value: probability of a U at least this far from the middle, if both samples are
    /// of one population; 1 if all values are the same.
    pub p: f64,
    /// True if `p` is exact rather than approximated.
    pub exact: bool,
}

impl MannWhitney {
    /// Tests two samples, neither of them empty. There must be no NaN.
    pub fn new(first: &[f64], second: &[f64]) -> Self {
        let (n1, n2) = (first.len(), second.len());
        let mut all: Vec<(f64, bool)> = first.iter().map(|value| (*value, true)).collect();
        all.extend(second.iter().map(|value| (*value, false)));
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Twice the mean rank of each value, which is an integer even with ties.
        let mut ranks = Vec::with_capacity(all.len());
        let (mut rank_sum, mut ties) = (0usize, 0.0);
        for group in all.chunk_by(|a, b| a.0 == b.0) {
            let rank = 2 * ranks.len() + group.len() + 1;
            ranks.extend(group.iter().map(|_| rank));
            rank_sum += rank * group.iter().filter(|(_, is_first)| *is_first).count();
            let size = group.len() as f64;
            ties += size * size * size - size;
        }
        let u = rank_sum as f64 / 2.0 - (n1 * (n1 + 1)) as f64 / 2.0;
        let limit = if ties > 0.0 { MAX_EXACT_TIED } else { MAX_EXACT };
        let exact = n1.max(n2) <= limit;
        let p = if exact {
            exact_p(&ranks, n1, rank_sum, ties > 0.0)
        } else {
            approximate_p(u, n1 as f64, n2 as f64, ties)
        };
        Self { u, p, exact }
    }

    /// Returns the smallest p-value that samples of these sizes can have: 2 / C(n1 + n2, n1).
    pub fn min_p(n1: usize, n2: usize) -> f64 {
        let ways = (1..=n1).fold(1.0, |ways, k| ways * (n2 + k) as f64 / k as f64);
        (2.0 / ways).min(1.0)
    }
}

/// Counts the subsets of `size` of the doubled ranks by their sum.
fn exact_p(ranks: &[usize], size: usize, observed: usize, tied: bool) -> f64 {
    // Without ties all doubled ranks are even, so half the table suffices.
    let step = if tied { 1 } else { 2 };
    let sums = ranks.iter().sum::<usize>() / step + 1;
    let mut counts = vec![0.0f64; (size + 1) * sums];
    counts[0] = 1.0;
    for (at, rank) in ranks.iter().enumerate() {
        let rank = rank / step;
        for chosen in (1..=size.min(at + 1)).rev() {
            let (fewer, more) = counts.split_at_mut(chosen * sums);
            let from = &fewer[(chosen - 1) * sums..];
            for (to, from) in more[rank..sums].iter_mut().zip(from) {
                *to += from;
            }
        }
    }
    let counts = &counts[size * sums..];
    let all: f64 = counts.iter().sum();
    let observed = observed / step;
    let below: f64 = counts[..=observed].iter().sum();
    let above: f64 = counts[observed..].iter().sum();
    (2.0 * below.min(above) / all).min(1.0)
}

fn approximate_p(u: f64, n1: f64, n2: f64, ties: f64) -> f64 {
    let n = n1 + n2;
    let variance = n1 * n2 / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let away = (u - n1 * n2 / 2.0).abs();
    let z = (away - 0.5).max(0.0) / variance.sqrt();
    (2.0 * Normal::standard().sf(z)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(first: &[f64], second: &[f64]) -> f64 {
        MannWhitney::new(first, second).p
    }

    /// Smallest p-values of samples of n and n values: 2 / C(2n, n).
    #[test]
    fn the_least_p_values_are_those_of_the_tables() {
        for (n, expected) in
            [(2, 2.0 / 6.0), (3, 2.0 / 20.0), (4, 2.0 / 70.0), (5, 2.0 / 252.0), (9, 2.0 / 48_620.0)]
        {
            let low: Vec<f64> = (0..n).map(f64::from).collect();
            let high: Vec<f64> = (n..2 * n).map(f64::from).collect();
            let test = MannWhitney::new(&low, &high);
            assert!(test.exact && test.u == 0.0);
            assert!((test.p / expected - 1.0).abs() < 1e-12, "{n}: {}", test.p);
            assert!((MannWhitney::min_p(n as usize, n as usize) / expected - 1.0).abs() < 1e-12);
            assert_eq!(MannWhitney::new(&high, &low).u, f64::from(n * n));
        }
    }

    /// Critical values of the usual tables (two-sided, 5 %): with 5 and 5 values U = 2, with 10 and 10 U = 23.
    #[test]
    fn critical_values_are_those_of_the_tables() {
        let with_u = |n: usize, u: usize| {
            // Values 0, 2, 4, … against the same, lowered until U is right.
            let mut ranks: Vec<usize> = (1..=n).collect();
            let mut left = u;
            for rank in ranks.iter_mut().rev() {
                let lift = left.min(n);
                *rank += lift;
                left -= lift;
            }
            let first: Vec<f64> = ranks.iter().map(|rank| *rank as f64).collect();
            let second = (1..=2 * n).filter(|rank| !ranks.contains(rank)).map(|rank| rank as f64);
            MannWhitney::new(&first, &second.collect::<Vec<_>>())
        };
        for (n, u) in [(5, 2), (8, 13), (10, 23), (20, 127)] {
            let (at, above) = (with_u(n, u), with_u(n, u + 1));
            assert_eq!((at.u, above.u), (u as f64, (u + 1) as f64));
            assert!(at.p <= 0.05 && above.p > 0.05, "{n}: {at:?} {above:?}");
        }
    }

    #[test]
    fn ties_are_counted() {
        // Of the 6 ways to choose two of 1, 2, 2, 3, two are as extreme as (1, 2): sums 3 (twice)
        // below, 5 above.
        assert!((p(&[1.0, 2.0], &[2.0, 3.0]) - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!(p(&[5.0; 4], &[5.0; 6]), 1.0);
        assert_eq!(p(&[5.0; 60], &[5.0; 60]), 1.0);
        assert_eq!(p(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1.0);
    }

    #[test]
    fn many_values_are_approximated() {
        let low: Vec<f64> = (0..60).map(|i| f64::from(i) * 2.0).collect();
        let high: Vec<f64> = low.iter().map(|value| value + 25.0).collect();
        let (many, fewer) = (MannWhitney::new(&low, &high), MannWhitney::new(&low[..50], &high[..50]));
        assert!(!many.exact && fewer.exact && many.p < 0.05 && fewer.p < 0.05, "{many:?} {fewer:?}");
    }
}
