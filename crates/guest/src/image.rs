//! Workload to initramfs.

use crate::closure::{missing, Closure};
use crate::disk::{self, Disk, Filesystem};
use crate::host;
use crate::named_programs::{text_place, NamedPrograms};
use crate::plan::{self, Plan};
use crate::programs;
use crate::reader::TMP;
use crate::tree::{too_large, Node, Tree};
use crate::{workload, Error, Result, Workload, SEED};
use kerntune_work::{checked, read_versioned, write_json, IoContext, Key, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The work directory's kind of result for images.
pub const ROOM: &str = "guests";

/// The version of `manifest.json`.
pub const SCHEMA: &str = "kerntune.guest/1";

/// A finished image: `initramfs.cpio` and `manifest.json` in one directory.
#[derive(Debug, Clone)]
pub struct GuestImage {
    /// The directory of the image.
    pub dir: PathBuf,
    /// Uncompressed newc, so that the guest spends nothing on unpacking it.
    pub initramfs: PathBuf,
    /// What is in it, as `manifest.json` says.
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
        let key = identify(&workload.name, &tree)?;
        let id = key.id();
        if let Some(dir) = work.sound(ROOM, &id) {
            return Self::open(&dir);
        }
        let staged = work.stage(ROOM, &key)?;
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
        let manifest = Manifest { schema: SCHEMA.into(), id, workload: workload.name.clone(), files, bytes };
        write_json(&staged.path().join("manifest.json"), &manifest)?;
        Self::open(&staged.publish()?)
    }

    /// An image that is there already.
    ///
    /// # Errors
    /// It is not of this version, or not what was packed.
    pub fn open(dir: &Path) -> Result<Self> {
        checked(dir, &[])?;
        let manifest = read_versioned(&dir.join("manifest.json"), SCHEMA)?;
        Ok(Self { dir: dir.to_owned(), initramfs: dir.join("initramfs.cpio"), manifest })
    }
}

/// Bytes that QEMU loads as an initial RAM disk at most (`x86_load_linux` of QEMU's `hw/i386/x86-common.c`, by the kernel's
/// `initrd_addr_max`).
const IMAGE_MAX: u64 = (1 << 31) - 1;
/// Modification time of all files, in seconds since 1970. gzip takes 0 for no time, and ends with status 2.
const MTIME: u32 = 1;

/// What is wrong with an image of that many bytes in a guest with that much memory, if it cannot be unpacked there: the kernel
/// frees the archive when all of it is unpacked.
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

/// At least so many bytes the archive will have.
fn archive_size(tree: &Tree) -> Result<u64> {
    tree.nodes().values().try_fold(0u64, |sum, node| {
        let bytes = match node {
            Node::Host { from, .. } => from.metadata().at("look at", from)?.len(),
            Node::Own { bytes, .. } => bytes.len() as u64,
            Node::Dir { .. } | Node::Link { .. } | Node::Char { .. } => 0,
        };
        Ok(sum.saturating_add(bytes))
    })
}

/// Everything that goes into the image.
fn collect(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<Tree> {
    let mut closure = Closure::new(progress);
    // What the workload brings itself comes first: a package's file of that path is not packed.
    for (path, text) in &workload.texts {
        let mode = if workload::interpreters(text).is_empty() { 0o644 } else { 0o755 };
        closure.tree.put(path, Node::Own { bytes: text.as_bytes().to_vec(), mode })?;
    }
    // What is asked for by name is next: nothing of ours replaces it.
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
                .put(Path::new(plan::INPUT), Node::Own { bytes: input.bytes.clone(), mode: 0o644 })?;
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
    let plan = Plan::with_env(workload, &env);
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
            closure.tree.put(path, Node::Own { bytes, mode: 0o755 })?;
        }
    }
    let bytes = plan.text().as_bytes().to_vec();
    closure.tree.put(Path::new("/kt/plan"), Node::Own { bytes, mode: 0o644 })?;
    skeleton(&mut closure.tree)?;
    closure.tree.check()?;
    Ok(closure.tree)
}

/// A file or directory of the host's, with all that it needs.
fn host_file(closure: &mut Closure, file: &Path, needed_by: &str) -> Result<()> {
    if file.symlink_metadata().is_err() {
        return Err(Error::Program {
            program: file.display().to_string(),
            needed_by: needed_by.into(),
            help: host::missing_file_help(file).into(),
        });
    }
    closure.file(file, needed_by)
}

/// What makes the disk's file system, and the files that go on it.
fn add_disk(closure: &mut Closure, disk: &Disk) -> Result<()> {
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

fn own_program(tree: &mut Tree, path: &Path, from: &Path) -> Result<()> {
    tree.put(path, Node::Host { from: from.to_owned(), mode: 0o755 }).map(drop)
}

/// What init seeds the guest's random numbers with (`guest/init/system.c`).
const RANDOM_BYTES: &[u8] = b"kerntune guest: a fixed seed, so that two runs do the same work";

/// The same init with other random numbers: nothing else of it is different, so that nothing else runs or lies elsewhere.
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

/// What names an image: the workload's name and the paths, modes and contents.
fn identify(workload: &str, tree: &Tree) -> Result<Key> {
    let mut hash = Key::new("guest-image/2", crate::CODE).field("workload", workload);
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
    Ok(hash)
}

/// Writes the newc archive: sorted, time 0, owner 0.
fn write_archive(tree: &Tree, path: &Path) -> Result<Vec<PackedFile>> {
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
            Node::Dir { mode } => (0o040000 | mode, &[], (0, 0)),
            Node::Link { target } => (0o120777, target.as_os_str().as_encoded_bytes(), (0, 0)),
            Node::Own { bytes, mode } => (0o100000 | mode, bytes, (0, 0)),
            Node::Char { major, minor, mode } => (0o020000 | mode, &[], (*major, *minor)),
            Node::Host { from, mode } => {
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
