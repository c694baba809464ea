//! What a machine computed itself, kept in its own work directory: the one thing that no other machine can write.

use crate::room::ROOM;
use crate::Result;
use kerntune_work::{read_sealed, write_sealed, Hash, Id, IoContext, WorkDir};
use std::fs;
use std::path::PathBuf;

const CONFIRMED: &str = "confirmed";

fn file(work: &WorkDir, task: &Id) -> PathBuf {
    work.root().join(ROOM).join(CONFIRMED).join(format!("{task}.json"))
}

/// Notes that this machine computed a task and got these bytes.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn confirm(work: &WorkDir, task: &Id, bytes: &[u8]) -> Result<()> {
    let path = file(work, task);
    let room = path.parent().unwrap_or(work.root());
    fs::create_dir_all(room).at("create", room)?;
    Ok(write_sealed(&path, &Hash::of(bytes))?)
}

/// The hash of what this machine computed for a task, if it did.
pub(crate) fn confirmed(work: &WorkDir, task: &Id) -> Option<Hash> {
    read_sealed(&file(work, task)).ok()
}
