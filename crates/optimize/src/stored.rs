//! Common code for the recipes' results on disk.

use crate::quality::{ProfileQuality, QUALITY_SCHEMA};
use crate::Result;
use kerntune_work::{checked, read_versioned, IoContext};
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};

/// File with the gate's figures of the recording that a result was made from; see
/// [`crate::quality`].
pub(crate) const QUALITY: &str = "quality.json";

/// Reads a JSON file of a result.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).at("read", path)?;
    serde_json::from_slice(&bytes)
        .map_err(|source| kerntune_work::Error::Json { path: path.to_owned(), source }.into())
}

/// Opens a result directory by its manifest, verifying every file of it. Returns the absolute
/// directory and the manifest. `action` describes the attempt in errors.
///
/// # Errors
/// A directory or manifest that is missing, damaged, or of another version.
pub(crate) fn open<T: DeserializeOwned>(
    dir: &Path,
    action: &'static str,
    manifest: &str,
    schema: &'static str,
) -> Result<(PathBuf, T)> {
    let dir = dir.canonicalize().at(action, dir)?;
    checked(&dir, &[])?;
    let manifest = read_versioned(&dir.join(manifest), schema)?;
    Ok((dir, manifest))
}

/// Reads the gate's figures of the recording that the result in `dir` was made from; `None` in old
/// results.
pub(crate) fn read_quality(dir: &Path) -> Result<Option<ProfileQuality>> {
    let path = dir.join(QUALITY);
    Ok(path.is_file().then(|| read_versioned(&path, QUALITY_SCHEMA)).transpose()?)
}
