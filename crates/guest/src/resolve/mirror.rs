//! Packs what a command used in its first run ([`DiscoveredFiles`]), as it is in the root that it saw: type,
//! mode, owner and time of all of it, and the contents of what was read.
//!
//! A file that was only looked at or listed is a [`TreeNode::Stub`]: its size without its contents.
//! Init fails the run if the command reads one in the guest.

use super::elf;
use super::host_tree::HostTree;
use crate::discovered::{DiscoveredFiles, PathUses};
use crate::skeleton::{HIDDEN, TMP};
use crate::tree::{HostAttributes, TreeNode};
use crate::{shell, Error, Result};
use kerntune_work::IoContext;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Largest number of links, or of interpreters of interpreters, to follow.
const DEPTH_MAX: usize = 40;

/// Adds everything that the command used to the tree.
///
/// # Errors
/// A directory that cannot be listed, a link that cannot be read, a path with too many links.
pub(crate) fn mirror(tree: &mut HostTree, found: &DiscoveredFiles) -> Result<()> {
    let mut mirror = Mirror { tree, found, named: BTreeSet::new() };
    for (path, uses) in &found.paths {
        if !uses.secret {
            mirror.path(path, *uses, 0)?;
        }
    }
    let is_dir = |path: &Path| found.root.symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    for directory in found.excluded.iter().filter(|path| is_dir(path)) {
        if !hidden(directory) {
            mirror.tree.put(directory, TreeNode::Dir { mode: 0o755 })?;
        }
    }
    let Mirror { tree, named, .. } = mirror;
    take_attributes(tree, &named, &found.excluded);
    Ok(())
}

/// Checks whether the guest has its own in this place.
fn hidden(path: &Path) -> bool {
    HIDDEN.iter().any(|own| path.starts_with(own))
}

struct Mirror<'a> {
    tree: &'a mut HostTree,
    found: &'a DiscoveredFiles,
    /// Paths that the command named itself, or found in a directory.
    named: BTreeSet<PathBuf>,
}

