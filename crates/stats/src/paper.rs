//! Figures in the form of the tables of Speer, Kumar and Partridge, "Improving UNIX kernel
//! performance using profile based optimization" (USENIX Winter 1994): base, optimized, standard
//! deviation, improvement.

use crate::sample::{mean, std_dev};
use crate::RowDirection;
use serde::{Deserialize, Serialize};

/// Figures of one row of the paper's table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Improvement {
    /// Mean of the base kernel.
    pub base: f64,
    /// Mean of the optimized kernel.
    pub optimized: f64,
    /// Standard deviation "for the optimized results measured".
    pub std_dev: f64,
    /// Gain in speed, in per cent: (base − optimized) / optimized for times, (optimized − base) /
    /// base for rates.
    pub percent: f64,
    /// Mark `*` in the table: "the standard deviation was larger than the measured improvement".
    pub noise_larger: bool,
}

impl Improvement {
    /// Computes the figures from the means of independent units; neither side is empty.
    pub fn new(base: &[f64], optimized: &[f64], better: RowDirection) -> Self {
        let std_dev = std_dev(optimized);
        let (base, optimized) = (mean(base), mean(optimized));
        let speed = match better {
            RowDirection::Lower => base / optimized,
            RowDirection::Higher => optimized / base,
        };
        let noise_larger = std_dev > (base - optimized).abs();
        Self { base, optimized, std_dev, percent: 100.0 * (speed - 1.0), noise_larger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with this mean and standard deviation.
    fn values(mean: f64, std_dev: f64) -> [f64; 3] {
        [mean - std_dev, mean, mean + std_dev]
    }

    /// Rows of the paper: McKusick, cwcor_1K, cwcor_128K, select1/0, netperf over loopback with 1 process.
    #[test]
    fn the_papers_own_rows_come_out() {
        use RowDirection::{Higher, Lower};
        for (base, optimized, std_dev, better, percent, star) in [
            (117.40, 112.00, 0.89, Lower, "4.8", false),
            (32.4, 32.8, 0.66, Lower, "-1.2", true),
            (166.2, 149.7, 0.19, Lower, "11.0", false),
            (60.04, 53.25, 5.72, Lower, "12.8", false),
            (1568.13, 2115.69, 26.68, Higher, "34.9", false),
        ] {
            let row = Improvement::new(&values(base, 1.0), &values(optimized, std_dev), better);
            assert_eq!((format!("{:.1}", row.percent).as_str(), row.noise_larger), (percent, star));
            assert!((row.std_dev - std_dev).abs() < 1e-9);
        }
    }
}
