//! Packs workloads into initramfs images.

use crate::closure::{missing, FileClosure};
use crate::disk::{self, Disk, Filesystem};
use crate::host;
use crate::named_programs::{text_place, NamedPrograms};
use crate::plan::{self, InitPlan};
use crate::programs;
use crate::reader::TMP;
use crate::tree::{too_large, FileTree, TreeNode};
use crate::{workload, Error, Result, Workload, SEED};
use kerntune_work::{checked, read_versioned, write_json, IoContext, Key, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Kind of result in the work directory.
pub const KIND: &str = "guests";

/// Schema of `manifest.json`.
pub const SCHEMA: &str = "kerntune.guest/1";

/// A finished image: `initramfs.cpio` and `manifest.json` in one directory.
#[derive(Debug, Clone)]
pub struct GuestImage {
    /// Directory of the image.
    pub dir: PathBuf,
    /// Path of the initramfs, an uncompressed newc archive, so that the guest spends no time on
    /// decompression.
    pub initramfs: PathBuf,
    /// Contents of the image, from `manifest.json`.
    pub manifest: ImageManifest,
}

/// Contents of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageManifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name in the work directory: a hash of everything packed.
    pub id: String,
    /// Name of the workload.
    pub workload: String,
    /// Regular files, sorted by path.
    pub files: Vec<PackedFile>,
    /// Size of the initramfs in bytes.
    pub bytes: u64,
}

/// A regular file of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFile {
    /// Path in the guest.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
}

