//! Detection of warm-up at the start of runs.
//!
//! Barrett, Bolz-Tereick, Killick, Mount and Tratt, "Virtual machine warmup blows hot and cold"
//! (OOPSLA 2017), divide the iterations of each process into segments of one level by changepoint
//! analysis, and take the last segment as the steady state if it is long enough. This module does
//! the same, with two differences for short kernel benchmarks. First, all runs of a row, of both
//! kernels, are judged together: each is divided by its median, and at each position the median
//! over the runs is taken. So a dozen runs of twenty iterations tell more than any one of them, and
//! an outlier in one run has no effect. Second, the same number of iterations is left out of every
//! run of both kernels, which cannot favor one of them.
//!
//! The segments minimize the sum of squares plus a penalty of 3 σ² ln n for each changepoint; σ
//! comes from the differences of neighbors, which a change of level affects only once. The optimum
//! is exact (Jackson et al., "An algorithm for optimal partitioning of data on an interval", IEEE
//! Signal Processing Letters 12(2), 2005).

use crate::sample::median;
use crate::RowDirection;
use serde::{Deserialize, Serialize};

/// Runs with fewer iterations are not judged.
pub const MIN_ITERATIONS: usize = 10;
/// Longer runs are averaged into so many bins of neighbors.
const MAX_BINS: usize = 1_000;
/// Minimum length of a segment other than the first: often only the first iteration is slow.
const MIN_SEGMENT: usize = 3;

/// Result of the detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpState {
    /// Too few iterations to judge.
    NotJudged,
    /// One level from the first iteration on.
    Steady,
    /// Worse at first.
    WarmUp,
    /// Better at first.
    SlowDown,
    /// The last level begins only in the second half: there is no steady state, and nothing is left
    /// out.
    Unsteady,
}

/// Warm-up of a row, and the iterations to leave out for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Kind of start.
    pub state: WarmUpState,
    /// Iterations to leave out at the start of each run.
    pub left_out: usize,
    /// Number of iterations examined: those of the shortest run.
    pub iterations: usize,
}

/// Judges all runs of a row, of both kernels. Levels that differ by at most `tolerance` (relative)
/// are one level.
pub fn detect(runs: &[Vec<f64>], better: RowDirection, tolerance: f64) -> WarmUp {
    let iterations = runs.iter().map(Vec::len).min().unwrap_or(0);
    let found = |state, left_out| WarmUp { state, left_out, iterations };
    if iterations < MIN_ITERATIONS {
        return found(WarmUpState::NotJudged, 0);
    }
    let (profile, bin) = profile(runs, iterations);
    let segments = segments(&profile);
    let level = |&(from, to): &(usize, usize)| profile[from..to].iter().sum::<f64>() / (to - from) as f64;
    let last = segments.last().map_or(1.0, level);
    let away = |segment: &(usize, usize)| level(segment) / last - 1.0;
    let Some(before) = segments.iter().rposition(|segment| away(segment).abs() > tolerance) else {
        return found(WarmUpState::Steady, 0);
    };
    let steady_from = segments[before].1;
    if steady_from * 2 > profile.len() {
        return found(WarmUpState::Unsteady, 0);
    }
    let state = match better {
        RowDirection::Lower if away(&segments[before]) > 0.0 => WarmUpState::WarmUp,
        RowDirection::Higher if away(&segments[before]) < 0.0 => WarmUpState::WarmUp,
        _ => WarmUpState::SlowDown,
    };
    found(state, steady_from * bin)
}

/// Returns the level of each bin of iterations, near 1, and the iterations of a bin.
fn profile(runs: &[Vec<f64>], iterations: usize) -> (Vec<f64>, usize) {
    let bin = iterations.div_ceil(MAX_BINS);
    let relative: Vec<Vec<f64>> = runs
        .iter()
        .map(|run| {
            let middle = median(run);
            // A run of zeros has no level to differ from.
            let of_middle = |value: &f64| if middle > 0.0 { value / middle } else { 1.0 };
            run.iter().map(of_middle).collect()
        })
        .collect();
    let at = |iteration: usize| median(&relative.iter().map(|run| run[iteration]).collect::<Vec<_>>());
    // Iterations at the end that do not fill a bin are ignored.
    let bins = (0..iterations / bin).map(|b| (b * bin..(b + 1) * bin).map(at).sum::<f64>() / bin as f64);
    (bins.collect(), bin)
}

