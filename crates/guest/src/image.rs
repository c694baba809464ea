//! Workload to initramfs.

use crate::closure::{missing, Closure};
use crate::host::{self, GUEST_PATH};
use crate::plan::Plan;
use crate::programs;
use crate::tree::{Node, Tree};
use crate::{Error, Result, Workload};
use kerntune_work::{write_json, ContentHash, IoContext, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The work directory's kind of result for images.
pub const ROOM: &str = "guests";

/// The version of `manifest.json`.
pub const SCHEMA: &str = "kerntune.guest/1";

/// A finished image: `initramfs.cpio` and `manifest.json` in one directory.
#[derive(Debug, Clone)]
pub struct GuestImage {
    pub dir: PathBuf,
    /// Uncompressed newc, so that the guest spends nothing on unpacking it.
    pub initramfs: PathBuf,
    pub manifest: Manifest,
}

/// What is in an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// The image's name in the work directory: a hash of all that is packed.
    pub id: String,
    /// The workload's name.
    pub workload: String,
    /// Regular files, sorted by path.
    pub files: Vec<PackedFile>,
    /// The size of the initramfs.
    pub bytes: u64,
}

/// One regular file of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFile {
    /// In the guest.
    pub path: String,
    /// In bytes.
    pub size: u64,
}

impl GuestImage {
    /// Packs the image of a workload, or finds it packed before from the same files.
    ///
    /// # Errors
    /// A package, program or library that this machine lacks, with who needs it and what to do; a
    /// file that cannot be read; a compiler that is not there.
    pub fn build(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<Self> {
        progress.begin(&format!("guest image of {}", workload.name), None);
        let built = Self::build_inner(work, workload, progress);
        progress.end();
        built
    }

    fn build_inner(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<Self> {
        let tree = collect(work, workload, progress)?;
        let id = identify(&workload.name, &tree)?;
        if let Some(dir) = work.find(ROOM, &id) {
            return Self::open(&dir);
        }
        let staged = work.stage(ROOM, &id)?;
        if let Some(dir) = staged.already() {
            return Self::open(dir);
        }
        staged.clear()?;
        let path = staged.path().join("initramfs.cpio");
        let files = write_archive(&tree, &path)?;
        let bytes = path.metadata().at("look at", &path)?.len();
        let manifest = Manifest { schema: SCHEMA.into(), id, workload: workload.name.clone(), files, bytes };
        write_json(&staged.path().join("manifest.json"), &manifest)?;
        Self::open(&staged.publish()?)
    }

    /// An image that is there already.
    ///
    /// # Errors
    /// Its manifest is missing or damaged, or not of this version.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join("manifest.json");
        let text = std::fs::read(&path).at("read", &path)?;
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|source| kerntune_work::Error::Json { path: path.clone(), source })?;
        if manifest.schema != SCHEMA {
            let source = serde::de::Error::custom(format!("schema {} instead of {SCHEMA}", manifest.schema));
            return Err(kerntune_work::Error::Json { path, source }.into());
        }
        Ok(Self { dir: dir.to_owned(), initramfs: dir.join("initramfs.cpio"), manifest })
    }
}

