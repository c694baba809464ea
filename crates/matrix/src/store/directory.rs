//! A directory as a store, local or shared between machines.

use super::Store;
use crate::Result;
use kerntune_work::{write_atomic, Error, IoContext};
use rustix::fs::{renameat_with, RenameFlags, CWD};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Directory of objects that are still being written.
const ASIDE: &str = ".aside";

/// A store whose objects are files below a directory. They are written elsewhere and renamed in one
/// step, so a file that exists is complete.
#[derive(Debug)]
pub struct DirectoryStore {
    root: PathBuf,
}

impl DirectoryStore {
    /// Opens the store in `root`, and creates the directory if necessary.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn open(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).at("create the store", root)?;
        Ok(Self { root: root.canonicalize().at("resolve", root)? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Creates the directory of an object.
    fn create_parent(&self, path: &Path) -> Result<()> {
        let parent = path.parent().unwrap_or(&self.root);
        Ok(fs::create_dir_all(parent).at("create", parent)?)
    }
}

impl Store for DirectoryStore {
    fn url(&self) -> String {
        self.root.display().to_string()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path(name);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => Ok(Some(read.at("read", &path)?)),
        }
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let path = self.path(name);
        if path.exists() {
            return Ok(false);
        }
        self.create_parent(&path)?;
        // Processes on other machines and in other containers may write at the same time.
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let aside = self.root.join(ASIDE).join(format!("{host}-{}", crate::process::unique_name()));
        self.create_parent(&aside)?;
        write_atomic(&aside, bytes)?;
        let made = rename_new(&aside, &path);
        // Absent if it was renamed.
        let _ = fs::remove_file(&aside);
        Ok(made.at("publish", &path)?)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(name);
        self.create_parent(&path)?;
        Ok(write_atomic(&path, bytes)?)
    }

    fn list(&self, start: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        // Names that begin with `a/b/c` are in the directory `a/b`.
        let above = start.rsplit_once('/').map_or("", |(above, _)| above);
        collect(&self.path(above), above, &mut found)?;
        found.retain(|name| name.starts_with(start));
        found.sort();
        Ok(found)
    }

    fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => Ok(removed.at("remove", &path)?),
        }
    }
}

/// Renames a file unless the new name exists; returns whether it was renamed.
fn rename_new(from: &Path, to: &Path) -> std::io::Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(std::io::Error::from) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // File systems without the flag, such as NFS: creating a hard link is atomic there, too.
        Err(_) => match fs::hard_link(from, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        },
    }
}

/// Collects the names of the objects below a directory.
fn collect(directory: &Path, name: &str, found: &mut Vec<String>) -> Result<(), Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.at("list", directory)?,
    };
    for entry in entries {
        let entry = entry.at("list", directory)?;
        let own = entry.file_name().to_string_lossy().into_owned();
        // Files that are still being written.
        if own.starts_with('.') {
            continue;
        }
        let own = if name.is_empty() { own } else { format!("{name}/{own}") };
        match entry.file_type().at("look at", entry.path())?.is_dir() {
            true => collect(&entry.path(), &own, found)?,
            false => found.push(own),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_makes_an_object() {
        let dir = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(dir.path()).unwrap();
        let store = &store;
        let made: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16u8)
                .map(|number| scope.spawn(move || store.put_new("results/a.json", &[number; 1000]).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|made| **made).count(), 1);
        let bytes = store.get("results/a.json").unwrap().unwrap();
        assert_eq!(bytes, vec![made.iter().position(|made| *made).unwrap() as u8; 1000]);
        assert_eq!(fs::read_dir(dir.path().join(ASIDE)).unwrap().count(), 0);
    }

    #[test]
    fn objects_are_listed_by_how_they_begin() {
        let dir = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(dir.path()).unwrap();
        for name in ["claims/a/0001", "claims/ab/0001", "claims/a/0002", "results/a"] {
            store.put(name, b"x").unwrap();
        }
        assert_eq!(store.list("claims/a/").unwrap(), ["claims/a/0001", "claims/a/0002"]);
        assert_eq!(store.list("claims/a").unwrap().len(), 3);
        assert_eq!(store.list("").unwrap().len(), 4);
        assert_eq!(store.list("none/").unwrap(), Vec::<String>::new());
        store.delete("results/a").unwrap();
        store.delete("results/a").unwrap();
        assert_eq!(store.get("results/a").unwrap(), None);
    }
}
