//! One build directory for kernel after kernel: what make compiled for the last one need not be compiled again.
//!
//! Of commits that follow each other most objects are the same. Make knows which are not by the times of files, as it does
//! for who works in a tree of source, so the source has to be the same directory each time. The directory is moved into the
//! build that needs it and moved back after it, whether that went well or not; who is killed in between loses it, and the next
//! build begins with an empty one.

use crate::build_tree::BuildTree;
use crate::Result;
use kerntune_work::{IoContext, Lock, Progress};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The build directory while nobody builds in it.
const LENT: &str = "build";
/// Replaced as a whole, and only where it changes: without it make would configure again.
const CONFIG: &str = ".config";
/// Who builds with it has this lock.
const LOCK: &str = ".lock";

/// A directory that lends a build directory, locked for one build.
#[derive(Debug)]
pub(crate) struct ObjectPool {
    lent: PathBuf,
    _lock: Lock,
}

impl ObjectPool {
    /// Waits until nobody else builds with it.
    pub fn open(directory: &Path, progress: &dyn Progress) -> Result<Self> {
        fs::create_dir_all(directory).at("create", directory)?;
        let waiting = || progress.note("another build has the objects; waiting for it");
        let lock = Lock::take(&directory.join(LOCK), &waiting)?;
        Ok(Self { lent: directory.join(LENT), _lock: lock })
    }

    /// Puts the build directory into a tree that has none of its own, but for the images: those of the last kernel are links
    /// to files of its result, and some tools write in place.
    pub fn lend<'a>(&self, tree: &BuildTree, images: impl Iterator<Item = &'a str>) -> Result<()> {
        if !self.lent.is_dir() || tree.build().exists() {
            return Ok(());
        }
        for image in images.filter(|image| *image != CONFIG) {
            let path = self.lent.join(image);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Ok(Err(error).at("remove", &path)?)
                }
                _ => {}
            }
        }
        tree.take(&self.lent)
    }

    /// Takes the tree's build directory back.
    pub fn take_back(&self, tree: &BuildTree) -> Result<()> {
        if tree.build().is_dir() && !self.lent.exists() {
            tree.release(&self.lent)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::NoProgress;

    #[test]
    fn the_build_directory_goes_from_tree_to_tree_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let images = || ["vmlinux", ".config"].into_iter();
        let trees = ["a", "b"].map(|name| BuildTree::at(dir.path().join(name)));
        let pool = ObjectPool::open(&dir.path().join("pool"), &NoProgress).unwrap();
        pool.lend(&trees[0], images()).unwrap();
        assert!(!trees[0].build().exists());
        fs::create_dir_all(trees[0].build()).unwrap();
        for name in ["fork.o", "vmlinux", ".config"] {
            fs::write(trees[0].build().join(name), "").unwrap();
        }
        pool.take_back(&trees[0]).unwrap();
        pool.lend(&trees[1], images()).unwrap();
        let there = ["fork.o", "vmlinux", ".config"].map(|name| trees[1].build().join(name).exists());
        assert!(there == [true, false, true] && !trees[0].build().exists());
        // A tree that has a build directory keeps it.
        pool.lend(&trees[0], images()).unwrap();
        assert!(!trees[0].build().exists());
    }
}
