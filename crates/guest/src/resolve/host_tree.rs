//! The part of this machine's file tree that an image has.
//!
//! Paths in the guest equal the host's: symbolic links on the way (`/lib` → `usr/lib`) are part of
//! it too.

use crate::limits::too_large;
use crate::skeleton::HIDDEN;
use crate::tree::{FileTree, TreeNode, LINKS_MAX};
use crate::{Error, Result, SourceRoot};
use kerntune_work::IoContext;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Host files with the directories and links above them. An entry never replaces one that is there.
#[derive(Debug, Default)]
pub(crate) struct HostTree {
    pub tree: FileTree,
    /// Root that the files are in.
    pub root: SourceRoot,
}

impl HostTree {
    /// Adds an entry of ours unless the path is taken.
    pub fn put(&mut self, path: &Path, node: TreeNode) -> Result<()> {
        self.above(path, "the guest")?;
        self.tree.put(path, node)
    }

    /// Adds the directories above `path` with the links that this machine has on the way, and
    /// returns `path` with these followed.
    pub fn above(&mut self, path: &Path, needed_by: &str) -> Result<PathBuf> {
        let root = &self.root;
        self.tree.directories_of(path, needed_by, |here| {
            let at = root.locate(here).at("look at", here)?;
            match fs::read_link(&at) {
                Ok(target) => Ok(TreeNode::Link { target }),
                // The host may lack this directory.
                Err(_) => Ok(TreeNode::Dir { mode: 0o755 }),
            }
        })
    }

    /// Adds a host file, directory (without its contents) or symbolic link with its target. Returns
    /// the path without links.
    pub fn take(&mut self, path: &Path, needed_by: &str) -> Result<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let real = self.above(&path, needed_by)?;
            // The root exists, and an archive has no name for it.
            if real.parent().is_none() {
                return Ok(real);
            }
            if let Some(dir) = HIDDEN.iter().find(|dir| real.starts_with(dir)) {
                let why = format!("{dir} of the guest is its own; keep it in another directory");
                return Err(Error::unpackable(&real, needed_by, why));
            }
            if !self.tree.nodes.contains_key(&real) {
                let node = self.on_host(&real).map_err(|why| Error::unpackable(&real, needed_by, why))?;
                self.tree.nodes.insert(real.clone(), node);
            }
            let Some(TreeNode::Link { target }) = self.tree.nodes.get(&real) else { return Ok(real) };
            path = real.parent().unwrap_or(Path::new("/")).join(target);
        }
        Err(Error::unpackable(&path, needed_by, "too many symbolic links"))
    }

    /// Adds a symbolic link of this machine without its target.
    pub fn link(&mut self, path: &Path, needed_by: &str) -> Result<()> {
        let real = self.above(path, needed_by)?;
        let node = self.on_host(&real).map_err(|why| Error::unpackable(&real, needed_by, why))?;
        self.tree.nodes.entry(real).or_insert(node);
        Ok(())
    }

    /// Reads the entry at a path of the root.
    ///
    /// # Errors
    /// The reason why it cannot be packed.
    pub fn on_host(&mut self, real: &Path) -> Result<TreeNode, String> {
        let text = |error: io::Error| error.to_string();
        let at = self.root.locate(real).map_err(text)?;
        let meta = at.symlink_metadata().map_err(text)?;
        let mode = meta.permissions().mode() & 0o777;
        if meta.is_symlink() {
            return Ok(TreeNode::Link { target: fs::read_link(at).map_err(text)? });
        }
        if meta.is_dir() {
            return Ok(TreeNode::Dir { mode: mode | 0o755 });
        }
        if !meta.is_file() {
            return Err("it is neither a file nor a directory".into());
        }
        if let Some(why) = too_large(meta.len()) {
            return Err(why);
        }
        fs::File::open(&at).map_err(text)?;
        self.tree.is_private |= mode & 0o004 == 0 || !all_may_enter(&at);
        Ok(TreeNode::Host { from: at, mode: mode | 0o444 })
    }
}

/// Checks whether every user may enter the directories above a file.
fn all_may_enter(path: &Path) -> bool {
    let may = |dir: &Path| dir.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    path.ancestors().skip(1).all(may)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_on_the_way_and_at_the_end_are_taken_along() {
        let mut tree = HostTree::default();
        let real = tree.take(Path::new("/bin/sh"), "test").unwrap();
        assert_eq!(real, Path::new("/bin/sh").canonicalize().unwrap());
        assert!(matches!(tree.tree.nodes.get(&real), Some(TreeNode::Host { .. })));
        if Path::new("/bin").is_symlink() {
            assert_eq!(
                tree.tree.nodes.get(Path::new("/bin")),
                Some(&TreeNode::Link { target: "usr/bin".into() })
            );
            assert!(matches!(tree.tree.nodes.get(Path::new("/usr/bin")), Some(TreeNode::Dir { .. })));
        }
    }

    #[test]
    fn the_root_is_no_node_however_it_is_written() {
        let mut tree = HostTree::default();
        for root in ["/", "/.", "/usr/.."] {
            assert_eq!(tree.take(Path::new(root), "test").unwrap(), Path::new("/"));
        }
        assert!(!tree.tree.nodes.contains_key(Path::new("/")));
    }

    #[test]
    fn ours_does_not_replace_what_is_there() {
        let mut tree = HostTree::default();
        tree.take(Path::new("/etc/passwd"), "test").unwrap();
        tree.put(Path::new("/etc/passwd"), TreeNode::Own { bytes: vec![], mode: 0o644 }).unwrap();
        assert!(matches!(tree.tree.nodes.get(Path::new("/etc/passwd")), Some(TreeNode::Host { .. })));
    }

    #[test]
    fn what_the_guest_would_hide_or_the_host_lacks_is_refused() {
        let mut tree = HostTree::default();
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
        fs::write(&file, "secret").unwrap();
        for (of_dir, of_file, private) in [(0o755, 0o644, false), (0o755, 0o640, true), (0o700, 0o644, true)]
        {
            fs::set_permissions(dir.path(), Permissions::from_mode(of_dir)).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(of_file)).unwrap();
            let mut tree = HostTree::default();
            tree.take(&file, "test").unwrap();
            assert_eq!(tree.tree.is_private, private, "{of_dir:o} {of_file:o}");
        }
        fs::set_permissions(dir.path(), of_all).unwrap();
    }

    #[test]
    fn a_file_of_4_gib_is_refused_before_it_is_read() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let giant = dir.path().join("giant");
        fs::File::create(&giant).unwrap().set_len(1 << 32).unwrap();
        let error = HostTree::default().take(&giant, "the test").unwrap_err().to_string();
        assert!(
            error.contains("it has 4294967296 bytes, and an initramfs holds no file of 4 GiB"),
            "{error}"
        );
    }
}
