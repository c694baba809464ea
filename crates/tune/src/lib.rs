//! Kernel tuning from a workload to a proven faster kernel, as a resumable plan of steps.
//!
//! Every step is a function that can be used alone. Its result is a directory named by its inputs:
//! a second call finds the result, and a step that was killed is resumed. Start from [`Session`],
//! then
//!
//! - [`record`](record::record): one run on the exact machine → a profile,
//! - [`train`](train::train): one run of an instrumented kernel → its counters,
//! - [`selftest`](selftest::selftest): one run of functional checks on a kernel,
//! - [`timed`](bench::timed::timed): kernels that take turns on a machine that times → their times,
//! - [`compare`](compare::compare): two kernels (and one of them twice) → a comparison,
//! - [`optimize`](optimize::optimize): a kernel and a workload → a tuned kernel and the proof,
//! - [`instrument`](instrument::instrument): a kernel → the one that counts for it on another machine,
//! - [`mod@bench`]: rows of suites on a machine → their figures in one format,
//! - [`quality`](quality::check): a profile and a kernel → whether the profile fits the kernel,
//! - [`own_build`]: a profile → files for a kernel that users build themselves,
//! - [`package`](package::package): a kernel → a Debian package with its profile and comparisons,
//! - [`trial`](trial::trial): changes to a kernel or its workload → the gain of each, alone and
//!   together,
//! - [`trim`](trim::trim()): options whose code no workload runs → a kernel without them,
//! - [`tune`](tune()): source → base kernel, tuned kernel, proof and comparison, by a [`Recipe`].

/// Hash of the code of this crate and the crates below it, part of the keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");
/// Hash of the code of this crate alone.
const OWN_CODE: &str = env!("KERNTUNE_CODE_OWN");

pub mod bench;
pub mod bisect;
pub mod dry_run;
mod engine;
mod error;
pub mod fuzz_entry;
pub mod hints;
mod measuring;
pub mod own_build;
mod parallel;
mod recipe;
mod recipe_parts;
mod recipes;
mod runs;
mod session;
pub mod trial;
pub mod trim;
mod tuning;

pub use engine::{vouch, StepName, StepProgress, StepStatus, TuningPlan};
pub use error::{Error, Result};
pub use measuring::layouts::{LAYOUT_SEED, MAX_LAYOUTS};
pub use measuring::start_offset::MAX_RUNS;
pub use measuring::{compare, explain};
pub use parallel::run_parallel;
pub use recipe::Recipe;
pub use recipe_parts::base;
pub use recipe_parts::exclude::{entries as exclusion_entries, ExcludedObjects};
pub use recipe_parts::settings::{RecipeOptions, SuppliedProfile, TuningSettings};
pub use runs::{
    detail, export, import_instructions, import_perf, merge, model, outputs, rebuild, record, run_files,
    selftest, train, watch,
};
pub use session::Session;
pub use tuning::tune::{tune, TuneRequest, TuneResult};
pub use tuning::{auto, cross, instrument, optimize, package, quality};
