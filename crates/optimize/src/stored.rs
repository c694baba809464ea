//! What the recipes' results on disk have in common.

use crate::quality::{Quality, QUALITY_SCHEMA};
use crate::Result;
use kerntune_work::{checked, read_versioned, IoContext};
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};

/// What the gate said of the recording that a result was made of; see [`crate::quality`].
pub(crate) const QUALITY: &str = "quality.json";

/// Reads a JSON file of ours.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).at("read", path)?;
    serde_json::from_slice(&bytes)
        .map_err(|source| kerntune_work::Error::Json { path: path.to_owned(), source }.into())
}

/// Opens a result directory by its manifest, `action` in words: the directory made absolute, every file of
/// it as it was written, and what the manifest says.
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

/// What the gate said of what the result in `dir` was made of.
pub(crate) fn read_quality(dir: &Path) -> Result<Option<Quality>> {
    let path = dir.join(QUALITY);
    Ok(path.is_file().then(|| read_versioned(&path, QUALITY_SCHEMA)).transpose()?)
}
