//! Is the start of a run like the rest of it?
//!
//! Barrett, Bolz-Tereick, Killick, Mount and Tratt, "Virtual machine warmup blows hot and cold" (OOPSLA 2017), cut the
//! iterations of each process into segments of one level each, by changepoint analysis, and take the last
//! segment for the steady state if it is long enough. The same is done here, with two differences that short kernel
//! benchmarks call for. First, all runs of a row, of both kernels, are judged together: each is divided by its median,
//! and at each position the median over the runs is taken, so that a dozen runs of twenty iterations say more than
//! any of them alone, and an outlier in one of them says nothing. Second, the same number of iterations is left out of
//! every run of both kernels: what is left out cannot favour one of them.
//!
//! Segments have the least sum of squares plus a penalty of 3 σ² ln n for each changepoint; σ is from the differences of
//! neighbours, which a change of level touches only once. They are found exactly (Jackson et al., "An algorithm for
//! optimal partitioning of data on an interval", IEEE Signal Processing Letters 12(2), 2005).

use crate::sample::median;
use crate::Better;
use serde::{Deserialize, Serialize};

/// Runs of fewer iterations are not judged.
pub const LEAST: usize = 10;
/// Longer runs are judged in so many bins of neighbours.
const BINS: usize = 1_000;
/// A segment is this long or longer; but for the first one: often the first iteration alone is slow.
const SHORTEST: usize = 3;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Too few iterations to say.
    NotJudged,
    /// One level from the first iteration on.
    Steady,
    /// Worse at first.
    WarmUp,
    /// Better at first.
    SlowDown,
    /// The last level begins only in the second half: nothing can be called steady, and nothing is left out.
    Unsteady,
}

/// What was found, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How it begins.
    pub state: State,
    /// Iterations to leave out at the start of each run.
    pub left_out: usize,
    /// How many iterations were looked at: those of the shortest run.
    pub iterations: usize,
}

/// Judges all runs of a row, of both kernels. Levels that differ by `tolerance` (relative) or less are one.
pub fn judge(runs: &[Vec<f64>], better: Better, tolerance: f64) -> WarmUp {
    let iterations = runs.iter().map(Vec::len).min().unwrap_or(0);
    let found = |state, left_out| WarmUp { state, left_out, iterations };
    if iterations < LEAST {
        return found(State::NotJudged, 0);
    }
    let (profile, bin) = profile(runs, iterations);
    let segments = segments(&profile);
    let level = |&(from, to): &(usize, usize)| profile[from..to].iter().sum::<f64>() / (to - from) as f64;
    let last = segments.last().map_or(1.0, level);
    let away = |segment: &(usize, usize)| level(segment) / last - 1.0;
    let Some(before) = segments.iter().rposition(|segment| away(segment).abs() > tolerance) else {
        return found(State::Steady, 0);
    };
    let steady_from = segments[before].1;
    if steady_from * 2 > profile.len() {
        return found(State::Unsteady, 0);
    }
    let state = match better {
        Better::Lower if away(&segments[before]) > 0.0 => State::WarmUp,
        Better::Higher if away(&segments[before]) < 0.0 => State::WarmUp,
        _ => State::SlowDown,
    };
    found(state, steady_from * bin)
}

/// The level of each bin of iterations, near 1, and how many iterations a bin has.
fn profile(runs: &[Vec<f64>], iterations: usize) -> (Vec<f64>, usize) {
    let bin = iterations.div_ceil(BINS);
    let relative: Vec<Vec<f64>> = runs
        .iter()
        .map(|run| {
            let middle = median(run);
            // A run of zeros has no level that another could differ from.
            let of_middle = |value: &f64| if middle > 0.0 { value / middle } else { 1.0 };
            run.iter().map(of_middle).collect()
        })
        .collect();
    let at = |iteration: usize| median(&relative.iter().map(|run| run[iteration]).collect::<Vec<_>>());
    // What does not fill a bin at the end is left out of the profile.
    let bins = (0..iterations / bin).map(|b| (b * bin..(b + 1) * bin).map(at).sum::<f64>() / bin as f64);
    (bins.collect(), bin)
}

