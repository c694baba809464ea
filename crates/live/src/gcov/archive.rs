//! Archive that another machine sends: `release`, `modules`, `notes` and the counters below `gcov/`.

use super::{checked_name, CountingKernel};
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;

/// Largest single file, in bytes. The counters of the largest objects have a few MiB.
const MAX_FILE: u64 = 64 << 20;

/// Reads an archive of counters. `counters` gets the path of each counter file below `gcov`, a
/// relative one without `..`, and its content.
///
/// # Errors
/// A damaged archive; a member that is too large, no regular file, or not of these names; errors of
/// `counters`.
pub fn read_archive(
    archive: impl Read,
    counters: &mut dyn FnMut(&Path, &[u8]) -> Result<()>,
) -> Result<CountingKernel> {
    let damaged =
        |error: std::io::Error| Error::Gcov(format!("the archive of the counters is damaged: {error}"));
    let mut kernel = CountingKernel::default();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        let path = entry.path().map_err(damaged)?.into_owned();
        let shown = path.display().to_string();
        if !kind.is_file() {
            return Err(Error::Gcov(format!(
                "the archive of the counters has {shown:?}, which is no regular file"
            )));
        }
        if entry.size() > MAX_FILE {
            return Err(Error::Gcov(format!(
                "the archive of the counters has {shown:?} of {} bytes",
                entry.size()
            )));
        }
        let mut bytes = Vec::new();
        (&mut entry).take(MAX_FILE).read_to_end(&mut bytes).map_err(damaged)?;
        match (path.to_str(), path.strip_prefix("gcov")) {
            (Some("release"), _) => kernel.release = String::from_utf8_lossy(&bytes).into_owned(),
            (Some("modules"), _) => kernel.modules = String::from_utf8_lossy(&bytes).into_owned(),
            (Some("notes"), _) => kernel.notes = bytes,
            (_, Ok(name)) => counters(&checked_name(name)?, &bytes)?,
            _ => {
                return Err(Error::Gcov(format!(
                    "the archive of the counters has {shown:?}, which was not asked for"
                )))
            }
        }
    }
    Ok(kernel)
}
