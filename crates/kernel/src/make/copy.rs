//! Copies of directories whose file times matter to make.

use crate::Result;
use kerntune_work::{interrupt, IoContext, Job};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Copies a directory with its file times, which make depends on. A partial copy is replaced.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    if to.is_dir() {
        fs::remove_dir_all(to).at("remove", to)?;
    }
    let mut command = Command::new("cp");
    command.args(["--archive", "--reflink=auto", "--"]).args([from, to]);
    let (end, said) = Job::new(command).output()?;
    if end.success() {
        return Ok(());
    }
    interrupt::check()?;
    Err(std::io::Error::other(said.trim().to_string())).at("copy", from)?
}
