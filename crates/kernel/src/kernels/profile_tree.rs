//! Files of a profile that the compiler reads, and a hash over their contents.

use crate::Result;
use kerntune_work::{ContentHash, IoContext};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below `top`, relative to it and sorted.
pub(crate) fn list_files(top: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut dirs) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).at("list", &dir)? {
            let path = entry.at("list", &dir)?.path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                files.push(path.strip_prefix(top).unwrap_or(&path).to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Hashes names and contents of the files below `top`. The location of `top` does not matter.
///
/// # Errors
/// Files that cannot be listed or read.
pub fn hash_tree(top: &Path) -> Result<String> {
    let mut hash = ContentHash::new("profile-tree/1");
    for name in list_files(top)? {
        hash = hash.field("name", name.to_string_lossy().as_bytes()).file("content", &top.join(&name))?;
    }
    Ok(hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_named_by_names_and_contents() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("kernel")).unwrap();
        fs::write(dir.path().join("kernel/fork.gcda"), "adcg").unwrap();
        let first = hash_tree(dir.path()).unwrap();
        assert_eq!(list_files(dir.path()).unwrap(), [PathBuf::from("kernel/fork.gcda")]);
        fs::rename(dir.path().join("kernel/fork.gcda"), dir.path().join("kernel/exit.gcda")).unwrap();
        assert_ne!(hash_tree(dir.path()).unwrap(), first);
    }
}
