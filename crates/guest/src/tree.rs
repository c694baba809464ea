//! The file tree of an image.
//!
//! Paths are those of the guest, and equal the host's for host files: symbolic links on the way
//! (`/lib` → `usr/lib`) are packed too.

use crate::{Error, Result};
use kerntune_work::IoContext;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
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
    /// A character device.
    Char {
        major: u32,
        minor: u32,
        mode: u32,
    },
}

/// Largest number of symbolic links to follow, as in the kernel.
const LINKS_MAX: usize = 40;

/// A file tree, sorted by path, so that the same inputs give the same image.
#[derive(Debug, Default)]
pub(crate) struct FileTree {
    nodes: BTreeMap<PathBuf, TreeNode>,
    private: bool,
}

/// Largest file of an initramfs, in bytes: the format has 32 bits for the size.
pub(crate) const FILE_MAX: u64 = u32::MAX as u64;

/// Returns the reason why a file of this size is too large; `None` if it is not.
pub(crate) fn too_large(bytes: u64) -> Option<String> {
    (bytes > FILE_MAX).then(|| {
        format!("it has {bytes} bytes, and an initramfs holds no file of 4 GiB or more; pack a smaller one")
    })
}

impl FileTree {
    pub fn nodes(&self) -> &BTreeMap<PathBuf, TreeNode> {
        &self.nodes
    }

    /// Checks whether any packed host file is not readable for every user.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// With `private`, makes the image readable for its owner only.
    pub fn keep_private(&mut self, private: bool) {
        self.private |= private;
    }

    pub fn get(&self, path: &Path) -> Option<&TreeNode> {
        self.nodes.get(path)
    }

    /// Adds an entry of ours unless the path is taken. Returns the path after following links on
    /// the way.
    pub fn put(&mut self, path: &Path, node: TreeNode) -> Result<PathBuf> {
        let real = self.directories_of(path, "the guest")?;
        self.nodes.entry(real.clone()).or_insert(node);
        Ok(real)
    }

