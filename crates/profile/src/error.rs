//! What can go wrong with profiles.

use parquet::errors::ParquetError;
use std::path::PathBuf;

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with profiles, each with the file and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory operation failed.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// There is no profile in a directory.
    #[error("{path} is not a profile: it has no {missing}; `kerntune profile list` shows what there is")]
    NotAProfile {
        /// The directory that was taken for a profile.
        path: PathBuf,
        /// The file that it lacks.
        missing: &'static str,
    },
    /// A manifest that is no manifest.
    #[error("{path} is damaged: {source}; remove the profile's directory and record again")]
    Manifest {
        /// The path of the manifest.
        path: PathBuf,
        /// What does not fit, with its line and column.
        source: serde_json::Error,
    },
    /// A manifest of another version, or another program's.
    #[error("{path} is of schema {found:?}, this kerntune reads {expected:?}: another version made it; record again")]
    Schema {
        /// The path of the manifest.
        path: PathBuf,
        /// The schema that stands in it; empty if there is none.
        found: String,
        /// The schema that this version reads.
        expected: &'static str,
    },
    /// A file is not the one that the manifest names.
    #[error("{path} is damaged: {what}; remove the profile's directory and record again")]
    Damaged {
        /// The table's file.
        path: PathBuf,
        /// How it differs from what the manifest or another table says.
        what: String,
    },
    /// A file is what the manifest names, and still cannot be read.
    #[error("cannot read {path}: {source}; remove the profile's directory and record again")]
    Decode {
        /// The table's file.
        path: PathBuf,
        /// The reason of the Parquet reader.
        source: ParquetError,
    },
    /// Memory ran out while a file was read.
    #[error("there is not enough memory to read {path} ({source}); the profile is not to blame: give the command more memory and run it again")]
    Memory {
        /// The table's file.
        path: PathBuf,
        /// The reason of the Parquet reader.
        source: ParquetError,
    },
    /// A table could not be written.
    #[error("cannot write the profile's table {table}: {source}")]
    Encode {
        /// The table's name.
        table: &'static str,
        /// The reason of the Parquet writer.
        source: ParquetError,
    },
    /// No profile by that name.
    #[error("there is no profile {wanted:?} in {room}; `kerntune profile list` shows what there is")]
    NotFound {
        /// The name as it was given.
        wanted: String,
        /// The directory of all profiles.
        room: PathBuf,
    },
    /// A name that asks for what no profile has.
    #[error(
        "{wanted:?}: {what}; a profile is asked for {}: latest:workload=rr,kernel=base",
        crate::latest::keys()
    )]
    Filter {
        /// The name as it was given.
        wanted: String,
        /// What is wrong with it.
        what: String,
    },
    /// Several profiles by that name.
    #[error("{wanted:?} may be any of {}; give more of the id", candidates.join(", "))]
    Ambiguous {
        /// The name as it was given.
        wanted: String,
        /// The profiles that it fits.
        candidates: Vec<String>,
    },
    /// Profiles that cannot be added up.
    #[error("profiles {first} and {second} are of different kernels ({first_kernel} and {second_kernel}) and cannot be merged; compare them instead")]
    DifferentKernels {
        /// The id of the first profile.
        first: String,
        /// The id of the other profile.
        second: String,
        /// The id of the first profile's kernel.
        first_kernel: String,
        /// The id of the other profile's kernel.
        second_kernel: String,
    },
    /// Figures that do not add up to anything.
    #[error("profile {sampled} was sampled and {measured} was not: they cannot be merged; compare their shares with `report {measured} diff {sampled}`")]
    SampledAndMeasured {
        /// The id of a sampled profile.
        sampled: String,
        /// The id of one that was not.
        measured: String,
    },
    /// Nothing to add up.
    #[error("there is no profile to merge; give at least one with a weight above 0")]
    NothingToMerge,
    /// More functions, regions or threads than a number has room for.
    #[error("the merged profile would have more than 2^32 {0}; merge fewer")]
    TooMany(&'static str),
}
