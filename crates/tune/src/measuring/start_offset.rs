//! The same run with a start offset.
//!
//! The exact machine repeats to the instruction, including what is chance on hardware: which of
//! several tasks gets the CPU first, how many requests a server finds waiting, where a tick falls.
//! A long unused word on the kernel's command line makes the boot longer, because the console
//! prints it. Everything after it starts later, so figures that depend on the start show it.

use kerntune_guest::Workload;
use kerntune_stats::{std_dev, student_quantile};

/// Letters per start offset that are added to the command line.
const LETTERS: usize = 37;

/// Tail of the noise distribution on each side: one difference in a hundred is a false positive.
const TAIL: f64 = 0.005;

/// Maximum number of runs: the kernel's command line cannot hold more letters.
pub const MAX_RUNS: u32 = 30;

/// Returns the workload with start offset `offset`; 0 leaves it as it is.
pub(crate) fn with_start_offset(workload: &Workload, offset: u32) -> Workload {
    let mut workload = workload.clone();
    if offset > 0 {
        let word = "x".repeat(LETTERS * offset as usize);
        workload.append = format!("{} kt.moment={word}", workload.append).trim().to_owned();
    }
    workload
}

/// Returns the difference between largest and smallest value; 0 if `values` is empty.
pub(crate) fn range(values: &[f64]) -> f64 {
    let of = |choose: fn(f64, f64) -> f64, from| values.iter().copied().fold(from, choose);
    (of(f64::max, f64::NEG_INFINITY) - of(f64::min, f64::INFINITY)).max(0.0)
}

/// Returns a bound on the difference of two means of `runs` runs that 99 of 100 comparisons of
/// equal kernels meet (Student's t). `values` are runs of one kernel; with fewer than two the bound
/// is 0.
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
        // Two sets of eight sums of dice.
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
