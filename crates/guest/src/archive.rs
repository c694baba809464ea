//! Writes file trees as initramfs archives, uncompressed in the newc format.

use crate::limits::too_large;
use crate::tree::{FileTree, TreeNode};
use crate::{Error, Result};
use kerntune_work::{ContentHash, IoContext, Key};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Modification time of all files, in seconds since 1970. gzip takes 0 for no time, and ends with
/// status 2.
const MTIME: u32 = 1;

/// A regular file of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFile {
    /// Path in the guest.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
}

/// Field of a key with which an entry begins.
const PATH: &str = "path";

/// Hashes the workload's name and all paths, modes and contents.
pub(crate) fn identify(workload: &str, tree: &FileTree) -> Result<Key> {
    let mut hash = Key::new("guest-image/2", crate::CODE).field("workload", workload);
    for (path, node) in &tree.nodes {
        hash = hash.field(PATH, path.as_os_str().as_encoded_bytes());
        if let Some(attributes) = tree.attributes.get(path) {
            hash = hash.field("attributes", format!("{attributes:?}"));
        }
        hash = match node {
            TreeNode::Dir { mode } => hash.field("dir", mode.to_le_bytes()),
            TreeNode::Link { target } => hash.field("link", target.as_os_str().as_encoded_bytes()),
            TreeNode::Host { from, mode } => hash.field("file", mode.to_le_bytes()).file("contents", from)?,
            TreeNode::Own { bytes, mode } => hash.field("own", mode.to_le_bytes()).field("contents", bytes),
            TreeNode::Stub { size, is_watched } => hash.field("stub", format!("{size} {is_watched}")),
            TreeNode::Char { major, minor, mode } => hash.field("char", format!("{major}:{minor}:{mode}")),
        };
    }
    Ok(hash)
}

/// Returns a hash of each entry by its path, from the fields of [`identify`].
pub(crate) fn entries(key: &Key) -> BTreeMap<String, String> {
    let of_entries = key.fields().iter().skip_while(|(name, _)| name != PATH);
    let mut entries: BTreeMap<String, ContentHash> = BTreeMap::new();
    let mut path = "";
    for (name, value) in of_entries {
        if name == PATH {
            path = value;
        } else if let Some(known) = entries.remove(path) {
            entries.insert(path.to_owned(), known.field(name, value));
        } else {
            entries.insert(path.to_owned(), ContentHash::new("guest-entry/1").field(name, value));
        }
    }
    entries.into_iter().map(|(path, hash)| (path, hash.finish())).collect()
}

/// Writes the newc archive: sorted by path, with fixed time and owner.
pub(crate) fn write(tree: &FileTree, path: &Path) -> Result<Vec<PackedFile>> {
    let mut files = Vec::new();
    let mode = if tree.is_private { 0o600 } else { 0o666 };
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path);
    let mut out = BufWriter::new(file.at("create", path)?);
    for (number, (name, node)) in tree.nodes.iter().enumerate() {
        let attributes = tree.attributes.get(name);
        let name = name.strip_prefix("/").unwrap_or(name);
        let text = name
            .to_str()
            .ok_or_else(|| Error::unpackable(name, "the guest image", "its name is not UTF-8"))?;
        let mut from_host = None;
        let (mode, contents, device): (u32, &[u8], (u32, u32)) = match node {
            TreeNode::Dir { mode } => (0o040000 | mode, &[], (0, 0)),
            TreeNode::Link { target } => (0o120777, target.as_os_str().as_encoded_bytes(), (0, 0)),
            TreeNode::Own { bytes, mode } => (0o100000 | mode, bytes, (0, 0)),
            TreeNode::Stub { .. } => (0o100000, &[], (0, 0)),
            TreeNode::Char { major, minor, mode } => (0o020000 | mode, &[], (*major, *minor)),
            TreeNode::Host { from, mode } => {
                let file = File::open(from).at("read", from)?;
                let size = file.metadata().at("look at", from)?.len();
                from_host = Some((from, file, size));
                (0o100000 | mode, &[], (0, 0))
            }
        };
        let size = from_host.as_ref().map_or(contents.len() as u64, |(_, _, size)| *size);
        let size = u32::try_from(size).map_err(|_| {
            let why = too_large(size).unwrap_or_default();
            Error::unpackable(name, "the guest image", why)
        })?;
        if mode & 0o170000 == 0o100000 {
            files.push(PackedFile { path: format!("/{text}"), size: u64::from(size) });
        }
        let mut entry = cpio::NewcBuilder::new(text)
            .ino(number as u32 + 1)
            .mode(attributes.map_or(mode, |attributes| mode & 0o170000 | attributes.mode))
            .uid(attributes.map_or(0, |attributes| attributes.uid))
            .gid(attributes.map_or(0, |attributes| attributes.gid))
            .nlink(1)
            .mtime(attributes.map_or(MTIME, |attributes| attributes.mtime))
            .rdev_major(device.0)
            .rdev_minor(device.1)
            .write(&mut out, size);
        if let Some((from, file, size)) = from_host {
            let copied = std::io::copy(&mut file.take(size), &mut entry).at("pack", from)?;
            if copied != size {
                return Err(Error::unpackable(from, "the guest image", "it shrank while it was packed"));
            }
        } else {
            entry.write_all(contents).at("write", path)?;
        }
        entry.finish().at("write", path)?;
    }
    cpio::newc::trailer(out).and_then(|mut out| out.flush()).at("write", path)?;
    Ok(files)
}

/// Lower bound of the archive's size in bytes.
pub(crate) fn size(tree: &FileTree) -> Result<u64> {
    tree.nodes.values().try_fold(0u64, |sum, node| {
        let bytes = match node {
            TreeNode::Host { from, .. } => from.metadata().at("look at", from)?.len(),
            TreeNode::Own { bytes, .. } => bytes.len() as u64,
            TreeNode::Dir { .. } | TreeNode::Link { .. } | TreeNode::Stub { .. } | TreeNode::Char { .. } => 0,
        };
        Ok(sum.saturating_add(bytes))
    })
}