/// Everything that goes into the image.
fn collect(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<Tree> {
    let mut closure = Closure::new(progress);
    // What is asked for by name comes first: nothing of ours replaces it.
    for file in &workload.files {
        if file.symlink_metadata().is_err() {
            return Err(Error::Program {
                program: file.display().to_string(),
                needed_by: "`files` of the workload".into(),
                help: host::missing_file_help(file).into(),
            });
        }
        closure.file(file, "`files` of the workload")?;
    }
    for package in &workload.packages {
        if !host::is_installed(package)? {
            return Err(Error::Package { package: package.clone(), workload: workload.name.clone() });
        }
        closure.package(package)?;
    }
    shell(&mut closure)?;
    let from_list =
        workload.binaries.iter().map(|word| (word.as_str(), "`binaries` of the workload".to_owned()));
    let commands = workload.commands();
    let from_commands =
        commands.iter().filter_map(|(place, command)| Some((command.first()?.as_str(), place.clone())));
    let mut ours: Vec<&str> = workload.programs.iter().map(String::as_str).collect();
    for (word, needed_by) in from_list.chain(from_commands) {
        if programs::named(word).is_some() {
            ours.push(word);
        } else {
            host_program(&mut closure, word, &needed_by)?;
        }
    }
    ours.sort_unstable();
    ours.dedup();
    for name in ours {
        let program = programs::named(name).ok_or_else(|| missing(name, "`programs` of the workload"))?;
        own_program(&mut closure.tree, &Path::new("/kt/bin").join(name), &program.compile(work)?)?;
    }
    own_program(&mut closure.tree, Path::new("/init"), &programs::INIT.compile(work)?)?;
    let mut env = BTreeMap::new();
    if !closure.library_dirs.is_empty() {
        let dirs: Vec<String> = closure.library_dirs.iter().map(|dir| dir.display().to_string()).collect();
        env.insert("LD_LIBRARY_PATH".to_owned(), dirs.join(":"));
    }
    let plan = Plan::with_env(workload, &env).text().as_bytes().to_vec();
    closure.tree.put(Path::new("/kt/plan"), Node::Own { bytes: plan, mode: 0o644 })?;
    skeleton(&mut closure.tree)?;
    Ok(closure.tree)
}

/// A program of the host's, findable in the guest by the word that names it.
fn host_program(closure: &mut Closure, word: &str, needed_by: &str) -> Result<()> {
    if GUEST_PATH.iter().any(|dir| closure.tree.get(&Path::new(dir).join(word)).is_some()) {
        return Ok(());
    }
    let path = host::find_program(word).ok_or_else(|| missing(word, needed_by))?;
    closure.program(&path, needed_by)?;
    let in_path = path.parent().is_some_and(|dir| GUEST_PATH.iter().any(|known| dir == Path::new(known)));
    if let Some(name) = path.file_name().filter(|_| !in_path) {
        closure.tree.put(&Path::new("/kt/bin").join(name), Node::Link { target: path.clone() })?;
    }
    Ok(())
}

/// busybox and a /bin/sh for scripts, if the host has a busybox and no other shell was asked for.
fn shell(closure: &mut Closure) -> Result<()> {
    if let Some(busybox) = host::find_program("busybox") {
        let real = closure.program(&busybox, "the guest's shell")?;
        closure.tree.put(Path::new("/bin/sh"), Node::Link { target: real })?;
    }
    Ok(())
}

fn own_program(tree: &mut Tree, path: &Path, from: &Path) -> Result<()> {
    tree.put(path, Node::Host { from: from.to_owned(), mode: 0o755 }).map(drop)
}

/// Directories, devices and the few files of /etc without which common programs do not start.
fn skeleton(tree: &mut Tree) -> Result<()> {
    for dir in ["/dev", "/proc", "/sys", "/tmp", "/run", "/root", "/kt/out", "/var/tmp"] {
        let mode = if dir.ends_with("tmp") { 0o1777 } else { 0o755 };
        tree.put(Path::new(dir), Node::Dir { mode })?;
    }
    tree.put(Path::new("/dev/console"), Node::Char { major: 5, minor: 1, mode: 0o600 })?;
    tree.put(Path::new("/dev/null"), Node::Char { major: 1, minor: 3, mode: 0o666 })?;
    let files = [
        (
            "/etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        ),
        ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ("/etc/hosts", "127.0.0.1 localhost kerntune\n"),
        ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\n"),
    ];
    for (path, text) in files {
        tree.put(Path::new(path), Node::Own { bytes: text.into(), mode: 0o644 })?;
    }
    Ok(())
}

/// The name of an image: a hash over the workload's name and the paths, modes and contents.
fn identify(workload: &str, tree: &Tree) -> Result<String> {
    let mut hash = ContentHash::new("guest-image/1").field("workload", workload);
    for (path, node) in tree.nodes() {
        hash = hash.field("path", path.as_os_str().as_encoded_bytes());
        hash = match node {
            Node::Dir { mode } => hash.field("dir", mode.to_le_bytes()),
            Node::Link { target } => hash.field("link", target.as_os_str().as_encoded_bytes()),
            Node::Host { from, mode } => hash.field("file", mode.to_le_bytes()).file("contents", from)?,
            Node::Own { bytes, mode } => hash.field("own", mode.to_le_bytes()).field("contents", bytes),
            Node::Char { major, minor, mode } => hash.field("char", format!("{major}:{minor}:{mode}")),
        };
    }
    Ok(hash.finish())
}

/// Writes the newc archive: sorted, time 0, owner 0.
fn write_archive(tree: &Tree, path: &Path) -> Result<Vec<PackedFile>> {
    let mut files = Vec::new();
    let mut out = BufWriter::new(File::create(path).at("create", path)?);
    for (number, (name, node)) in tree.nodes().iter().enumerate() {
        let name = name.strip_prefix("/").unwrap_or(name);
        let text = name
            .to_str()
            .ok_or_else(|| crate::tree::unpackable(name, "the guest image", "its name is not UTF-8"))?;
        let from_host;
        let (mode, contents, device): (u32, &[u8], (u32, u32)) = match node {
            Node::Dir { mode } => (0o040000 | mode, &[], (0, 0)),
            Node::Link { target } => (0o120777, target.as_os_str().as_encoded_bytes(), (0, 0)),
            Node::Own { bytes, mode } => (0o100000 | mode, bytes, (0, 0)),
            Node::Char { major, minor, mode } => (0o020000 | mode, &[], (*major, *minor)),
            Node::Host { from, mode } => {
                from_host = std::fs::read(from).at("read", from)?;
                (0o100000 | mode, &from_host, (0, 0))
            }
        };
        let size = u32::try_from(contents.len()).map_err(|_| {
            crate::tree::unpackable(name, "the guest image", "an initramfs holds no file of 4 GiB or more")
        })?;
        if mode & 0o170000 == 0o100000 {
            files.push(PackedFile { path: format!("/{text}"), size: u64::from(size) });
        }
        let mut entry = cpio::NewcBuilder::new(text)
            .ino(number as u32 + 1)
            .mode(mode)
            .nlink(1)
            .rdev_major(device.0)
            .rdev_minor(device.1)
            .write(&mut out, size);
        entry.write_all(contents).and_then(|()| entry.finish().map(drop)).at("write", path)?;
    }
    cpio::newc::trailer(out).and_then(|mut out| out.flush()).at("write", path)?;
    Ok(files)
}

#[cfg(test)]
mod tests;