impl Mirror<'_> {
    /// Adds a path as a system call names it; of one that is not here, the first directory above
    /// that is, so that the search ends where it ends here.
    fn path(&mut self, path: &Path, uses: PathUses, depth: usize) -> Result<()> {
        let Some(here) = path.ancestors().find(|path| self.found.root.has(path)) else { return Ok(()) };
        let uses = if here == path { uses } else { PathUses::default() };
        if hidden(here) || depth > DEPTH_MAX {
            return Ok(());
        }
        let real = self.tree.above(here, "the command")?;
        if !self.is_wanted(&real) {
            return Ok(());
        }
        let Ok(at) = self.found.root.locate(&real) else { return Ok(()) };
        let Ok(meta) = at.symlink_metadata() else { return Ok(()) };
        if here == path && (uses.listed || !meta.is_dir() || !self.is_on_the_way(&real)) {
            self.named.insert(real.clone());
        }
        self.entry(&real, &meta, uses)?;
        if meta.is_symlink() {
            let target = fs::read_link(&at).at("read link", &at)?;
            let target = real.parent().unwrap_or(Path::new("/")).join(target);
            return self.path(&target, uses, depth + 1);
        }
        if uses.listed && meta.is_dir() {
            self.names(&real, &at)?;
        }
        if uses.executed && meta.is_file() {
            if let Some(interpreter) = interpreter(&at) {
                self.path(&interpreter, uses, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Checks whether the command used a path below the directory. A walk to such a path may look at each
    /// directory, as `realpath` does.
    fn is_on_the_way(&self, directory: &Path) -> bool {
        let mut after = self.found.paths.range::<Path, _>((Bound::Excluded(directory), Bound::Unbounded));
        after.next().is_some_and(|(path, _)| path.starts_with(directory))
    }

    fn is_wanted(&self, real: &Path) -> bool {
        let is_excluded = |path: &PathBuf| real.starts_with(path);
        let is_secret = self.found.paths.get(real).is_some_and(|uses| uses.secret);
        real.parent().is_some()
            && real != Path::new(TMP)
            && !hidden(real)
            && !is_secret
            && !self.found.excluded.iter().any(is_excluded)
    }

    /// Adds all names in a directory, which is at `at` on this machine.
    fn names(&mut self, directory: &Path, at: &Path) -> Result<()> {
        for entry in fs::read_dir(at).at("list", at)? {
            let entry = entry.at("list", at)?;
            let path = directory.join(entry.file_name());
            if let (true, Ok(meta)) = (self.is_wanted(&path), entry.metadata()) {
                self.entry(&path, &meta, PathUses::default())?;
                self.named.insert(path);
            }
        }
        Ok(())
    }

    /// Adds an entry, unless there is one that is more than a stub.
    fn insert(&mut self, real: &Path, node: TreeNode) {
        let nodes = &mut self.tree.tree.nodes;
        if matches!(nodes.get(real), None | Some(TreeNode::Stub { .. })) {
            nodes.insert(real.to_owned(), node);
        }
    }

    /// Adds what is at a path without links in it. Sockets, devices and pipes are the guest's own.
    fn entry(&mut self, real: &Path, meta: &Metadata, uses: PathUses) -> Result<()> {
        // The format has no other names.
        if real.to_str().is_none() {
            return Ok(());
        }
        let at = self.found.root.locate(real).at("look at", real)?;
        if meta.is_symlink() {
            let target = fs::read_link(&at).at("read link", &at)?;
            self.insert(real, TreeNode::Link { target });
        } else if meta.is_dir() {
            self.insert(real, TreeNode::Dir { mode: 0o755 });
        } else if meta.is_file() {
            let all = self.found.with_all_contents && uses.looked_at;
            if (uses.read || uses.executed || all) && File::open(&at).is_ok() {
                let node = self.tree.on_host(real);
                let node = node.map_err(|why| Error::unpackable(real, "the command", why))?;
                self.insert(real, node);
            } else if !matches!(self.tree.tree.nodes.get(real), Some(TreeNode::Host { .. })) {
                let is_watched = !uses.written
                    && !matches!(
                        self.tree.tree.nodes.get(real),
                        Some(TreeNode::Stub { is_watched: false, .. })
                    );
                self.insert(real, TreeNode::Stub { size: meta.len(), is_watched });
            }
        }
        Ok(())
    }
}

/// Gives every entry that is as on this machine the same attributes, except for `without`. Of
/// directories that are only on the way, the time is left out: files that the command does not see
/// come and go in them.
fn take_attributes(tree: &mut HostTree, named: &BTreeSet<PathBuf>, without: &[PathBuf]) {
    let caller = Path::new("/proc/self").metadata().map_or((0, 0), |meta| (meta.uid(), meta.gid()));
    for (path, node) in tree.tree.nodes.iter().filter(|(path, _)| !without.contains(path)) {
        let Ok(at) = tree.root.locate(path) else { continue };
        let Ok(meta) = at.symlink_metadata() else { continue };
        let is_same = match node {
            TreeNode::Dir { .. } => meta.is_dir(),
            TreeNode::Link { .. } => meta.is_symlink(),
            TreeNode::Host { from, .. } => *from == at,
            TreeNode::Stub { .. } => meta.is_file(),
            TreeNode::Own { .. } | TreeNode::Char { .. } => false,
        };
        if is_same {
            // Of another root, the caller's files are root's if the caller may not have others.
            let keeps = tree.root.is_of_this_machine();
            let owner = |id: u32, own: u32| if id == own && !keeps { 0 } else { id };
            let has_time = !meta.is_dir() || named.contains(path);
            // The kernel would start an empty modprobe again and again, one for the format of the other.
            let is_loader = matches!(node, TreeNode::Stub { .. })
                && path.file_name().is_some_and(|name| name == "kmod" || name == "modprobe");
            let attributes = HostAttributes {
                mode: meta.mode() & if is_loader { 0o7666 } else { 0o7777 },
                uid: owner(meta.uid(), caller.0),
                gid: owner(meta.gid(), caller.1),
                mtime: if has_time { u32::try_from(meta.mtime()).unwrap_or(0) } else { 0 },
            };
            tree.tree.attributes.insert(path.clone(), attributes);
        }
    }
}

/// Returns what the kernel opens to execute a program: a script's interpreter, or the loader.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let bytes = fs::read(program).ok()?;
    let Some(line) = bytes.strip_prefix(b"#!") else {
        return elf::needs(&bytes).ok()?.interpreter.map(PathBuf::from);
    };
    let line = String::from_utf8_lossy(line.split(|&byte| byte == b'\n').next()?).into_owned();
    shell::interpreters(&line).first().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::FileTree;
    use std::os::unix::fs::{symlink, PermissionsExt};

    /// Tree of what a first run told about `directory`, whose path each `@` stands for.
    fn mirrored(directory: &Path, told: &str) -> FileTree {
        let told = told.replace('@', directory.to_str().unwrap());
        let mut tree = HostTree::default();
        mirror(&mut tree, &DiscoveredFiles::parse(&told).unwrap()).unwrap();
        tree.tree.check().unwrap();
        tree.tree
    }

    fn prepared() -> tempfile::TempDir {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = dir.path();
        fs::create_dir_all(at.join("sub/deeper")).unwrap();
        for name in ["read", "looked", "emptied", "sub/listed", "key"] {
            fs::write(at.join(name), "text").unwrap();
        }
        fs::set_permissions(at.join("read"), fs::Permissions::from_mode(0o754)).unwrap();
        symlink("sub/../one", at.join("two")).unwrap();
        symlink("read", at.join("one")).unwrap();
        symlink("nowhere", at.join("sub/dangling")).unwrap();
        fs::write(at.join("script"), format!("#!{}/interpreter -x\n", at.display())).unwrap();
        fs::copy("/bin/sh", at.join("interpreter")).unwrap();
        dir
    }

    #[test]
    fn contents_come_with_what_was_read_and_sizes_with_the_rest() {
        let dir = prepared();
        let at = dir.path();
        let tree = mirrored(
            at,
            "l /var/tmp\nr @/two\nr @/read\nl @/looked\nw @/emptied\nd @/sub\n- @/key\nd @\nl @/sub/none/such\nr /proc/self/maps\nexit 0\n",
        );
        let node = |name: &str| tree.nodes.get(&at.join(name));
        assert!(matches!(node("read"), Some(TreeNode::Host { .. })));
        assert!(matches!(node("looked"), Some(TreeNode::Stub { size: 4, is_watched: true })));
        assert!(matches!(node("emptied"), Some(TreeNode::Stub { size: 4, is_watched: false })));
        assert!(matches!(node("sub/listed"), Some(TreeNode::Stub { .. })));
        for link in ["one", "two", "sub/dangling"] {
            assert!(matches!(node(link), Some(TreeNode::Link { .. })), "{link}");
        }
        assert!(matches!(node("sub/deeper"), Some(TreeNode::Dir { .. })));
        assert!(node("key").is_none() && node("sub/none").is_none());
        assert!(!tree.nodes.contains_key(Path::new("/proc")));
        let attributes = tree.attributes.get(&at.join("read")).unwrap();
        assert_eq!((attributes.mode, attributes.uid), (0o754, at.metadata().unwrap().uid()));
        let time = at.join("read").metadata().unwrap().modified().unwrap();
        let time = time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(u64::from(attributes.mtime), time);
        assert_eq!(tree.day_after(), Some(u32::try_from(time / 86400 + 1).unwrap()));
        let on_the_way = tree.attributes.get(at.parent().unwrap()).unwrap();
        assert_eq!(on_the_way.mtime, 0);
    }

    #[test]
    fn the_kernel_cannot_run_a_module_loader_without_contents() {
        let dir = prepared();
        let at = dir.path();
        for name in ["kmod", "other"] {
            fs::write(at.join(name), "text").unwrap();
            fs::set_permissions(at.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mode = |told: &str, name: &str| mirrored(at, told).attributes[&at.join(name)].mode;
        assert_eq!((mode("d @\n", "kmod"), mode("d @\n", "other")), (0o644, 0o755));
        assert_eq!(mode("x @/kmod\n", "kmod"), 0o755);
    }

    #[test]
    fn what_the_kernel_opens_to_run_a_program_is_there() {
        let dir = prepared();
        let tree = mirrored(dir.path(), "x @/script\n");
        assert!(matches!(tree.nodes.get(&dir.path().join("interpreter")), Some(TreeNode::Host { .. })));
        let loader = elf::needs(&fs::read("/bin/sh").unwrap()).unwrap().interpreter.unwrap();
        assert!(tree.nodes.contains_key(&Path::new(&loader).canonicalize().unwrap()));
    }

    #[test]
    fn what_is_looked_at_is_whole_the_second_time_and_what_we_change_is_not_there() {
        let dir = prepared();
        let at = dir.path();
        let found =
            DiscoveredFiles::parse(&format!("l {0}/looked\nd {0}/sub\nd {0}\n", at.display())).unwrap();
        let found = DiscoveredFiles {
            with_all_contents: true,
            excluded: vec![at.join("sub"), at.join("read")],
            ..found
        };
        let mut tree = HostTree::default();
        mirror(&mut tree, &found).unwrap();
        let tree = tree.tree;
        assert!(matches!(tree.nodes.get(&at.join("looked")), Some(TreeNode::Host { .. })));
        assert!(matches!(tree.nodes.get(&at.join("key")), Some(TreeNode::Stub { .. })), "only listed");
        assert!(matches!(tree.nodes.get(&at.join("sub")), Some(TreeNode::Dir { .. })));
        assert!(
            !tree.nodes.contains_key(&at.join("sub/listed")) && !tree.nodes.contains_key(&at.join("read"))
        );
        assert!(!tree.attributes.contains_key(&at.join("sub")));
    }
}
