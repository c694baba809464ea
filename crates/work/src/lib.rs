//! Foundation of every crate that touches the disk: the work directory with results named by
//! content, atomic writes, child processes that end with the parent, progress, and interruption.
//!
//! Start from [`WorkDir`] (finds results), [`Key`] (names a result by its inputs), [`StagedResult`]
//! (makes one), [`Seal`] (verifies one), [`Job`] (runs a program) and [`Progress`].
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
mod error_class;
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

pub use dir::{checked, is_store_file, note_use, OnNote, StagedResult, WorkDir};
pub use error_class::{ClassifyError, ErrorClass};
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
pub use survey::{bytes_on_disk, survey, RemovalReason, StoreEntry, StoreSurvey};
pub use vouched::{check_files, hash_files, FileHashes};

use std::path::PathBuf;

/// Error of a file or a process, with the path or the program.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// Verb phrase of the failed operation, which reads well after "cannot".
        action: &'static str,
        /// The file or directory; for a program's output, the program's name.
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot run {program}: {source}; `kerntune doctor` shows what is missing and how to install it")]
    Spawn { program: String, source: std::io::Error },
    #[error("interrupted; the same command resumes here")]
    Interrupted,
    #[error("{path} is damaged ({source}); remove it and run the command again")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{path} is damaged: it is not what was written; remove it and run the command again")]
    Seal { path: PathBuf },
    #[error("{dir} is no result of this version of kerntune: it has no {RESULT_FILE}")]
    NotAResult { dir: PathBuf },
    #[error("{path} has the schema {found}, this version of kerntune reads {expected}")]
    Schema { path: PathBuf, found: String, expected: &'static str },
    #[error("{dir} is damaged: {what}; `kerntune gc --thorough --remove` deletes it, and the same command makes it again")]
    Changed { dir: PathBuf, what: String },
    #[error("{path} {what}; name a new directory for `kerntune {command}`")]
    OthersDirectory { path: PathBuf, command: String, what: String },
    #[error("cannot write in {path}, which belongs to {owner}: name another work directory with --dir or KERNTUNE_DIR")]
    OthersWorkDir { path: PathBuf, owner: String },
    #[error("internal error: a dry run came to make {what}; please report it")]
    DryRun { what: String },
    #[error("`{}` is not the name of a result", id.escape_debug())]
    BadId { id: String },
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds an action and a path to an I/O error.
pub trait IoContext<T> {
    /// Converts the error. `action` is a verb phrase that reads well after "cannot".
    fn at(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> IoContext<T> for std::io::Result<T> {
    fn at(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.into(), source })
    }
}