/// First and end of each segment.
fn segments(profile: &[f64]) -> Vec<(usize, usize)> {
    let n = profile.len();
    let penalty = 3.0 * noise(profile).powi(2) * (n as f64).ln();
    // Sums of what differs from 1 and of its squares, up to each point.
    let (mut sums, mut squares) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for (at, value) in profile.iter().enumerate() {
        sums[at + 1] = sums[at] + (value - 1.0);
        squares[at + 1] = squares[at] + (value - 1.0).powi(2);
    }
    let cost = |from: usize, to: usize| {
        let sum: f64 = sums[to] - sums[from];
        (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0)
    };
    // The least cost of the first `to` points, and where its last segment begins.
    let mut best = vec![(-penalty, 0); n + 1];
    for to in 1..=n {
        let whole = (cost(0, to), 0);
        let cut = (1..(to + 1).saturating_sub(SHORTEST))
            .map(|from| (best[from].0 + cost(from, to) + penalty, from));
        best[to] = cut.fold(whole, |least, this| if this.0 < least.0 { this } else { least });
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

/// The standard deviation around the level, from the differences of neighbours.
fn noise(profile: &[f64]) -> f64 {
    let differences: Vec<f64> = profile.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let absolute: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    // The median of |x| of a normal distribution is 0.6745 σ.
    let robust = median(&absolute) / 0.6745;
    let squares = differences.iter().map(|difference| difference * difference).sum::<f64>();
    // Most neighbours are the same where the clock is coarse.
    let sigma = if robust > 0.0 { robust } else { (squares / differences.len() as f64).sqrt() };
    sigma / std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Runs of `n` iterations with noise of ±1 %, each times what `shape` says.
    fn runs(count: usize, n: usize, seed: u64, shape: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        let mut rng = Rng::new(seed);
        let mut run = || (0..n).map(|i| 100.0 * shape(i) * (1.0 + 0.02 * (rng.uniform() - 0.5))).collect();
        (0..count).map(|_| run()).collect()
    }

    fn judged(runs: &[Vec<f64>]) -> (State, usize) {
        let found = judge(runs, Better::Lower, 0.005);
        (found.state, found.left_out)
    }

    #[test]
    fn a_slow_start_is_left_out() {
        assert_eq!(judged(&runs(6, 20, 1, |i| if i == 0 { 1.5 } else { 1.0 })), (State::WarmUp, 1));
        assert_eq!(judged(&runs(6, 30, 2, |i| if i < 4 { 1.1 } else { 1.0 })), (State::WarmUp, 4));
        let cooling = runs(6, 40, 3, |i| 1.0 + 0.5 * (-(i as f64) / 2.0).exp());
        let (state, left_out) = judged(&cooling);
        assert!(state == State::WarmUp && (4..=14).contains(&left_out), "{state:?} {left_out}");
        let found = judge(&runs(6, 20, 1, |i| if i < 3 { 0.8 } else { 1.0 }), Better::Higher, 0.005);
        assert_eq!((found.state, found.left_out, found.iterations), (State::WarmUp, 3, 20));
    }

    #[test]
    fn a_fast_start_is_left_out_too() {
        assert_eq!(judged(&runs(6, 20, 4, |i| if i < 5 { 0.9 } else { 1.0 })), (State::SlowDown, 5));
    }

    #[test]
    fn what_never_settles_is_said() {
        assert_eq!(judged(&runs(6, 20, 5, |i| 1.0 + i as f64 / 40.0)), (State::Unsteady, 0));
    }

    #[test]
    fn few_iterations_are_not_judged() {
        assert_eq!(judged(&runs(6, 9, 6, |i| 2.0 - i as f64 / 10.0)), (State::NotJudged, 0));
        assert_eq!(judged(&[]), (State::NotJudged, 0));
    }

    #[test]
    fn one_outlier_is_no_warm_up() {
        let mut runs = runs(5, 20, 7, |_| 1.0);
        runs[2][0] = 900.0;
        assert_eq!(judged(&runs), (State::Steady, 0));
    }

    #[test]
    fn a_clock_that_does_not_move_is_steady() {
        assert_eq!(judged(&[vec![0.0; 12], vec![7.0; 12]]), (State::Steady, 0));
    }

    #[test]
    fn long_runs_are_judged_in_bins() {
        let (state, left_out) = judged(&runs(4, 20_000, 8, |i| if i < 2_000 { 1.2 } else { 1.0 }));
        assert_eq!((state, left_out), (State::WarmUp, 2_000));
    }

    /// Noise alone is seldom taken for a warm-up; and where it is, that costs a few iterations and favours nobody.
    #[test]
    fn noise_is_steady() {
        let trials = 1_000;
        let steady = (0..trials).filter(|seed| judged(&runs(6, 20, 100 + seed, |_| 1.0)).0 == State::Steady);
        let steady = steady.count();
        assert!(steady >= 950, "{steady} of {trials}");
    }
}
