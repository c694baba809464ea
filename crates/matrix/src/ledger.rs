//! Hashes of results that this machine computed, in its own work directory, where no other machine
//! can change them.

use crate::dirs::MATRIX_DIR;
use crate::Result;
use kerntune_work::{read_sealed, write_sealed, Hash, Id, IoContext, WorkDir};
use std::fs;
use std::path::PathBuf;

const CONFIRMED: &str = "confirmed";

fn file(work: &WorkDir, task: &Id) -> PathBuf {
    work.root().join(MATRIX_DIR).join(CONFIRMED).join(format!("{task}.json"))
}

/// Records that this machine computed a task with these bytes as result.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn confirm(work: &WorkDir, task: &Id, bytes: &[u8]) -> Result<()> {
    let path = file(work, task);
    let directory = path.parent().unwrap_or(work.root());
    fs::create_dir_all(directory).at("create", directory)?;
    Ok(write_sealed(&path, &Hash::of(bytes))?)
}

/// Returns the hash of the result that this machine computed; `None` if it did not.
pub(crate) fn confirmed(work: &WorkDir, task: &Id) -> Option<Hash> {
    read_sealed(&file(work, task)).ok()
}