impl GuestImage {
    /// Packs the image of a workload, or finds one packed earlier from the same files.
    ///
    /// # Errors
    /// A package, program or library that this machine lacks, with who needs it and what to do; a
    /// file that cannot be read; a missing compiler.
    pub fn build(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<Self> {
        progress.begin(&format!("guest image of {}", workload.name), None);
        let built = Self::build_inner(work, workload, progress);
        progress.end();
        built
    }

    fn build_inner(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<Self> {
        let tree = collect(work, workload, progress)?;
        let key = identify(&workload.name, &tree)?;
        let id = key.id();
        if let Some(dir) = work.find_verified(KIND, &id) {
            return Self::open(&dir);
        }
        let staged = work.stage(KIND, &key)?;
        if let Some(dir) = staged.already() {
            return Self::open(&dir);
        }
        let size = archive_size(&tree)?;
        if let Some(problem) = too_large_for(size, workload.memory_mb) {
            return Err(Error::TooLarge { workload: workload.name.clone(), problem });
        }
        staged.clear()?;
        if tree.is_private() {
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(staged.path(), private).at("protect", staged.path())?;
        }
        let path = staged.path().join("initramfs.cpio");
        let files = write_archive(&tree, &path)?;
        let bytes = path.metadata().at("look at", &path)?.len();
        let manifest =
            ImageManifest { schema: SCHEMA.into(), id, workload: workload.name.clone(), files, bytes };
        write_json(&staged.path().join("manifest.json"), &manifest)?;
        Self::open(&staged.publish()?)
    }

    /// Opens an existing image.
    ///
    /// # Errors
    /// An image of another version, or with changed files.
    pub fn open(dir: &Path) -> Result<Self> {
        checked(dir, &[])?;
        let manifest = read_versioned(&dir.join("manifest.json"), SCHEMA)?;
        Ok(Self { dir: dir.to_owned(), initramfs: dir.join("initramfs.cpio"), manifest })
    }
}

/// Largest initial RAM disk that QEMU loads, in bytes (`x86_load_linux` of QEMU's
/// `hw/i386/x86-common.c`, by the kernel's `initrd_addr_max`).
const IMAGE_MAX: u64 = (1 << 31) - 1;
/// Modification time of all files, in seconds since 1970. gzip takes 0 for no time, and ends with
/// status 2.
const MTIME: u32 = 1;

/// Returns the reason why an image of that many bytes cannot be unpacked in a guest with that much
/// memory; `None` if it can. The kernel frees the archive only after unpacking all of it.
pub(crate) fn too_large_for(bytes: u64, memory_mb: u32) -> Option<String> {
    let mib = bytes.div_ceil(1 << 20);
    if bytes > IMAGE_MAX {
        return Some(format!(
            "{mib} MiB are to be packed, and no initial RAM disk has 2 GiB or more; pack less"
        ));
    }
    (mib * 2 > memory_mb.into()).then(|| {
        format!(
            "{mib} MiB are to be packed, and to unpack them a guest needs twice that and some more: `memory_mb` is {memory_mb}; \
             raise it, or pack less"
        )
    })
}

/// Lower bound of the archive's size in bytes.
fn archive_size(tree: &FileTree) -> Result<u64> {
    tree.nodes().values().try_fold(0u64, |sum, node| {
        let bytes = match node {
            TreeNode::Host { from, .. } => from.metadata().at("look at", from)?.len(),
            TreeNode::Own { bytes, .. } => bytes.len() as u64,
            TreeNode::Dir { .. } | TreeNode::Link { .. } | TreeNode::Char { .. } => 0,
        };
        Ok(sum.saturating_add(bytes))
    })
}

/// Collects everything that goes into the image.
fn collect(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<FileTree> {
    let mut closure = FileClosure::new(progress);
    // The workload's own texts come first and take precedence over package files.
    for (path, text) in &workload.texts {
        let mode = if workload::interpreters(text).is_empty() { 0o644 } else { 0o755 };
        closure.tree.put(path, TreeNode::Own { bytes: text.as_bytes().to_vec(), mode })?;
    }
    // Files that the workload names come next; nothing of ours replaces them.
    for file in &workload.files {
        match &workload.context {
            Some(context) if context.lists_files => closure.listed(file, "the command")?,
            _ => host_file(&mut closure, file, "`files` of the workload")?,
        }
    }
    if let Some(context) = &workload.context {
        if let Some(directory) = &context.directory {
            closure.tree.take(directory, "the command's directory")?;
        }
        if let Some(input) = &context.input {
            closure
                .tree
                .put(Path::new(plan::INPUT), TreeNode::Own { bytes: input.bytes.clone(), mode: 0o644 })?;
            closure.tree.keep_private(input.is_private);
        }
    }
    for package in &workload.packages {
        if !host::is_installed(package)? {
            return Err(Error::Package { package: package.clone(), workload: workload.name.clone() });
        }
        closure.package(package)?;
    }
    if let Some(disk) = &workload.disk {
        add_disk(&mut closure, disk)?;
    }
    let mut named = NamedPrograms::new(&mut closure, progress, workload)?;
    for word in &workload.binaries {
        named.needed(word, "`binaries` of the workload")?;
    }
    for (path, interpreters, _) in workload.scripts() {
        for interpreter in interpreters {
            named.needed(interpreter, &text_place(path))?;
        }
    }
    for (place, command) in &workload.commands() {
        if let Some(word) = command.first() {
            named.needed(word, place)?;
        }
    }
    named.named_by_commands()?;
    for name in
        workload.programs.iter().map(String::as_str).chain(workload.disk.iter().map(|_| disk::PROGRAM))
    {
        if !named.own(name) {
            return Err(missing(name, "`programs` of the workload"));
        }
    }
    for name in named.finish() {
        let program = programs::named(name).ok_or_else(|| missing(name, "`programs` of the workload"))?;
        own_program(&mut closure.tree, &Path::new("/kt/bin").join(name), &program.compile(work)?)?;
    }
    let mut env = BTreeMap::new();
    if !closure.library_dirs.is_empty() {
        let dirs: Vec<String> = closure.library_dirs.iter().map(|dir| dir.display().to_string()).collect();
        env.insert("LD_LIBRARY_PATH".to_owned(), dirs.join(":"));
    }
    let plan = InitPlan::with_env(workload, &env);
    let below_tmp = |path: &PathBuf| path.starts_with(TMP) && path != Path::new(TMP);
    let asks = plan.is_escaped() || closure.tree.nodes().keys().any(below_tmp);
    let init = match (asks, workload.proc) {
        (false, false) => &programs::INIT,
        (false, true) => &programs::INIT_PROC,
        (true, false) => &programs::INIT_COMMAND,
        (true, true) => &programs::INIT_COMMAND_PROC,
    };
    let (path, init) = (Path::new("/init"), init.compile(work)?);
    match workload.seed {
        SEED => own_program(&mut closure.tree, path, &init)?,
        seed => {
            let bytes = with_seed(fs::read(&init).at("read", &init)?, seed)?;
            closure.tree.put(path, TreeNode::Own { bytes, mode: 0o755 })?;
        }
    }
    let bytes = plan.text().as_bytes().to_vec();
    closure.tree.put(Path::new("/kt/plan"), TreeNode::Own { bytes, mode: 0o644 })?;
    skeleton(&mut closure.tree)?;
    closure.tree.check()?;
    Ok(closure.tree)
}

/// Packs a host file or directory with all that it needs.
fn host_file(closure: &mut FileClosure, file: &Path, needed_by: &str) -> Result<()> {
    if file.symlink_metadata().is_err() {
        return Err(Error::Program {
            program: file.display().to_string(),
            needed_by: needed_by.into(),
            help: host::missing_file_help(file).into(),
        });
    }
    closure.file(file, needed_by)
}

/// Packs the program that creates the disk's file system, and the files that go on it.
fn add_disk(closure: &mut FileClosure, disk: &Disk) -> Result<()> {
    let needed_by = "`disk` of the workload";
    if let Some(maker) = disk.filesystem.maker() {
        let path = host::find_program(maker).ok_or_else(|| Error::Program {
            program: maker.into(),
            needed_by: needed_by.into(),
            help: format!("install it: apt-get install {}", disk.filesystem.package()),
        })?;
        closure.program(&path, needed_by)?;
        let settings = Path::new("/etc/mke2fs.conf");
        if disk.filesystem == Filesystem::Ext4 && settings.exists() {
            closure.file(settings, needed_by)?;
        }
    }
    for file in &disk.files {
        host_file(closure, file, "`disk.files` of the workload")?;
    }
    Ok(())
}

fn own_program(tree: &mut FileTree, path: &Path, from: &Path) -> Result<()> {
    tree.put(path, TreeNode::Host { from: from.to_owned(), mode: 0o755 }).map(drop)
}

/// Seed of the guest's random numbers, as in `embedded/guest/init/system.c`.
const RANDOM_BYTES: &[u8] = b"kerntune guest: a fixed seed, so that two runs do the same work";

/// Patches another seed into init, which otherwise stays the same, so that nothing else changes or
/// moves.
fn with_seed(mut init: Vec<u8>, seed: u32) -> Result<Vec<u8>> {
    let places: Vec<usize> = init
        .windows(RANDOM_BYTES.len())
        .enumerate()
        .filter(|(_, at)| *at == RANDOM_BYTES)
        .map(|(at, _)| at)
        .collect();
    let [at] = places[..] else {
        let output = format!("the bytes of its random numbers are in it {} times and not once", places.len());
        return Err(Error::Compile {
            program: "init".into(),
            output,
            help: "use the Debian release's own gcc",
        });
    };
    let text = format!("{:-<width$}", format!("kerntune guest: seed {seed} "), width = RANDOM_BYTES.len());
    init[at..at + RANDOM_BYTES.len()].copy_from_slice(text.as_bytes());
    Ok(init)
}

/// Adds directories, devices and the few files of /etc without which common programs do not start.
fn skeleton(tree: &mut FileTree) -> Result<()> {
    for dir in ["/dev", "/proc", "/sys", "/tmp", "/run", "/root", "/kt/out", "/var/tmp"] {
        let mode = if dir.ends_with("tmp") { 0o1777 } else { 0o755 };
        tree.put(Path::new(dir), TreeNode::Dir { mode })?;
    }
    tree.put(Path::new("/dev/console"), TreeNode::Char { major: 5, minor: 1, mode: 0o600 })?;
    tree.put(Path::new("/dev/null"), TreeNode::Char { major: 1, minor: 3, mode: 0o666 })?;
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
        tree.put(Path::new(path), TreeNode::Own { bytes: text.into(), mode: 0o644 })?;
    }
    Ok(())
}

/// Hashes the workload's name and all paths, modes and contents.
fn identify(workload: &str, tree: &FileTree) -> Result<Key> {
    let mut hash = Key::new("guest-image/2", crate::CODE).field("workload", workload);
    for (path, node) in tree.nodes() {
        hash = hash.field("path", path.as_os_str().as_encoded_bytes());
        hash = match node {
            TreeNode::Dir { mode } => hash.field("dir", mode.to_le_bytes()),
            TreeNode::Link { target } => hash.field("link", target.as_os_str().as_encoded_bytes()),
            TreeNode::Host { from, mode } => hash.field("file", mode.to_le_bytes()).file("contents", from)?,
            TreeNode::Own { bytes, mode } => hash.field("own", mode.to_le_bytes()).field("contents", bytes),
            TreeNode::Char { major, minor, mode } => hash.field("char", format!("{major}:{minor}:{mode}")),
        };
    }
    Ok(hash)
}

/// Writes the newc archive: sorted by path, with fixed time and owner.
fn write_archive(tree: &FileTree, path: &Path) -> Result<Vec<PackedFile>> {
    let mut files = Vec::new();
    let mode = if tree.is_private() { 0o600 } else { 0o666 };
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path);
    let mut out = BufWriter::new(file.at("create", path)?);
    for (number, (name, node)) in tree.nodes().iter().enumerate() {
        let name = name.strip_prefix("/").unwrap_or(name);
        let text = name
            .to_str()
            .ok_or_else(|| crate::tree::unpackable(name, "the guest image", "its name is not UTF-8"))?;
        let mut from_host = None;
        let (mode, contents, device): (u32, &[u8], (u32, u32)) = match node {
            TreeNode::Dir { mode } => (0o040000 | mode, &[], (0, 0)),
            TreeNode::Link { target } => (0o120777, target.as_os_str().as_encoded_bytes(), (0, 0)),
            TreeNode::Own { bytes, mode } => (0o100000 | mode, bytes, (0, 0)),
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
            crate::tree::unpackable(name, "the guest image", &why)
        })?;
        if mode & 0o170000 == 0o100000 {
            files.push(PackedFile { path: format!("/{text}"), size: u64::from(size) });
        }
        let mut entry = cpio::NewcBuilder::new(text)
            .ino(number as u32 + 1)
            .mode(mode)
            .nlink(1)
            .mtime(MTIME)
            .rdev_major(device.0)
            .rdev_minor(device.1)
            .write(&mut out, size);
        if let Some((from, file, size)) = from_host {
            let copied = std::io::copy(&mut file.take(size), &mut entry).at("pack", from)?;
            if copied != size {
                return Err(crate::tree::unpackable(
                    from,
                    "the guest image",
                    "it shrank while it was packed",
                ));
            }
        } else {
            entry.write_all(contents).at("write", path)?;
        }
        entry.finish().at("write", path)?;
    }
    cpio::newc::trailer(out).and_then(|mut out| out.flush()).at("write", path)?;
    Ok(files)
}

#[cfg(test)]
mod tests;