    /// Packs a host file, directory (without its contents) or symbolic link with its target.
    /// Returns the path without links.
    pub fn take(&mut self, path: &Path, needed_by: &str) -> Result<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let real = self.directories_of(&path, needed_by)?;
            // The root exists, and an archive has no name for it.
            if real.parent().is_none() {
                return Ok(real);
            }
            if let Some(dir) = crate::reader::HIDDEN.iter().find(|dir| real.starts_with(dir)) {
                let why = format!("{dir} of the guest is its own; keep it in another directory");
                return Err(unpackable(&real, needed_by, &why));
            }
            let target = match self.nodes.get(&real) {
                Some(TreeNode::Link { target }) => target.clone(),
                Some(_) => return Ok(real),
                None => {
                    let meta =
                        real.symlink_metadata().map_err(|e| unpackable(&real, needed_by, &e.to_string()))?;
                    let mode = meta.permissions().mode() & 0o777;
                    if meta.is_symlink() {
                        let target = std::fs::read_link(&real).at("read link", &real)?;
                        self.nodes.insert(real.clone(), TreeNode::Link { target: target.clone() });
                        target
                    } else if meta.is_dir() {
                        self.nodes.insert(real.clone(), TreeNode::Dir { mode: mode | 0o755 });
                        return Ok(real);
                    } else if meta.is_file() {
                        if let Some(why) = too_large(meta.len()) {
                            return Err(unpackable(&real, needed_by, &why));
                        }
                        std::fs::File::open(&real)
                            .map_err(|e| unpackable(&real, needed_by, &e.to_string()))?;
                        self.private |= mode & 0o004 == 0 || !all_may_enter(&real);
                        let from = real.clone();
                        self.nodes.insert(real.clone(), TreeNode::Host { from, mode: mode | 0o444 });
                        return Ok(real);
                    } else {
                        return Err(unpackable(&real, needed_by, "it is neither a file nor a directory"));
                    }
                }
            };
            path = real.parent().unwrap_or(Path::new("/")).join(target);
        }
        Err(unpackable(&path, needed_by, "too many symbolic links"))
    }

    /// Checks that nothing is below a file, since the kernel would silently leave it out.
    ///
    /// # Errors
    /// [`Error::Unpackable`] with the first such entry.
    pub fn check(&self) -> Result<()> {
        for path in self.nodes.keys() {
            let above = path.parent().map(|parent| (parent, self.nodes.get(parent)));
            if let Some((
                parent,
                Some(TreeNode::Host { .. } | TreeNode::Own { .. } | TreeNode::Char { .. }),
            )) = above
            {
                let why = format!("{} is a file there", parent.display());
                return Err(unpackable(path, "the guest", &why));
            }
        }
        Ok(())
    }

    /// Adds the directories above `path`, and returns `path` with their links followed.
    fn directories_of(&mut self, path: &Path, needed_by: &str) -> Result<PathBuf> {
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
                let node = match here.symlink_metadata() {
                    Ok(meta) if meta.is_symlink() => {
                        TreeNode::Link { target: std::fs::read_link(&here).at("read link", &here)? }
                    }
                    // The host lacks this directory.
                    _ => TreeNode::Dir { mode: 0o755 },
                };
                self.nodes.insert(here.clone(), node);
            }
            match self.nodes.get(&here) {
                Some(TreeNode::Link { target }) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(unpackable(path, needed_by, "too many symbolic links"));
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

/// Checks whether every user may enter the directories above a file.
fn all_may_enter(path: &Path) -> bool {
    let may = |dir: &Path| dir.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    path.ancestors().skip(1).all(may)
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

pub(crate) fn unpackable(path: &Path, needed_by: &str, why: &str) -> Error {
    Error::Unpackable { path: path.to_owned(), needed_by: needed_by.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_on_the_way_and_at_the_end_are_taken_along() {
        let mut tree = FileTree::default();
        let real = tree.take(Path::new("/bin/sh"), "test").unwrap();
        assert_eq!(real, Path::new("/bin/sh").canonicalize().unwrap());
        assert!(matches!(tree.get(&real), Some(TreeNode::Host { .. })));
        if Path::new("/bin").is_symlink() {
            assert_eq!(tree.get(Path::new("/bin")), Some(&TreeNode::Link { target: "usr/bin".into() }));
            assert!(matches!(tree.get(Path::new("/usr/bin")), Some(TreeNode::Dir { .. })));
        }
    }

    #[test]
    fn the_root_is_no_node_however_it_is_written() {
        let mut tree = FileTree::default();
        for root in ["/", "/.", "/usr/.."] {
            assert_eq!(tree.take(Path::new(root), "test").unwrap(), Path::new("/"));
        }
        assert!(!tree.nodes().contains_key(Path::new("/")));
    }

    #[test]
    fn ours_does_not_replace_what_is_there() {
        let mut tree = FileTree::default();
        tree.take(Path::new("/etc/passwd"), "test").unwrap();
        tree.put(Path::new("/etc/passwd"), TreeNode::Own { bytes: vec![], mode: 0o644 }).unwrap();
        assert!(matches!(tree.get(Path::new("/etc/passwd")), Some(TreeNode::Host { .. })));
    }

    #[test]
    fn what_the_guest_would_hide_or_the_host_lacks_is_refused() {
        let mut tree = FileTree::default();
        let hidden = tree.take(Path::new("/proc/cmdline"), "the test").unwrap_err().to_string();
        assert!(hidden.contains("/proc of the guest is its own"), "{hidden}");
        let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        assert_eq!(tree.take(file.path(), "the test").unwrap(), file.path());
        let missing = tree.take(Path::new("/etc/no-such-file"), "the test").unwrap_err().to_string();
        assert!(missing.contains("needed by the test") && missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn what_not_everyone_may_read_is_private() {
        use std::fs::Permissions;
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let (file, of_all) = (dir.path().join("key"), Permissions::from_mode(0o755));
        std::fs::write(&file, "secret").unwrap();
        for (of_dir, of_file, private) in [(0o755, 0o644, false), (0o755, 0o640, true), (0o700, 0o644, true)]
        {
            std::fs::set_permissions(dir.path(), Permissions::from_mode(of_dir)).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(of_file)).unwrap();
            let mut tree = FileTree::default();
            tree.take(&file, "test").unwrap();
            assert_eq!(tree.is_private(), private, "{of_dir:o} {of_file:o}");
        }
        std::fs::set_permissions(dir.path(), of_all).unwrap();
    }

    #[test]
    fn a_file_of_4_gib_is_refused_before_it_is_read() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let giant = dir.path().join("giant");
        std::fs::File::create(&giant).unwrap().set_len(1 << 32).unwrap();
        let error = FileTree::default().take(&giant, "the test").unwrap_err().to_string();
        assert!(
            error.contains("it has 4294967296 bytes, and an initramfs holds no file of 4 GiB"),
            "{error}"
        );
    }
}
