//! The loop: from a workload to a proven faster kernel, as a resumable plan of steps.
//!
//! Every step is a function that can be used on its own, whose result is a directory named by
//! what went into it. Running a step again finds the result; a step that was killed is taken up
//! again. Start from [`Session`], then
//!
//! - [`record`](record::record): one run on the exact machine → a profile,
//! - [`train`](train::train): one run of an instrumented kernel → its counters,
//! - [`selftest`](selftest::selftest): one run of functional checks on a kernel,
//! - [`timed`](bench::timed::timed): kernels on a machine that times, in turn → their times,
//! - [`compare`](compare::compare): two kernels (and one of them twice) → a comparison,
//! - [`optimize`](optimize::optimize): a kernel and a workload → a tuned kernel and the proof,
//! - [`mod@bench`]: rows of suites on a machine → their figures in one format,
//! - [`quality`](quality::check): a profile and a kernel → whether the one is fit for the other,
//! - [`package`](package::package): a kernel → a Debian package with what the work directory knows of it,
//! - [`paper`](paper::paper): a paper's experiments → its tables with ours beside them,
//! - [`survey`](survey::survey()): what a paper measured and found → what becomes of it here,
//! - [`trial`](trial::trial): changes to a kernel and what runs in it → what each brings, alone and together,
//! - [`trim`](trim::trim()): options of which some workloads run nothing → a kernel without them,
//! - [`tune`](tune()): all of it, by a [`Recipe`].

/// Names the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");
/// Names the code of this crate alone.
const OWN_CODE: &str = env!("KERNTUNE_CODE_OWN");

pub mod auto;
pub mod base;
pub mod bench;
pub mod bisect;
pub mod compare;
pub mod cross;
pub mod detail;
mod engine;
mod error;
pub mod explain;
pub mod export;
pub mod follow_mcrae;
pub mod foreign;
pub mod import_mcrae;
pub mod import_perf;
mod layouts;
pub mod merge;
pub mod model;
mod moment;
pub mod optimize;
pub mod outputs;
pub mod package;
pub mod paper;
mod part;
pub mod quality;
pub mod rebuild;
mod recipe;
mod recipes;
pub mod record;
pub mod run_files;
pub mod selftest;
mod session;
mod sound;
mod stand_in;
mod steps;
pub mod study;
pub mod survey;
mod together;
pub mod train;
pub mod trial;
pub mod trim;
mod tune;
pub mod watch;

pub use engine::{vouch, Plan, State, StepName, StepState};
pub use error::{Error, Result};
pub use layouts::{LAYOUT_SEED, MOST_LAYOUTS};
pub use moment::MOST_RUNS;
pub use part::{Given, RecipeOptions};
pub use recipe::Recipe;
pub use session::Session;
pub use sound::{entries as exclusion_entries, Excluded};
pub use tune::{tune, TuneRequest, Tuned};
