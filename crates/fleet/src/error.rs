//! What can go wrong with a fleet's profiles.

use std::path::PathBuf;

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, each with the file and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory operation failed.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// A profile that cannot be read or merged; the message names the file.
    #[error(transparent)]
    Profile(#[from] kerntune_profile::Error),
    /// No fleet there.
    #[error("{path} has no profiles: `kerntune fleet add {path} PROFILE` puts one there")]
    NoFleet {
        /// The prefix.
        path: PathBuf,
    },
    /// Another process makes a profile in the same partial directory.
    #[error("{path} is in use by another process; try again")]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// No profile is left.
    #[error(
        "no profile below {path} matches the options; `kerntune fleet query {path}` shows what there is"
    )]
    NothingFits {
        /// The prefix.
        path: PathBuf,
    },
    /// Another profile has the same place.
    #[error(
        "{path} holds another profile with the same id: one of the two was changed; kerntune touches \
         neither"
    )]
    Another {
        /// The directory of the one that is there.
        path: PathBuf,
    },
    /// A directory that is not named as it should be.
    #[error("{path} does not belong to a fleet: a directory `{expected}=…` was expected; move it away")]
    Stray {
        /// The directory.
        path: PathBuf,
        /// The key that belongs there.
        expected: &'static str,
    },
    /// A profile lies where it does not belong.
    #[error("{path} is misplaced: its manifest says {what}; move it away and add the profile again")]
    Misplaced {
        /// The profile's directory.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// A word that asks for nothing.
    #[error("`{given}`: {what}")]
    Words {
        /// As it was given.
        given: String,
        /// What is wrong with it.
        what: String,
    },
    /// The row that describes a profile cannot be written.
    #[error("cannot write {path}: {source}")]
    Summary {
        /// The file.
        path: PathBuf,
        /// The reason of the Parquet writer.
        source: parquet::errors::ParquetError,
    },
    /// A worker of a merge panicked.
    #[error("a thread that merges profiles panicked; please report it")]
    Panicked,
}
