//! Runs → statistics → verdict, for exact machines.
//!
//! The crate is pure: figures in, figures out. Start from [`Measurement`]: the exact counters of
//! one run, per operation ([`Measurement::from_profile`]). Pass [`Comparison::new`] a run of the
//! base kernel, a second run of the same kernel (the A/A run) and a run of the tuned kernel. A
//! [`Comparison`] is also the result of `kerntune compare --json` (`docs/json.md`); a [`Verdict`]
//! puts it into sentences.
//!
//! On an exact machine there is nothing to average: a run repeats to the instruction, and the rest
//! shows in the A/A difference. A change that is not larger than the A/A difference means nothing
//! ([`MetricRow::within_noise`], `*` in tables).
//!
//! A change that repeats can still be due to chance. [`Comparison::from_runs`] takes runs with
//! several seeds or start offsets, and gives an interval of the change. [`RandomLayouts`] ranks
//! figures among those of random layouts of the base kernel.
//!
//! ```
//! use kerntune_compare::{Comparison, ComparisonLabels, KernelRef, Measurement, Metric, RegionFigures, Verdict};
//! let run = |instructions| {
//!     Measurement::from_regions([RegionFigures {
//!         name: "tcp_rr",
//!         depth: 0,
//!         closed: true,
//!         operations: 1_000,
//!         counts: [(Metric::PathLength, instructions), (Metric::TakenBranches, 3_000_000)].into(),
//!         events: Default::default(),
//!         whole_events: Default::default(),
//!     }])
//! };
//! let kernel = |label: &str| KernelRef { label: label.into(), ..KernelRef::default() };
//! let labels = ComparisonLabels {
//!     workload: "rr".into(),
//!     machine: "emulator".into(),
//!     model: "generic".into(),
//!     costs: None,
//!     base: kernel("gcc -O2"),
//!     tuned: kernel("gcc-pgo"),
//! };
//! let comparison = Comparison::new(&run(20_396_000)?, &run(20_397_000)?, &run(17_985_000)?, labels)?;
//! let row = comparison.row("tcp_rr", Metric::PathLength).unwrap();
//! assert_eq!((row.base, row.tuned, row.unit.as_str()), (20_396.0, 17_985.0, "instructions/op"));
//! assert!(!row.within_noise());
//! assert!(Verdict::new(&comparison).to_string().contains("tcp_rr -11.8 %"));
//! # Ok::<(), kerntune_compare::Error>(())
//! ```

mod comparison;
mod cpus;
mod layouts;
mod measurement;
mod metric;
mod models;
pub use kerntune_table::number;
mod runs;
mod sensitivity;
mod user_code;
mod verdict;

pub use comparison::{
    ComparedRun, Comparison, ComparisonLabels, KernelRef, MetricRow, MissingOperation, UnequalWork,
    CONFIDENCE, SCHEMA,
};
pub use layouts::{RandomLayoutRow, RandomLayouts};
pub use measurement::{Measurement, RegionFigures, TOTAL};
pub use metric::{
    CodeScope, EventCosts, Metric, MetricDirection, ModelCosts, ModelEvents, OperationCounters,
};
pub use models::{ModelChangeRow, ModelChanges};
pub use user_code::{UnequalUserCode, SAME_WORK_PERCENT};
pub use verdict::{OverallChange, Verdict};

/// Error of runs that cannot be compared.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(
        "the run has no marked region with operations in it, so there is nothing to measure; check that the \
         workload's programs mark their operations and that they ran (the recording's console log says)"
    )]
    NothingMeasured,
    #[error(
        "region \"{region}\" was begun and never ended, so its figures are incomplete; the program that marks it \
         ended early or crashed (the recording's console log says)"
    )]
    OpenRegion { region: String },
    #[error(
        "profile {profile} has {count} regions that were begun and never ended, so their figures are incomplete; a \
         program of the workload ended early or crashed (the recording's console log says)"
    )]
    OpenRegions { profile: String, count: u64 },
    #[error("profile {profile} was recorded without a front-end model, so it has no misses to compare; record it with one")]
    NoModel { profile: String },
    #[error(
        "profile {profile} does not say what each CPU did in region \"{region}\"; record it on several CPUs, with this \
         kerntune"
    )]
    NoCpus { profile: String, region: String },
    #[error("operation \"{operation}\" was done {here} times in one recording and {there} times in the other; record both with the same run of the workload")]
    OtherHalf { operation: String, here: u64, there: u64 },
    #[error("a region is named \"{TOTAL}\", which is the name of the sum of all regions; rename it in the workload")]
    ReservedName,
    #[error(
        "the {run} run has {instructions} kernel instructions and not one taken branch: its branch counters were \
         not captured; record it with counters"
    )]
    NotCaptured { run: ComparedRun, instructions: u64 },
    #[error(
        "the runs have no operation in common (base: {base}; tuned: {tuned}); compare runs of the same workload"
    )]
    NothingInCommon { base: String, tuned: String },
    #[error("this is not a kerntune comparison ({SCHEMA}): {0}")]
    Json(#[from] serde_json::Error),
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
