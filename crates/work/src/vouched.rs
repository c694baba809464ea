//! Hashes of files beside a sealed document, such as a plan and its reports.

use crate::seal::digest;
use crate::{Error, Hash, PlainName, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Names of files in the document's directory, and the hash of each.
pub type FileHashes = BTreeMap<PlainName, Hash>;

/// Hashes each of these files.
///
/// # Errors
/// A file that cannot be read, or whose name is not plain.
pub fn hash_files(directory: &Path, names: &[&str]) -> Result<FileHashes> {
    let hashed = |name: &&str| {
        let name: PlainName = name
            .parse()
            .map_err(|error| Error::Changed { dir: directory.to_owned(), what: format!("{error}") })?;
        let hash = digest(&directory.join(&name))?;
        Ok((name, hash))
    };
    names.iter().map(hashed).collect()
}

/// Checks each of these files against its hash.
///
/// # Errors
/// [`Error::Changed`] with the first file that differs or is missing.
pub fn check_files(directory: &Path, hashes: &FileHashes) -> Result<()> {
    let changed = |what: String| Error::Changed { dir: directory.to_owned(), what };
    for (name, hash) in hashes {
        let path = directory.join(name);
        if !path.is_file() {
            return Err(changed(format!("{name} is missing")));
        }
        if digest(&path)? != *hash {
            return Err(changed(format!("{name} is not the file that was written")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_is_another_or_gone_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.json"), "-5.8").unwrap();
        fs::write(dir.path().join("b.json"), "{}").unwrap();
        let hashes = hash_files(dir.path(), &["a.json", "b.json"]).unwrap();
        check_files(dir.path(), &hashes).unwrap();
        fs::write(dir.path().join("a.json"), "-5.9").unwrap();
        let said = |hashes: &FileHashes| check_files(dir.path(), hashes).unwrap_err().to_string();
        assert!(said(&hashes).contains("a.json is not the file that was written"));
        fs::remove_file(dir.path().join("a.json")).unwrap();
        assert!(said(&hashes).contains("a.json is missing"));
        assert!(hash_files(dir.path(), &["../a.json"]).is_err());
        assert!(hash_files(dir.path(), &["a.json"]).is_err());
    }
}
