//! Errors of this crate.

use kerntune_work::{ClassifyError, ErrorClass};
use parquet::errors::ParquetError;
use std::path::PathBuf;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of reading, writing, finding or merging profiles.
// Messages document the variants.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error("{path} is not a profile: it has no {missing}; `kerntune profile list` shows what there is")]
    NotAProfile { path: PathBuf, missing: &'static str },
    #[error("{path} is damaged: {source}; remove the profile's directory and record again")]
    Manifest { path: PathBuf, source: serde_json::Error },
    #[error("{path} is of schema {found:?}, this kerntune reads {expected:?}: another version made it; record again")]
    Schema {
        path: PathBuf,
        /// Empty if the manifest has no schema.
        found: String,
        expected: &'static str,
    },
    #[error("{path} is damaged: {what}; remove the profile's directory and record again")]
    Damaged {
        path: PathBuf,
        /// Difference from the manifest or from another table.
        what: String,
    },
    /// The file has the right hash, but cannot be decoded.
    #[error("cannot read {path}: {source}; remove the profile's directory and record again")]
    Decode { path: PathBuf, source: ParquetError },
    #[error("there is not enough memory to read {path} ({source}); the profile is not at fault: give the command more memory and run it again")]
    Memory { path: PathBuf, source: ParquetError },
    #[error("cannot write the profile's table {table}: {source}")]
    Encode { table: &'static str, source: ParquetError },
    #[error("no profiles yet: `kerntune record -- COMMAND` makes one. Looked in {directory}; name another work directory with --dir or KERNTUNE_DIR")]
    NoProfiles { directory: PathBuf },
    #[error(
        "there is no profile {wanted:?} in {directory}; {}`kerntune profile list` shows what there is",
        latest_hint(wanted)
    )]
    NotFound {
        wanted: String,
        /// Directory of all profiles.
        directory: PathBuf,
    },
    #[error(
        "{wanted:?}: {what}; a profile is asked for {}: latest:workload=rr,kernel=base, or latest~1 for the one before",
        crate::latest::keys()
    )]
    Filter { wanted: String, what: String },
    #[error("{wanted:?} may be any of {}; give more of the id", candidates.join(", "))]
    Ambiguous { wanted: String, candidates: Vec<String> },
    #[error("profiles {first} and {second} are of different kernels ({first_kernel} and {second_kernel}) and cannot be merged; compare them instead")]
    DifferentKernels { first: String, second: String, first_kernel: String, second_kernel: String },
    /// A sampled and a measured profile: their times do not add up.
    #[error("profile {sampled} was sampled and {measured} was not: they cannot be merged; compare their shares with `report {measured} diff {sampled}`")]
    SampledAndMeasured { sampled: String, measured: String },
    #[error("there is no profile to merge; give at least one with a weight above 0")]
    NothingToMerge,
    /// More functions, regions or threads than fit in a `u32`.
    #[error("the merged profile would have more than 2^32 {0}; merge fewer")]
    TooMany(&'static str),
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) if is_environment_error(inner) => inner.class(),
            Self::NoProfiles { .. } | Self::NotFound { .. } | Self::Ambiguous { .. } => ErrorClass::Usage,
            _ => ErrorClass::RefusedResult,
        }
    }
}

/// Returns a hint if `wanted` is `latest` with a slip of the pen, which no id can be.
fn latest_hint(wanted: &str) -> &'static str {
    let word = wanted.split([':', '~']).next().unwrap_or_default();
    match word != "latest" && strsim::osa_distance(word, "latest") <= 2 {
        true => "did you mean `latest`? ",
        false => "",
    }
}

/// Checks whether the storage or the environment is the cause, not the profile.
fn is_environment_error(error: &kerntune_work::Error) -> bool {
    use std::io::ErrorKind::{OutOfMemory, PermissionDenied, ReadOnlyFilesystem};
    match error {
        kerntune_work::Error::Interrupted => true,
        kerntune_work::Error::Io { source, .. } => {
            [OutOfMemory, PermissionDenied, ReadOnlyFilesystem].contains(&source.kind())
        }
        _ => false,
    }
}
