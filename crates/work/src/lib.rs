//! The ground that every room that touches the disk stands on: the work directory with its
//! content-addressed results, files that appear whole or not at all, child processes that die
//! with us, progress, and interruption.
//!
//! Start from [`WorkDir`] (where results live), [`Staged`] (how a result directory is made),
//! [`ContentHash`] (what names it), [`Job`] (how another program is run) and [`Progress`].
//!
//! ```
//! use kerntune_work::{ContentHash, WorkDir};
//! let dir = tempfile::tempdir().unwrap();
//! let work = WorkDir::open(dir.path()).unwrap();
//! let id = ContentHash::new("example/1").field("answer", b"42").finish();
//! let staged = work.stage("examples", &id).unwrap();
//! std::fs::write(staged.path().join("result"), "42").unwrap();
//! let whole = staged.publish().unwrap();
//! assert!(whole.ends_with(&id));
//! ```

mod dir;
mod hash;
pub mod interrupt;
mod job;
mod progress;

pub use dir::{write_atomic, write_json, Lock, Staged, WorkDir};
pub use hash::ContentHash;
pub use job::{Job, JobEnd};
pub use progress::{NoProgress, Progress};

use std::path::PathBuf;

/// What can go wrong with files and processes, each with the place where it happened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on a file or directory failed.
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// A program could not be started.
    #[error("cannot run {program}: {source}; `kerntune doctor` shows what is missing and how to install it")]
    Spawn { program: String, source: std::io::Error },
    /// Ctrl-C or SIGTERM. What was finished is kept; the same command goes on from there.
    #[error("interrupted; the same command goes on from here")]
    Interrupted,
    /// A JSON file of ours does not hold what it should.
    #[error("{path} is damaged ({source}); remove it and run the command again")]
    Json { path: PathBuf, source: serde_json::Error },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the action and the path to an I/O error.
pub trait IoContext<T> {
    /// `action` is a verb phrase that reads well after "cannot".
    fn at(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> IoContext<T> for std::io::Result<T> {
    fn at(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.into(), source })
    }
}
