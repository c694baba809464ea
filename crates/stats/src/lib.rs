//! Timed results → ratios with intervals → verdicts.
//!
//! The crate is pure: text and figures in, figures out. It opens no file and spawns nothing, and
//! random numbers come from a seed, so that results repeat to the bit.
//!
//! Start from [`BenchResults`] (one file of `kerntune bench run`), [`JoinedResults::join`] (several
//! files of one kernel) and [`TimedComparison::new`], which compares a tuned kernel with a base
//! kernel. The building blocks can be used alone: [`Sample`] (values with their position in builds,
//! boots, runs and iterations), [`Ratio`] (of two means, with interval and tests), [`MannWhitney`],
//! [`correction`], [`warmup`] and [`paper`]. To take measurements, use [`schedule`] (the order) and
//! [`StopRule`] (the end). [`Prediction`] compares figures of the exact machine with those of a
//! clock by [`RankCorrelation`], and [`ModelRangeSummary`] does so for several front-end models
//! together.
//!
//! `docs/statistics.md` describes every method, its source, and the coverage of its intervals.
//!
//! ```
//! use kerntune_stats::Ratio;
//! // Times of five boots each, in ns: 5 % less, beyond doubt.
//! let ratio = Ratio::new(&[101.0, 100.0, 99.5, 100.5, 99.0], &[95.5, 94.5, 95.0, 96.0, 94.0])?;
//! let interval = ratio.interval(0.95);
//! assert!((ratio.estimate() - 0.95).abs() < 1e-12);
//! assert!((0.93..0.95).contains(&interval.low) && (0.95..0.97).contains(&interval.high));
//! assert!(ratio.p_different() < 0.001);
//! # Ok::<(), kerntune_stats::Error>(())
//! ```

mod bootstrap;
mod comparison;
pub mod correction;
mod counter;
mod cpu;
mod error;
mod interval;
mod level;
mod mann_whitney;
mod model_ranges;
mod overall_gain;
pub mod paper;
mod prediction;
mod ranges;
mod rank;
mod ratio;
mod results;
mod rng;
mod sample;
mod sample_mean;
pub mod schedule;
mod set;
mod shift;
mod stop;
mod verdict;
pub mod warmup;

pub use bootstrap::{percentile, Bootstrap};
pub use comparison::{
    AaComparison, AaKind, ComparisonOptions, KernelFiles, TimedComparison, TimedRow, UncomparedRow, SCHEMA,
};
pub use correction::PValueCorrection;
pub use counter::PerfCounter;
pub use cpu::CpuTime;
pub use error::{Error, Result};
pub use interval::Interval;
pub use level::{ValuePosition, VariationLevel};
pub use mann_whitney::MannWhitney;
pub use model_ranges::{ModelRange, ModelRangeSummary};
pub use overall_gain::OverallGain;
pub use prediction::{
    FigureCorrelation, PredictedRow, Prediction, RecipeResults, FIGURES, PREDICTION_SCHEMA,
};
pub use rank::RankCorrelation;
pub use ratio::{student_quantile, Ratio, RatioMethod};
pub use results::{
    BenchResults, ExactFigures, MeasuredKernel, MeasuredValue, ResultsRow, RowDirection, SkippedRow,
    RESULTS_SCHEMA,
};
pub use rng::{Rng, SplitMix64};
pub use sample::{common_level, mean, median, std_dev, Sample};
pub use sample_mean::SampleMean;
pub use set::{JoinedResults, JoinedRow};
pub use stop::{StopDecision, StopRule, WidestRow};
pub use verdict::{RowVerdict, VerdictReason};
