//! Profiles of many machines below one prefix (docs/fleet.md).
//!
//! Start from [`Fleet`] (the prefix: [`Fleet::add`], [`Fleet::list`]), [`Place`] (where a profile lies: build id, date, host,
//! workload), [`Filter`] (which of them), [`merge`](merge()) (one profile of thousands, in bounded memory) and [`query`](query()) (sums by
//! group).
//!
//! A profile is a directory `build_id=…/date=…/host=…/workload=…/profile=…` with the files that every profile has, so that
//! [`kerntune_profile::Profile::load`] reads it and checks each file, and DuckDB and DataFusion read its tables as they stand. It
//! appears whole or not at all. Tables of the same content, such as a kernel's symbols, are one file with several names.
//!
//! ```
//! use kerntune_fleet::{merge, Filter, Fleet, Weights};
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
//! let all = fleet.list(&Filter::default()).unwrap();
//! assert_eq!(all.len(), 2);
//! let merged = merge(&all, &Weights::default(), 2, &NoProgress).unwrap();
//! assert_eq!(merged.profile.manifest.sources, ["profile p1 × 1", "profile p2 × 1"]);
//! ```

mod error;
mod fleet;
mod merge;
mod place;
mod query;
mod sql;
mod summary;
mod tree;
mod weights;

pub use error::{Error, Result};
pub use fleet::{Added, Entry, Fleet};
pub use merge::{merge, Merged};
pub use place::{Filter, Key, Place};
pub use query::{query, FunctionFigures, Group};
pub use sql::views;
pub use summary::{COLUMNS as SUMMARY_COLUMNS, FILE as SUMMARY_FILE};
pub use weights::Weights;
