//! Simulated measurements with a known truth: kernels with given means, and spread on every level.

use kerntune_stats::{Rng, Sample, ValuePosition};

/// Measurement plan of one kernel.
#[derive(Debug, Clone, Copy)]
pub struct MeasurementPlan {
    /// Number of builds, boots of each, runs of each, iterations of each.
    pub counts: [u32; 4],
    /// True if counts below the slowest level vary between 1 and twice as many less one.
    pub ragged: bool,
}

/// Variation of a kernel's values.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// Standard deviation of each level's part, relative to the mean.
    pub levels: [f64; 4],
    /// Distribution of the parts.
    pub shape: DistributionShape,
}

/// Distribution of a level's part; each has mean 0 and standard deviation 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DistributionShape {
    /// Normal on every level.
    Normal,
    /// Iterations have a long upper tail: the logarithm is normal with σ = 1 (skewness 6.2). The
    /// rest is normal.
    LongTail,
    /// One iteration in fifty is a far outlier: something else had the CPU. The rest is normal.
    Outliers,
    /// The slowest level takes one of two values: good or bad memory layout. The rest is normal.
    TwoKinds,
    /// The slowest level has an upper tail: the logarithm is normal with σ = 0.5 (skewness 1.75).
    /// The rest is normal.
    Skewed,
}

/// Mean of the base kernel.
const BASE: f64 = 1_000.0;

/// Draws values of a kernel whose true mean is `ratio` times the base kernel's.
pub fn sample(rng: &mut Rng, plan: MeasurementPlan, spread: Spread, ratio: f64) -> Sample {
    let mut values = Vec::new();
    let first = spread.levels.iter().position(|sd| *sd > 0.0).unwrap_or(3);
    let part = |rng: &mut Rng, level: usize| spread.levels[level] * draw(rng, spread.shape, level, first);
    let slowest = plan.counts.iter().position(|count| *count > 1).unwrap_or(0);
    let count = |rng: &mut Rng, level: usize| match plan.counts[level] {
        count if plan.ragged && level > slowest => 1 + rng.index(2 * count as usize - 1) as u32,
        count => count,
    };
    for build in 0..plan.counts[0] {
        let of_build = part(rng, 0);
        for boot in 0..count(rng, 1) {
            let of_boot = of_build + part(rng, 1);
            for run in 0..count(rng, 2) {
                let of_run = of_boot + part(rng, 2);
                for iteration in 0..count(rng, 3) {
                    let relative = 1.0 + of_run + part(rng, 3);
                    values.push((
                        ValuePosition { build, boot, run, iteration },
                        BASE * ratio * relative.max(0.0),
                    ));
                }
            }
        }
    }
    Sample::new(values).expect("what is simulated is a measurement")
}

/// Draws a part of `level`; `slowest` is the first level that varies.
fn draw(rng: &mut Rng, shape: DistributionShape, level: usize, slowest: usize) -> f64 {
    match shape {
        DistributionShape::LongTail if level == 3 => log_normal(rng, 1.0),
        DistributionShape::Outliers if level == 3 => {
            // One value of weight 1/50 lies at `far`, the others are normal; mean and variance are
            // normalized.
            let (share, far): (f64, f64) = (0.02, 20.0);
            let out = if rng.uniform() < share { far } else { 0.0 };
            (normal(rng) + out - share * far) / (1.0 + share * (1.0 - share) * far * far).sqrt()
        }
        DistributionShape::TwoKinds if level == slowest => {
            if rng.uniform() < 0.5 {
                -1.0
            } else {
                1.0
            }
        }
        DistributionShape::Skewed if level == slowest => log_normal(rng, 0.5),
        _ => normal(rng),
    }
}

fn log_normal(rng: &mut Rng, sigma: f64) -> f64 {
    let variance = (sigma * sigma).exp_m1() * (sigma * sigma).exp();
    ((sigma * normal(rng)).exp() - (sigma * sigma / 2.0).exp()) / variance.sqrt()
}

/// Draws a standard normal number (Box and Muller, Annals of Mathematical Statistics 29(2), 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * rng.uniform().ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.uniform()).cos()
}