/// Returns start and end of each segment.
fn segments(profile: &[f64]) -> Vec<(usize, usize)> {
    let n = profile.len();
    let penalty = 3.0 * noise(profile).powi(2) * (n as f64).ln();
    // Prefix sums of deviations from 1 and of their squares.
    let (mut sums, mut squares) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for (at, value) in profile.iter().enumerate() {
        sums[at + 1] = sums[at] + (value - 1.0);
        squares[at + 1] = squares[at] + (value - 1.0).powi(2);
    }
    let cost = |from: usize, to: usize| {
        let sum: f64 = sums[to] - sums[from];
        (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0)
    };
    // Lowest cost of the first `to` points, and the start of their last segment.
    let mut best = vec![(-penalty, 0); n + 1];
    for to in 1..=n {
        let whole = (cost(0, to), 0);
        let cut = (1..(to + 1).saturating_sub(MIN_SEGMENT))
            .map(|from| (best[from].0 + cost(from, to) + penalty, from));
        best[to] = cut.fold(whole, |min, this| if this.0 < min.0 { this } else { min });
    }
    let mut segments = Vec::new();
    let mut to = n;
    while to > 0 {
        segments.push((best[to].1, to));
        to = best[to].1;
    }
    segments.reverse();
    segments
}

/// Returns the standard deviation around the level, estimated from differences of neighbors.
fn noise(profile: &[f64]) -> f64 {
    let differences: Vec<f64> = profile.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let absolute: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    // The median of |x| of a normal distribution is 0.6745 σ.
    let robust = median(&absolute) / 0.6745;
    let squares = differences.iter().map(|difference| difference * difference).sum::<f64>();
    // With a coarse clock most neighbors are equal.
    let sigma = if robust > 0.0 { robust } else { (squares / differences.len() as f64).sqrt() };
    sigma / std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Runs of `n` iterations with noise of ±1 %, each multiplied by `shape`.
    fn runs(count: usize, n: usize, seed: u64, shape: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        let mut rng = Rng::new(seed);
        let mut run = || (0..n).map(|i| 100.0 * shape(i) * (1.0 + 0.02 * (rng.uniform() - 0.5))).collect();
        (0..count).map(|_| run()).collect()
    }

    fn judged(runs: &[Vec<f64>]) -> (WarmUpState, usize) {
        let found = detect(runs, RowDirection::Lower, 0.005);
        (found.state, found.left_out)
    }

    #[test]
    fn a_slow_start_is_left_out() {
        assert_eq!(judged(&runs(6, 20, 1, |i| if i == 0 { 1.5 } else { 1.0 })), (WarmUpState::WarmUp, 1));
        assert_eq!(judged(&runs(6, 30, 2, |i| if i < 4 { 1.1 } else { 1.0 })), (WarmUpState::WarmUp, 4));
        let cooling = runs(6, 40, 3, |i| 1.0 + 0.5 * (-(i as f64) / 2.0).exp());
        let (state, left_out) = judged(&cooling);
        assert!(state == WarmUpState::WarmUp && (4..=14).contains(&left_out), "{state:?} {left_out}");
        let found = detect(&runs(6, 20, 1, |i| if i < 3 { 0.8 } else { 1.0 }), RowDirection::Higher, 0.005);
        assert_eq!((found.state, found.left_out, found.iterations), (WarmUpState::WarmUp, 3, 20));
    }

    #[test]
    fn a_fast_start_is_left_out_too() {
        assert_eq!(judged(&runs(6, 20, 4, |i| if i < 5 { 0.9 } else { 1.0 })), (WarmUpState::SlowDown, 5));
    }

    #[test]
    fn what_never_settles_is_said() {
        assert_eq!(judged(&runs(6, 20, 5, |i| 1.0 + i as f64 / 40.0)), (WarmUpState::Unsteady, 0));
    }

    #[test]
    fn few_iterations_are_not_judged() {
        assert_eq!(judged(&runs(6, 9, 6, |i| 2.0 - i as f64 / 10.0)), (WarmUpState::NotJudged, 0));
        assert_eq!(judged(&[]), (WarmUpState::NotJudged, 0));
    }

    #[test]
    fn one_outlier_is_no_warm_up() {
        let mut runs = runs(5, 20, 7, |_| 1.0);
        runs[2][0] = 900.0;
        assert_eq!(judged(&runs), (WarmUpState::Steady, 0));
    }

    #[test]
    fn a_clock_that_does_not_move_is_steady() {
        assert_eq!(judged(&[vec![0.0; 12], vec![7.0; 12]]), (WarmUpState::Steady, 0));
    }

    #[test]
    fn long_runs_are_judged_in_bins() {
        let (state, left_out) = judged(&runs(4, 20_000, 8, |i| if i < 2_000 { 1.2 } else { 1.0 }));
        assert_eq!((state, left_out), (WarmUpState::WarmUp, 2_000));
    }

    /// Pure noise is rarely taken for a warm-up; where it is, this costs a few iterations and
    /// favors neither kernel.
    #[test]
    fn noise_is_steady() {
        let trials = 1_000;
        let steady =
            (0..trials).filter(|seed| judged(&runs(6, 20, 100 + seed, |_| 1.0)).0 == WarmUpState::Steady);
        let steady = steady.count();
        assert!(steady >= 950, "{steady} of {trials}");
    }
}
