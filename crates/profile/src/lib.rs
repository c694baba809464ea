//! The profile: what was counted, where it came from, how it is kept on disk, how several are
//! added up and how two differ.
//!
//! Every way to capture fills a [`Profile`]; every report, difference and optimiser reads one.
//! Start from [`Profile`] (a [`Manifest`] and [`Tables`]), [`list`] and [`find`] for those in the
//! work directory, [`merge`] and [`difference`]. `docs/profile.md` describes the directory and
//! each column; [`SCHEMA`] is the same for programs.
//!
//! Nothing is believed: a directory whose files are not the ones that its manifest names is
//! refused with the name of the file.
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

/// Names the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod difference;
mod directory;
mod error;
mod histogram;
mod kinds;
mod latest;
mod manifest;
mod merge;
mod merge_cpus;
mod merge_data;
mod merge_io;
mod parquet_file;
mod parquet_guard;
mod sampled;
mod scope;
mod store;
mod tables;
mod thread_name;
mod totals;
mod units;

pub use difference::{
    difference, difference_within, source_name, Difference, FunctionDifference, PathDifference, PathFigures,
    PathLabel,
};
pub use directory::{load_manifest, verify, MANIFEST_FILE, ROOM};
pub use error::{Error, Result};
pub use histogram::{bounds, bucket_of, BUCKETS};
pub use kinds::{EdgeKind, How, ModelEvent, PathKind, Run, SwitchKind, ThreadKind};
pub use manifest::{rfc3339, Capture, Carried, KernelId, Manifest, TableFile, SCHEMA_NAME, SCHEMA_VERSION};
pub use merge::merge;
pub use parquet_file::ColumnType;
pub use sampled::{Counted, Sampled};
pub use scope::{Scope, ScopeTotals};
pub use store::{find, keep, list, remove, Entry, Listing};
pub use tables::{
    Block, CallArc, CpuFrontEndStats, CpuInterruptStats, CpuModelEventStats, CpuStats, DataAccesses,
    DataPath, DataPlace, DataTlb, DelayStats, Distribution, Edge, Footprint, FunctionStats, HistogramBucket,
    IdleStats, IoRequests, LockStats, MigrationStats, ModelEventStats, PacketStats, PageAccesses, PathNode,
    PointStats, RegionStats, SharedLine, SignalStats, SwitchStats, Symbol, TableSchema, Tables, ThreadStats,
    SCHEMA,
};
pub use thread_name::thread_name;
pub use totals::FunctionTotals;
pub use units::{Address, FunctionIndex, Instructions, Nanoseconds};

/// What one or more runs of a kernel showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Where it comes from and how well it went.
    pub manifest: Manifest,
    /// What was counted.
    pub tables: Tables,
}
