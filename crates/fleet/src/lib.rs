//! Fleets: profiles of many machines below one prefix (docs/fleet.md).
//!
//! Start from [`Fleet`] (the prefix: [`Fleet::add`], [`Fleet::list`]), [`ProfileLocation`] (build
//! id, date, host and workload of a profile), [`ProfileFilter`] (selects profiles),
//! [`merge`](merge()) (adds up thousands of profiles in bounded memory) and [`query`](query())
//! (sums by group).
//!
//! A profile is a directory `build_id=…/date=…/host=…/workload=…/profile=…` with the usual files:
//! [`kerntune_profile::Profile::load`] reads and checks it, and DuckDB and DataFusion read its
//! tables. It appears atomically. Tables of equal content, such as a kernel's symbols, are one file
//! with several names.
//!
//! ```
//! use kerntune_fleet::{merge, Fleet, ProfileFilter, Weights};
//! use kerntune_profile::{KernelId, Manifest, Profile, Tables};
//! use kerntune_work::NoProgress;
//! let dir = tempfile::tempdir().unwrap();
//! let fleet = Fleet::open(&dir.path().join("fleet")).unwrap();
//! for (id, host) in [("p1", "web-1"), ("p2", "web-2")] {
//!     let kernel = KernelId { id: "k1".into(), label: "base".into(), version: "6.12".into() };
//!     let profile = Profile { manifest: Manifest::new(id, kernel, "redis", "emulator"), tables: Tables::default() };
//!     let at = dir.path().join(id);
//!     std::fs::create_dir(&at).unwrap();
//!     profile.save(&at).unwrap();
//!     fleet.add(&at, host).unwrap();
//! }
//! let all = fleet.list(&ProfileFilter::default()).unwrap();
//! assert_eq!(all.len(), 2);
//! let merged = merge(&all, &Weights::default(), 2, &NoProgress).unwrap();
//! assert_eq!(merged.profile.manifest.sources, ["profile p1 × 1", "profile p2 × 1"]);
//! ```

mod command;
mod error;
mod fleet;
mod location;
mod merge;
mod query;
mod sql;
mod summary;
mod weights;

pub use error::{Error, Result};
pub use fleet::{AddOutcome, Fleet, FleetEntry};
pub use location::{PartitionKey, ProfileFilter, ProfileLocation};
pub use merge::{merge, FleetMerge};
pub use query::{query, FunctionFigures, ProfileGroup};
pub use sql::views;
pub use summary::{COLUMNS as SUMMARY_COLUMNS, FILE as SUMMARY_FILE};
pub use weights::Weights;

use kerntune_command::Room;

/// The commands of fleets.
pub static ROOM: Room = Room {
    commands: &[&command::COMMAND],
    audits: &[&command::AUDIT],
    examples: include_str!("examples.tsv"),
    ..Room::EMPTY
};
