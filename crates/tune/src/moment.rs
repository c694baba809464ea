//! The same run, begun at another moment.
//!
//! The exact machine repeats to the instruction, also what is chance: who of several gets the CPU first, how many requests a server
//! finds waiting, where a tick falls. A word on the kernel's command line that nobody reads makes the boot longer by what
//! the console takes to print it. So everything after it comes a moment later, and what hangs on that shows.

use kerntune_guest::Workload;
use kerntune_stats::{std_dev, student_quantile};

/// Letters by which the command line grows from moment to moment.
const LETTERS: usize = 37;

/// Tail of the noise's distribution on each side: one difference of a hundred is taken for something.
const TAIL: f64 = 0.005;

/// Most runs: the command line has room for no more letters.
pub const MOST_RUNS: u32 = 30;

/// The workload so many moments later; 0 is as it is.
pub(crate) fn later(workload: &Workload, moment: u32) -> Workload {
    let mut workload = workload.clone();
    if moment > 0 {
        let word = "x".repeat(LETTERS * moment as usize);
        workload.append = format!("{} kt.moment={word}", workload.append).trim().to_owned();
    }
    workload
}

/// By how much the values differ at most.
pub(crate) fn range(values: &[f64]) -> f64 {
    let of = |choose: fn(f64, f64) -> f64, from| values.iter().copied().fold(from, choose);
    (of(f64::max, f64::NEG_INFINITY) - of(f64::min, f64::INFINITY)).max(0.0)
}

/// What the means of two sets of `runs` runs differ by at most where nothing is changed, in 99 of 100 cases; `values` are some
/// runs of one of them. 0 of fewer than two.
pub(crate) fn noise(values: &[f64], runs: u32) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    student_quantile(1.0 - TAIL, (values.len() - 1) as f64) * std_dev(values) * (2.0 / f64::from(runs)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_stats::Rng;

    #[test]
    fn what_changes_nothing_is_taken_for_something_once_in_a_hundred_times() {
        let mut rng = Rng::new(7);
        // Eight throws of a sum of dice, twice.
        let mut runs =
            || -> Vec<f64> { (0..8).map(|_| (0..12).map(|_| rng.uniform()).sum::<f64>()).collect() };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let times = 20_000;
        let wrong = (0..times).filter(|_| {
            let (base, with) = (runs(), runs());
            (mean(&with) - mean(&base)).abs() > noise(&base, 8)
        });
        let wrong = wrong.count() as f64 / f64::from(times);
        assert!((0.005..0.02).contains(&wrong), "{wrong}");
    }

    #[test]
    fn one_run_has_no_noise_and_the_range_is_of_all() {
        assert_eq!((noise(&[], 3), noise(&[5.0], 3), noise(&[5.0, 5.0, 5.0], 3)), (0.0, 0.0, 0.0));
        assert_eq!((range(&[]), range(&[3.0]), range(&[3.0, 1.0, 2.0])), (0.0, 0.0, 2.0));
    }
}
