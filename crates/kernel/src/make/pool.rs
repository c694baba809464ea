//! Build directory that is reused for one kernel after another, so that make compiles only what
//! changed.
//!
//! Consecutive commits have most objects in common. Make finds the others by file times, so the
//! source must be the same directory each time. The pool's directory is moved into a build and
//! moved back afterwards, whether the build succeeded or not. If the build is killed, the directory
//! is lost, and the next build begins with an empty one.

use crate::make::build_tree::BuildTree;
use crate::Result;
use kerntune_work::{IoContext, Lock, Progress};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the build directory while no build uses it.
const BUILD: &str = "build";
/// This file is replaced only if it changes; without it make would configure again.
const CONFIG: &str = ".config";
/// Lock that a build holds while it uses the pool.
const LOCK: &str = ".lock";

/// Directory that lends its build directory, locked for one build.
#[derive(Debug)]
pub(crate) struct ObjectPool {
    lent: PathBuf,
    _lock: Lock,
}

impl ObjectPool {
    /// Opens the pool; waits until no other build uses it.
    pub fn open(directory: &Path, progress: &dyn Progress) -> Result<Self> {
        fs::create_dir_all(directory).at("create", directory)?;
        let waiting = || progress.note("another build has the objects; waiting for it");
        let lock = Lock::take(&directory.join(LOCK), &waiting)?;
        Ok(Self { lent: directory.join(BUILD), _lock: lock })
    }

    /// Moves the build directory into a tree that has none, without the images: those are hard
    /// links to the last kernel's result, and some tools write in place.
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

    /// Moves the tree's build directory back into the pool.
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
