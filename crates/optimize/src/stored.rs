//! What the recipes' results on disk have in common.

use crate::quality::Quality;
use crate::{Error, Result};
use kerntune_work::IoContext;
use serde::de::{DeserializeOwned, Error as _};
use std::fs;
use std::path::Path;

/// What the gate said of the recording that a result was made of; see [`crate::quality`].
pub(crate) const QUALITY: &str = "quality.json";

/// Reads a JSON file of ours.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).at("read", path)?;
    serde_json::from_slice(&bytes).map_err(|source| unreadable(path, source))
}

/// What the gate said of what the result in `dir` was made of.
pub(crate) fn read_quality(dir: &Path) -> Result<Option<Quality>> {
    let path = dir.join(QUALITY);
    path.is_file().then(|| read_json(&path)).transpose()
}

/// Refuses a file of another version.
pub(crate) fn check_schema(path: &Path, found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let reason = format!("schema {found} where {expected} is read");
    Err(unreadable(path, serde_json::Error::custom(reason)))
}

fn unreadable(path: &Path, source: serde_json::Error) -> Error {
    kerntune_work::Error::Json { path: path.to_owned(), source }.into()
}
