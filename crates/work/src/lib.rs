//! The ground that every room that touches the disk stands on: the work directory with its
//! content-addressed results, files that appear whole or not at all, child processes that die
//! with us, progress, and interruption.
//!
//! Start from [`WorkDir`] (where results live), [`Key`] (what names one), [`Staged`] (how one is made), [`Seal`] (why it can
//! be trusted), [`Job`] (how another program is run) and [`Progress`].
//!
//! ```
//! use kerntune_work::{checked, Key, WorkDir};
//! let dir = tempfile::tempdir().unwrap();
//! let work = WorkDir::open(dir.path()).unwrap();
//! let key = Key::new("example/1", "hash of the code").field("answer", b"42");
//! let staged = work.stage("examples", &key).unwrap();
//! std::fs::write(staged.path().join("result"), "42").unwrap();
//! let whole = staged.publish().unwrap();
//! assert!(whole.ends_with(key.id()));
//! checked(&whole, &[]).unwrap();
//! std::fs::write(whole.join("result"), "43").unwrap();
//! assert!(checked(&whole, &[]).is_err());
//! ```

mod dir;
mod fault;
mod files;
mod git;
pub mod interrupt;
mod job;
mod key;
mod lock;
mod marked;
mod memory;
mod names;
mod open;
mod programs;
mod progress;
mod seal;
mod survey;
mod vouched;

pub use dir::{checked, is_of_the_store, note_use, Notes, Staged, WorkDir};
pub use files::{
    parse_sealed, read_sealed, read_versioned, seal_bytes, write_atomic, write_json, write_sealed,
};
pub use git::{git, git_of_ours, programs_of_fetch};
pub use job::{Job, JobEnd};
pub use key::{ContentHash, Key};
pub use lock::Lock;
pub use marked::{copy_directory, take_directory, DIRECTORY_MARK};
pub use memory::{available_memory, is_out_of_memory, mem_available};
pub use names::{checked_text, CommitHash, Hash, Id, Label, NameError, PlainName, RelativePath};
pub use open::{create_new, file_kind, open_file, open_own, read_file};
pub use programs::find_program;
pub use progress::{NoProgress, Progress};
pub use seal::{hash_file, seal, Seal, RESULT_FILE, RESULT_SCHEMA, SUMS_FILE};
pub use survey::{survey, Found, Reason, Survey};
pub use vouched::{check_files, hash_files, FileHashes};

use std::path::PathBuf;

/// What can go wrong with files and processes, each with the place where it happened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on a file or directory failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What failed: a verb phrase that reads well after "cannot".
        action: &'static str,
        /// The file or directory; for a program's output, the program's name.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {source}; `kerntune doctor` shows what is missing and how to install it")]
    Spawn {
        /// The program's name or path.
        program: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Ctrl-C or SIGTERM. What was finished is kept; the same command goes on from there.
    #[error("interrupted; the same command goes on from here")]
    Interrupted,
    /// A JSON file of ours does not hold what it should.
    #[error("{path} is damaged ({source}); remove it and run the command again")]
    Json {
        /// The JSON file.
        path: PathBuf,
        /// What does not fit, with its line and column.
        source: serde_json::Error,
    },
    /// A sealed file is not what was written.
    #[error("{path} is damaged: it is not what was written; remove it and run the command again")]
    Seal {
        /// The sealed file.
        path: PathBuf,
    },
    /// A directory without `result.json`: of an older version, of nobody, or half deleted.
    #[error("{dir} is no result of this version of kerntune: it has no {RESULT_FILE}")]
    NotAResult {
        /// The directory that was taken for a result.
        dir: PathBuf,
    },
    /// A JSON file of ours that another version wrote, or none of ours.
    #[error("{path} has the schema {found}, this version of kerntune reads {expected}")]
    Schema {
        /// The JSON file.
        path: PathBuf,
        /// The schema that stands in it.
        found: String,
        /// The one that is read.
        expected: &'static str,
    },
    /// A result is not what was sealed.
    #[error("{dir} is damaged: {what}; `kerntune gc --thorough --remove` deletes it, and the same command makes it again")]
    Changed {
        /// The result's directory.
        dir: PathBuf,
        /// What differs from what was sealed: which file, and how.
        what: String,
    },
    /// A directory that was named for results holds something else.
    #[error("{path} {what}; name a new directory for `kerntune {command}`")]
    OthersDirectory {
        /// The directory.
        path: PathBuf,
        /// The command that was to write into it.
        command: String,
        /// What there is, as a phrase after the path.
        what: String,
    },
    /// Not the name of a result.
    #[error("`{}` is not the name of a result", id.escape_debug())]
    BadId {
        /// The text that was given for a name.
        id: String,
    },
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
