//! Measurements whose truth is known: values of kernels whose means are given, with spread on every level.

use kerntune_stats::{Place, Rng, Sample};

/// How one kernel is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Builds, boots of each, runs of each, iterations of each.
    pub counts: [u32; 4],
    /// Whether what is below the slowest level comes in numbers that differ: 1 to twice as many less one.
    pub ragged: bool,
}

/// How its values vary.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// Standard deviation of each level's part, relative to the mean.
    pub levels: [f64; 4],
    /// What the parts look like.
    pub shape: Shape,
}

/// The form of a level's part; each has the mean 0 and the standard deviation 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Normal on every level.
    Normal,
    /// Iterations with a long tail above: the logarithm is normal with σ = 1 (skewness 6.2). The rest is normal.
    LongTail,
    /// One iteration in fifty is far above the others: something else had the CPU. The rest is normal.
    Outliers,
    /// The slowest level is one of two: memory lies well or badly. The rest is normal.
    TwoKinds,
    /// The slowest level has a tail above: the logarithm is normal with σ = 0.5 (skewness 1.75). The rest is normal.
    Skewed,
}

/// The base kernel's mean.
const BASE: f64 = 1_000.0;

/// Values of a kernel whose true mean is `ratio` times the base kernel's.
pub fn sample(rng: &mut Rng, plan: Plan, spread: Spread, ratio: f64) -> Sample {
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
                    values.push((Place { build, boot, run, iteration }, BASE * ratio * relative.max(0.0)));
                }
            }
        }
    }
    Sample::new(values).expect("what is simulated is a measurement")
}

/// A part of `level`; `slowest` is the first level that varies.
fn draw(rng: &mut Rng, shape: Shape, level: usize, slowest: usize) -> f64 {
    match shape {
        Shape::LongTail if level == 3 => log_normal(rng, 1.0),
        Shape::Outliers if level == 3 => {
            // One value of weight 1/50 at `far`, the others normal: the mean and the variance are put right.
            let (share, far): (f64, f64) = (0.02, 20.0);
            let out = if rng.uniform() < share { far } else { 0.0 };
            (normal(rng) + out - share * far) / (1.0 + share * (1.0 - share) * far * far).sqrt()
        }
        Shape::TwoKinds if level == slowest => {
            if rng.uniform() < 0.5 {
                -1.0
            } else {
                1.0
            }
        }
        Shape::Skewed if level == slowest => log_normal(rng, 0.5),
        _ => normal(rng),
    }
}

fn log_normal(rng: &mut Rng, sigma: f64) -> f64 {
    let variance = (sigma * sigma).exp_m1() * (sigma * sigma).exp();
    ((sigma * normal(rng)).exp() - (sigma * sigma / 2.0).exp()) / variance.sqrt()
}

/// Standard normal (Box and Muller, Annals of Mathematical Statistics 29(2), 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * rng.uniform().ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.uniform()).cos()
}
