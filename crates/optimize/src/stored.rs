//! What the recipes' results on disk have in common.

use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_profile::Profile;
use kerntune_work::IoContext;
use serde::de::{DeserializeOwned, Error as _};
use std::fs;
use std::path::Path;

/// Reads a JSON file of ours.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).at("read", path)?;
    serde_json::from_slice(&bytes).map_err(|source| unreadable(path, source))
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

/// Refuses a recording of another kernel: its addresses mean other code in this one.
pub(crate) fn check_recorded(recording: &Profile, kernel: &Kernel) -> Result<()> {
    let (recorded, manifest) = (&recording.manifest, &kernel.manifest);
    if recorded.kernel.id == manifest.id {
        return Ok(());
    }
    Err(Error::OtherKernel {
        profile: recorded.id.clone(),
        recorded: format!("{} ({})", recorded.kernel.label, recorded.kernel.id),
        kernel: format!("{} ({})", manifest.label, manifest.id),
    })
}
