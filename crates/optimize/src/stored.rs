//! What the recipes' results on disk have in common.

use crate::quality::Quality;
use crate::{Error, Result};
use kerntune_work::{checked, IoContext};
use serde::de::{DeserializeOwned, Error as _};
use std::fs;
use std::path::{Path, PathBuf};

/// What the gate said of the recording that a result was made of; see [`crate::quality`].
pub(crate) const QUALITY: &str = "quality.json";

/// Reads a JSON file of ours.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).at("read", path)?;
    serde_json::from_slice(&bytes).map_err(|source| unreadable(path, source))
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
    schema: &str,
) -> Result<(PathBuf, T)> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema: String,
    }
    let dir = dir.canonicalize().at(action, dir)?;
    checked(&dir, &[])?;
    let path = dir.join(manifest);
    check_schema(&path, &read_json::<Version>(&path)?.schema, schema)?;
    let manifest = read_json(&path)?;
    Ok((dir, manifest))
}

/// What the gate said of what the result in `dir` was made of.
pub(crate) fn read_quality(dir: &Path) -> Result<Option<Quality>> {
    let path = dir.join(QUALITY);
    path.is_file().then(|| read_json(&path)).transpose()
}

/// Refuses a file of another version.
fn check_schema(path: &Path, found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let reason = format!("schema {found} where {expected} is read");
    Err(unreadable(path, serde_json::Error::custom(reason)))
}

fn unreadable(path: &Path, source: serde_json::Error) -> Error {
    kerntune_work::Error::Json { path: path.to_owned(), source }.into()
}
