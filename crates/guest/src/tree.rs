//! The file tree of an image, by paths of the guest.

use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// An entry of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeNode {
    Dir {
        mode: u32,
    },
    Link {
        target: PathBuf,
    },
    /// A file with the contents of a host file.
    Host {
        from: PathBuf,
        mode: u32,
    },
    /// A file with contents of ours.
    Own {
        bytes: Vec<u8>,
        mode: u32,
    },
    /// A host file without its contents.
    Stub {
        /// Size in bytes; init makes the file this large.
        size: u64,
        /// True if init fails the run when the file was read.
        is_watched: bool,
    },
    /// A character device.
    Char {
        major: u32,
        minor: u32,
        mode: u32,
    },
}

/// Attributes of a host file that its copy in the guest has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAttributes {
    /// Permission bits, set-user-ID and the like.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    pub gid: u32,
    /// Modification time in seconds since 1970.
    pub mtime: u32,
}

/// Largest number of symbolic links to follow, as in the kernel.
pub(crate) const LINKS_MAX: usize = 40;

/// Seconds of a day.
const DAY: u32 = 24 * 3600;

/// A file tree, sorted by path, so that the same inputs give the same image.
#[derive(Debug, Default)]
pub(crate) struct FileTree {
    pub nodes: BTreeMap<PathBuf, TreeNode>,
    /// Attributes of entries that are as on the host; all others have the image's own.
    pub attributes: BTreeMap<PathBuf, HostAttributes>,
    /// True if not every user of this machine may read the host files in it.
    pub is_private: bool,
}

impl FileTree {
    /// Adds an entry unless the path is taken, below the links that the tree has on the way.
    pub fn put(&mut self, path: &Path, node: TreeNode) -> Result<()> {
        let real = self.directories_of(path, "the guest", |_| Ok(TreeNode::Dir { mode: 0o755 }))?;
        self.nodes.entry(real).or_insert(node);
        Ok(())
    }

    /// Returns the day after the last modification of this machine's files, counted from 1970-01-01
    /// (UTC); `None` without such files. A clock that begins there is past all of them, and depends on
    /// nothing but the tree.
    pub fn day_after(&self) -> Option<u32> {
        let newest = self.attributes.values().map(|attributes| attributes.mtime).max()?;
        Some(newest / DAY + 1)
    }

    /// Checks that nothing is below a file, since the kernel would silently leave it out.
    ///
    /// # Errors
    /// [`Error::Unpackable`] with the first such entry.
    pub fn check(&self) -> Result<()> {
        for path in self.nodes.keys() {
            let Some(parent) = path.parent() else { continue };
            if !matches!(self.nodes.get(parent), None | Some(TreeNode::Dir { .. } | TreeNode::Link { .. })) {
                let why = format!("{} is a file there", parent.display());
                return Err(Error::unpackable(path, "the guest", why));
            }
        }
        Ok(())
    }

    /// Adds the directories above `path`, and returns `path` with their links followed. `absent`
    /// makes what is not in the tree yet: a directory, or a link to one.
    pub fn directories_of(
        &mut self,
        path: &Path,
        needed_by: &str,
        absent: impl Fn(&Path) -> Result<TreeNode>,
    ) -> Result<PathBuf> {
        let mut left: Vec<PathBuf> = parts(path);
        left.reverse();
        let mut real = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = left.pop() {
            if part == Path::new("..") {
                real.pop();
                continue;
            }
            let here = real.join(&part);
            if left.is_empty() {
                return Ok(here);
            }
            if !self.nodes.contains_key(&here) {
                self.nodes.insert(here.clone(), absent(&here)?);
            }
            match self.nodes.get(&here) {
                Some(TreeNode::Link { target }) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Error::unpackable(path, needed_by, "too many symbolic links"));
                    }
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    left.extend(parts(target).into_iter().rev());
                }
                _ => real = here,
            }
        }
        Ok(real)
    }
}

fn parts(path: &Path) -> Vec<PathBuf> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(PathBuf::from(name)),
            Component::ParentDir => Some(PathBuf::from("..")),
            _ => None,
        })
        .collect()
}
