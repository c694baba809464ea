//! Timed results → ratios with intervals → verdicts. Pure: text and figures in, figures out; no file is
//! opened, nothing is spawned, and what is random comes from a seed, so that results repeat to the bit.
//!
//! Start from [`Results`] (one file of `kerntune bench run`), [`Set::join`] (several files of one kernel), and
//! [`Comparison::new`], which holds a tuned kernel's set against a base kernel's. Its parts are there on
//! their own: [`Sample`] (values with their place in builds, boots, runs and iterations), [`Ratio`] (of
//! two means, with interval and tests), [`MannWhitney`], [`correction`], [`warmup`], [`paper`]; and for who takes
//! the measurements [`schedule`] (in which order) and [`Stop`] (until when). [`Prediction`] holds the exact machine's
//! figures against a clock, with a [`RankCorrelation`], and [`UnderModels`] what several front-end models say together.
//!
//! Every method, its source and how well its intervals cover: `docs/statistics.md`.
//!
//! ```
//! use kerntune_stats::Ratio;
//! // The time of five boots each, ns: 5 % less, and no doubt about it.
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
pub mod paper;
mod prediction;
mod ranges;
mod rank;
mod ratio;
mod results;
mod rng;
mod sample;
pub mod schedule;
mod set;
mod shift;
mod stop;
mod together;
mod under_models;
mod verdict;
pub mod warmup;

pub use bootstrap::{percentile, Bootstrap};
pub use comparison::{Aa, AaKind, Comparison, LeftOut, Options, Row, SetOf, SCHEMA};
pub use correction::Correction;
pub use counter::Counter;
pub use cpu::CpuTime;
pub use error::{Error, Result};
pub use interval::Interval;
pub use level::{Level, Place};
pub use mann_whitney::MannWhitney;
pub use prediction::{FigureCorrelation, PredictedRow, Prediction, Recipe, FIGURES, PREDICTION_SCHEMA};
pub use rank::RankCorrelation;
pub use ratio::{student_quantile, Method, Ratio};
pub use results::{Better, Figures, Kernel, Results, ResultsRow, Skipped, Value, RESULTS_SCHEMA};
pub use rng::Rng;
pub use sample::{common_level, mean, median, std_dev, Sample};
pub use set::{Set, SetRow};
pub use stop::{Decision, Look, Stop};
pub use together::Together;
pub use under_models::{ModelledRange, UnderModels};
pub use verdict::{Because, Verdict};
