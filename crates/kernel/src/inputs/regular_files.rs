//! List of the files in a directory from elsewhere.

use crate::Result;
use kerntune_work::IoContext;
use std::fs;
use std::path::{Path, PathBuf};

/// Lists the regular files below `top`, relative to it and sorted, without following links: those
/// in a directory of modules lead to sources.
pub(crate) fn regular_files(top: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut dirs) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).at("list", &dir)? {
            let entry = entry.at("list", &dir)?;
            let (kind, path) = (entry.file_type().at("list", &dir)?, entry.path());
            if kind.is_dir() {
                dirs.push(path);
            } else if kind.is_file() {
                files.push(path.strip_prefix(top).unwrap_or(&path).to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}
