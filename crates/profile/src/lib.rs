//! Profiles: counts of a run with their origin, stored on disk, merged and compared.
//!
//! Every way to capture produces a [`Profile`]; every report, comparison and recipe reads one.
//! Start from [`Profile`] (a [`Manifest`] and [`Tables`]), from [`list`] and [`find`] for profiles
//! in the work directory, and from [`merge`], [`ProfileSum`] and [`difference`]. [`CallTree`] is for
//! sums along call paths. `docs/profile.md` describes the directory and each column; [`SCHEMA`] is the same for
//! programs.
//!
//! Files are not trusted: loading fails, with the name of the file, if a file is not the one that
//! the manifest names.
//!
//! ```
//! use kerntune_profile::{Address, FunctionIndex, KernelId, Manifest, Profile, Symbol, Tables};
//! let kernel = KernelId { id: "k1".into(), label: "base".into(), version: "6.12.90".into() };
//! let symbol = Symbol {
//!     function: FunctionIndex(0),
//!     name: "schedule".into(),
//!     address: Address(0xffff_ffff_8100_0000),
//!     size: 64,
//!     file: None,
//!     module: None,
//! };
//! let profile = Profile {
//!     manifest: Manifest::new("p1", kernel, "rr", "emulator"),
//!     tables: Tables { symbols: vec![symbol], ..Tables::default() },
//! };
//! let dir = tempfile::tempdir().unwrap();
//! let manifest = profile.save(dir.path()).unwrap();
//! assert_eq!(manifest.tables["symbols"].rows, 1);
//! assert_eq!(Profile::load(dir.path()).unwrap().tables, profile.tables);
//! ```

/// Hash of the code of this crate and of the crates below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod anomaly;
mod call_tree;
mod difference;
mod directory;
mod error;
mod execution_counts;
mod feeds;
mod histogram;
mod host;
mod kinds;
mod known_symbols;
mod latest;
mod manifest;
mod merge;
mod named_functions;
mod numbering;
mod page_reader;
mod parquet_file;
mod parquet_guard;
mod profile_sum;
mod row_sums;
mod rules;
mod sampled;
mod scope;
mod store;
mod system_calls;
mod tables;
mod thread_name;
mod totals;
mod units;

pub use anomaly::{Anomaly, AnomalyWeight};
pub use call_tree::{add_up, add_up_figures, upwards, CallNode, CallTree, PathFrame, TreeChildren};
pub use difference::{
    difference, difference_within, source_name, FunctionDifference, PathDifference, PathFigures,
    ProfileDifference, RowFrame,
};
pub use directory::{load_manifest, verify, KIND, MANIFEST_FILE};
pub use error::{Error, Result};
pub use execution_counts::ExecutionCounts;
pub use feeds::{
    lacking, recipes_fed_by, CountKind, ProfileSource, RecipeNeeds, PROFILE_SOURCES, RECIPE_NEEDS,
};
pub use histogram::{bounds, bucket_of, BUCKETS};
pub use host::{load_config, save_config, HostConfig, HostState, CONFIG_FILE};
pub use kinds::{CallKind, EdgeKind, ModelEvent, PathKind, RunPurpose, SwitchKind, ThreadKind};
pub use manifest::{
    rfc3339, CaptureSummary, KernelId, Manifest, TableFile, TransferSummary, SCHEMA_NAME, SCHEMA_VERSION,
};
pub use merge::{merge, merge_manifests};
pub use named_functions::NamedFunctions;
pub use parquet_file::ColumnType;
pub use profile_sum::ProfileSum;
pub use sampled::{CounterTotal, SamplingSummary};
pub use scope::{RegionScope, ScopeTotals};
pub use store::{find, keep, list, remove, ProfileList, StoredProfile};
pub use system_calls::system_call;
pub use tables::{
    Block, BlockedStats, CallArc, CpuFrontEndStats, CpuInterruptStats, CpuModelEventStats, CpuStats,
    DataAccesses, DataPath, DataPlace, DataTlb, DelayStats, Distribution, Edge, Footprint, FunctionStats,
    HistogramBucket, IdleStats, IoRequests, LockPathStats, LockStats, MigrationStats, ModelEventStats,
    PacketStats, PageAccesses, PathNode, PointStats, RegionStats, SharedLine, SignalStats, SwitchStats,
    Symbol, SystemCallStats, TableSchema, Tables, ThreadCgroup, ThreadStats, SCHEMA,
};
pub use thread_name::thread_name;
pub use totals::FunctionTotals;
pub use units::{Address, FunctionIndex, Instructions, Ticks};

/// Counts of one or more runs of a kernel, with their origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Origin, run conditions and recorded anomalies.
    pub manifest: Manifest,
    /// Counts, as rows of tables.
    pub tables: Tables,
}
