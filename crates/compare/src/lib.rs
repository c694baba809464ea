//! Runs → statistics → verdict, for exact machines. Pure: figures in, figures out.
//!
//! Start from [`Measurement`] (the exact counters of one run, per operation: a measurement is a
//! profile, [`Measurement::from_profile`]), then
//! [`Comparison::new`] with a run of the base kernel, a second run of the same base kernel (the
//! A/A run) and a run of the tuned kernel. A [`Comparison`] is also the machine-readable result
//! of `kerntune compare --json` (`docs/json.md`), [`Verdict`] says it in sentences.
//!
//! On an exact machine there is nothing to average: a run repeats to the instruction, and what
//! does not repeat shows in the A/A difference. A change that is not larger than the A/A
//! difference says nothing ([`Row::within_noise`], `*` in tables). What repeats can be chance all the same:
//! [`Comparison::of_runs`] takes runs with several seeds or that begin at several moments, and says between what a change
//! lies; [`Layouts`] says where figures lie among those of random layouts of the base kernel.
//!
//! ```
//! use kerntune_compare::{Comparison, KernelRef, Labels, Measurement, Metric, RegionFigures, Verdict};
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
//! let labels = Labels {
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
mod held;
mod layouts;
mod measurement;
mod metric;
mod models;
pub mod number;
mod runs;
mod user_code;
mod verdict;

pub use comparison::{Comparison, KernelRef, Labels, Missing, Row, Run, UnequalWork, CONFIDENCE, SCHEMA};
pub use layouts::{LayoutRow, Layouts};
pub use measurement::{Measurement, RegionFigures, TOTAL};
pub use metric::{Better, Costs, EventCosts, Metric, ModelEvents, OperationCounters, Whose};
pub use models::{ModelRow, Models};
pub use user_code::{UnequalUserCode, SAME_WORK_PERCENT};
pub use verdict::{Outcome, Verdict};

/// What can be wrong with runs that are to be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A run without a single measured operation.
    #[error(
        "the run has no marked region with operations in it, so there is nothing to measure; check that the \
         workload's programs mark their operations and that they ran (the recording's console log says)"
    )]
    NothingMeasured,
    /// A region was still open when the run ended.
    #[error(
        "region \"{region}\" was begun and never ended, so its figures are not whole; the program that marks it \
         ended early or crashed (the recording's console log says)"
    )]
    OpenRegion {
        /// The region's name.
        region: String,
    },
    /// Regions of a profile were still open when the run ended.
    #[error(
        "profile {profile} has {count} regions that were begun and never ended, so their figures are not whole; a \
         program of the workload ended early or crashed (the recording's console log says)"
    )]
    OpenRegions {
        /// The profile's id.
        profile: String,
        /// How many.
        count: u64,
    },
    /// A profile without misses.
    #[error("profile {profile} was recorded without a front-end model, so it has no misses to compare; record it with one")]
    NoModel {
        /// The profile's id.
        profile: String,
    },
    /// A profile that does not say of each region what each CPU did in it.
    #[error(
        "profile {profile} does not say what each CPU did in region \"{region}\"; record it on several CPUs, with this \
         kerntune"
    )]
    NoCpus {
        /// The profile's id.
        profile: String,
        /// The first such region.
        region: String,
    },
    /// Two halves of the same work that are not.
    #[error("operation \"{operation}\" was done {here} times in one recording and {there} times in the other; record both with the same run of the workload")]
    OtherHalf {
        /// The operation.
        operation: String,
        /// How often in one.
        here: u64,
        /// How often in the other.
        there: u64,
    },
    /// A region is called what the sum of all is called.
    #[error("a region is named \"{TOTAL}\", which is the name of the sum of all regions; rename it in the workload")]
    ReservedName,
    /// A run recorded without counters.
    #[error(
        "the {run} run has {instructions} kernel instructions and not one taken branch: its branch counters were \
         not captured; record it with counters"
    )]
    NotCaptured {
        /// Which run.
        run: Run,
        /// Its kernel instructions.
        instructions: u64,
    },
    /// The runs did not do the same things.
    #[error(
        "the runs have no operation in common (base: {base}; tuned: {tuned}); compare runs of the same workload"
    )]
    NothingInCommon {
        /// Operations of the base run.
        base: String,
        /// Operations of the tuned run.
        tuned: String,
    },
    /// Text that is not a comparison of ours.
    #[error("this is not a kerntune comparison ({SCHEMA}): {0}")]
    Json(#[from] serde_json::Error),
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
