//! Writes the layers of an image into a directory, one on top of the other.
//!
//! The kernel resolves every name below the directory (`RESOLVE_IN_ROOT`), so that no link in a layer
//! leads out of it. Devices are left out: a guest has its own.

use super::digest::shown;
use kerntune_work::{interrupt, RelativePath};
use rustix::fs::{
    chownat, fchmod, fchown, futimens, linkat, mkdirat, openat, openat2, statat, symlinkat, unlinkat,
    utimensat, AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, CWD,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use tar::{EntryType, Header, PaxExtensions};

/// Largest size of all layers together, uncompressed, in bytes.
pub(super) const IMAGE_MAX: u64 = 32 << 30;
/// Largest number of entries of all layers.
const ENTRIES_MAX: u64 = 4_000_000;
/// Largest extended header, in bytes.
const EXTENSION_MAX: u64 = 1 << 20;

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Returns true if this process may give files to others: they then have the owners of the image.
pub(super) fn keeps_owners() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory that layers are written to.
pub(crate) struct RootWriter {
    root: OwnedFd,
    keeps_owners: bool,
    /// Modes and times of directories, which are set when no more is written.
    directories: BTreeMap<PathBuf, (Mode, Timestamps)>,
    /// Paths that the present layer has; its whiteouts are about the layers below.
    present: BTreeSet<PathBuf>,
    left: u64,
    entries_left: u64,
    unnameable: u64,
}

/// An entry, with its extended headers applied.
struct LayerEntry {
    path: PathBuf,
    link: Vec<u8>,
    kind: EntryType,
    mode: Mode,
    owner: (Uid, Gid),
    times: Timestamps,
}

/// Extended headers before an entry.
#[derive(Default)]
struct PaxExtension {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<i64>,
}

fn odd(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

impl RootWriter {
    /// Begins with an empty directory.
    pub fn new(root: &Path) -> io::Result<Self> {
        let root = openat(CWD, root, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self {
            root,
            keeps_owners: keeps_owners(),
            directories: BTreeMap::new(),
            present: BTreeSet::new(),
            left: IMAGE_MAX,
            entries_left: ENTRIES_MAX,
            unnameable: 0,
        })
    }

    /// Bytes of layers that may still be written.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Writes a layer, an uncompressed archive.
    ///
    /// # Errors
    /// An archive that is damaged, or has names that lead out of the root.
    pub fn layer(&mut self, archive: &mut impl Read) -> io::Result<()> {
        self.present.clear();
        let mut extension = PaxExtension::default();
        for entry in tar::Archive::new(archive).entries()?.raw(true) {
            interrupt::check().map_err(io::Error::other)?;
            let mut entry = entry?;
            let size = entry.size();
            let spent = |left: u64, by: u64| {
                left.checked_sub(by).ok_or_else(|| odd("it is larger than an image may be"))
            };
            self.entries_left = spent(self.entries_left, 1)?;
            self.left = spent(self.left, size.saturating_add(512))?;
            let kind = entry.header().entry_type();
            if matches!(
                kind,
                EntryType::XHeader
                    | EntryType::XGlobalHeader
                    | EntryType::GNULongName
                    | EntryType::GNULongLink
            ) {
                let mut bytes = Vec::new();
                if size > EXTENSION_MAX {
                    return Err(odd(format!("an extended header has {size} bytes")));
                }
                entry.read_to_end(&mut bytes)?;
                extension.take(kind, bytes)?;
                continue;
            }
            let found = LayerEntry::of(
                entry.header(),
                &entry.path_bytes(),
                entry.link_name_bytes().as_deref(),
                &extension,
                size,
            )?;
            extension = PaxExtension::default();
            self.entry(&found, &mut entry)?;
        }
        Ok(())
    }

    /// Sets what is left to be set; returns sentences about what the root lacks.
    pub fn finish(self) -> io::Result<Vec<String>> {
        for (path, (mode, times)) in self.directories.iter().rev() {
            // Another layer may have replaced it.
            let Ok(directory) = self.open(path, OFlags::RDONLY) else { continue };
            fchmod(&directory, *mode)?;
            futimens(&directory, times)?;
        }
        let mut notes = Vec::new();
        if self.unnameable > 0 {
            notes.push(format!(
                "{} files of the image are left out: their names are no plain text",
                self.unnameable
            ));
        }
        Ok(notes)
    }

    /// Opens a directory below the root, with all links followed inside.
    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.root, path, OFlags::DIRECTORY | OFlags::CLOEXEC | flags, Mode::empty(), within)
    }

    /// Opens the directory of an entry, which is made if no layer has it.
    fn parent(&mut self, path: &Path) -> io::Result<OwnedFd> {
        let above = path.parent().unwrap_or(Path::new(""));
        match self.open(above, OFlags::PATH) {
            Err(Errno::NOENT) => {
                let (upper, name) = (self.parent(above)?, above.file_name().unwrap_or_default());
                mkdirat(&upper, name, Mode::from(0o755)).map_err(|error| at(above, error))?;
                self.present.insert(above.to_owned());
                self.open(above, OFlags::PATH).map_err(|error| at(above, error))
            }
            other => other.map_err(|error| at(above, error)),
        }
    }

    fn entry(&mut self, entry: &LayerEntry, contents: &mut impl Read) -> io::Result<()> {
        let path = entry.path.as_path();
        let Some(name) = path.file_name() else {
            // The root itself.
            self.directories.insert(PathBuf::new(), (self.mode(entry), entry.times.clone()));
            return Ok(());
        };
        if let Some(hidden) = name.as_bytes().strip_prefix(WHITEOUT) {
            return self.whiteout(path, OsStr::from_bytes(hidden), name.as_bytes() == OPAQUE);
        }
        // Paths are listed in a file of lines.
        let is_nameable = |text: &str| format!("root/{text}").parse::<RelativePath>().is_ok();
        let is_link_nameable =
            std::str::from_utf8(&entry.link).is_ok_and(|link| !link.contains(char::is_control));
        if !path.to_str().is_some_and(is_nameable) || (entry.kind == EntryType::Symlink && !is_link_nameable)
        {
            self.unnameable += 1;
            return Ok(());
        }
        if matches!(entry.kind, EntryType::Char | EntryType::Block | EntryType::Fifo) {
            return Ok(());
        }
        let parent = self.parent(path)?;
        let failed = |error: Errno| at(path, error);
        let is_directory = entry.kind == EntryType::Directory;
        let there = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| FileType::from_raw_mode(stat.st_mode));
        let stays = is_directory && there == Ok(FileType::Directory);
        if there.is_ok() && !stays {
            remove(&parent, name)?;
        }
        match entry.kind {
            EntryType::Directory => {
                if !stays {
                    mkdirat(&parent, name, Mode::from(0o700)).map_err(failed)?;
                }
                self.directories.insert(path.to_owned(), (self.mode(entry), entry.times.clone()));
            }
            EntryType::Regular | EntryType::Continuous => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file = File::from(openat(&parent, name, flags, Mode::from(0o600)).map_err(failed)?);
                copy(contents, &mut file)?;
                if self.keeps_owners {
                    fchown(&file, Some(entry.owner.0), Some(entry.owner.1)).map_err(failed)?;
                }
                fchmod(&file, self.mode(entry)).map_err(failed)?;
                futimens(&file, &entry.times).map_err(failed)?;
            }
            EntryType::Symlink => {
                symlinkat(OsStr::from_bytes(&entry.link), &parent, name).map_err(failed)?;
                utimensat(&parent, name, &entry.times, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
            }
            EntryType::Link => {
                let target = inside(&entry.link)?;
                let from = self.open(target.parent().unwrap_or(Path::new("")), OFlags::PATH);
                let linked = from.and_then(|from| {
                    linkat(&from, target.file_name().unwrap_or_default(), &parent, name, AtFlags::empty())
                });
                linked.map_err(|error| {
                    odd(format!("{} is a link to {}: {error}", path.display(), target.display()))
                })?;
            }
            other => {
                return Err(odd(format!("{} is an entry of the unknown kind {other:?}", path.display())))
            }
        }
        if self.keeps_owners && matches!(entry.kind, EntryType::Directory | EntryType::Symlink) {
            let (uid, gid) = entry.owner;
            chownat(&parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        }
        let present = path.ancestors().map(Path::to_owned).take_while(|path| !self.present.contains(path));
        let present: Vec<PathBuf> = present.collect();
        self.present.extend(present);
        Ok(())
    }

    /// Mode of an entry. Who is not root has to be able to read it, and to remove it.
    fn mode(&self, entry: &LayerEntry) -> Mode {
        match (self.keeps_owners, entry.kind) {
            (true, _) => entry.mode,
            (false, EntryType::Directory) => entry.mode | Mode::RWXU,
            (false, _) => entry.mode | Mode::RUSR,
        }
    }

    /// Removes what layers below have: one name, or all in the directory.
    fn whiteout(&mut self, path: &Path, hidden: &OsStr, is_opaque: bool) -> io::Result<()> {
        let above = path.parent().unwrap_or(Path::new(""));
        let Ok(parent) = self.open(above, OFlags::RDONLY) else { return Ok(()) };
        if !is_opaque {
            let is_name = !hidden.is_empty()
                && hidden != "."
                && hidden != ".."
                && !hidden.as_bytes().starts_with(WHITEOUT);
            return match is_name && !self.present.contains(&above.join(hidden)) {
                true => remove(&parent, hidden),
                false => Ok(()),
            };
        }
        let mut names = Vec::new();
        for entry in Dir::read_from(&parent).map_err(|error| at(above, error))? {
            let entry = entry.map_err(|error| at(above, error))?;
            names.push(OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        }
        let is_below = |name: &&std::ffi::OsString| {
            *name != "." && *name != ".." && !self.present.contains(&above.join(name))
        };
        names.iter().filter(is_below).try_for_each(|name| remove(&parent, name))
    }
}

fn at(path: &Path, error: Errno) -> io::Error {
    odd(format!("/{}: {error}", shown(&path.to_string_lossy())))
}

/// Removes an entry with all in it; nothing if there is none.
fn remove(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // It follows no link.
        Err(Errno::ISDIR) => {
            std::fs::remove_dir_all(Path::new(&format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name))
        }
        Err(error) => Err(at(Path::new(name), error)),
    }
}

/// As `io::copy`, and ends at an interrupt.
fn copy(from: &mut impl Read, to: &mut File) -> io::Result<()> {
    loop {
        interrupt::check().map_err(io::Error::other)?;
        if io::copy(&mut from.by_ref().take(16 << 20), to)? == 0 {
            return Ok(());
        }
    }
}

/// Returns the path of a name below the root. An absolute one begins there.
fn inside(name: &[u8]) -> io::Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(OsStr::from_bytes(name)).components() {
        match part {
            Component::Normal(part) if !part.as_bytes().contains(&0) => path.push(part),
            Component::CurDir | Component::RootDir => {}
            _ => {
                return Err(odd(format!(
                    "the name `{}` leads out of the image",
                    shown(&String::from_utf8_lossy(name))
                )))
            }
        }
    }
    Ok(path)
}

impl LayerEntry {
    fn of(
        header: &Header,
        path: &[u8],
        link: Option<&[u8]>,
        extension: &PaxExtension,
        size: u64,
    ) -> io::Result<Self> {
        let number = |own: io::Result<u64>, other: Option<u64>| -> io::Result<u32> {
            let value = other.map_or(own, Ok)?;
            u32::try_from(value)
                .ok()
                .filter(|id| *id != u32::MAX)
                .ok_or_else(|| odd(format!("there is no user or group {value}")))
        };
        let kind = header.entry_type();
        if kind.is_hard_link() && size > 0 {
            return Err(odd("a link has contents"));
        }
        let seconds = extension
            .mtime
            .map_or_else(|| header.mtime().map(|time| i64::try_from(time).unwrap_or(0)), Ok)?;
        let time = Timespec { tv_sec: seconds.clamp(0, u32::MAX.into()), tv_nsec: 0 };
        Ok(Self {
            path: inside(extension.path.as_deref().unwrap_or(path))?,
            link: extension.link.as_deref().or(link).unwrap_or_default().to_vec(),
            kind,
            mode: Mode::from_bits_truncate(header.mode()? & 0o7777),
            owner: (
                Uid::from_raw(number(header.uid(), extension.uid)?),
                Gid::from_raw(number(header.gid(), extension.gid)?),
            ),
            times: Timestamps { last_access: time, last_modification: time },
        })
    }
}

impl PaxExtension {
    /// Takes an extended header; of those for all entries nothing matters.
    fn take(&mut self, kind: EntryType, mut bytes: Vec<u8>) -> io::Result<()> {
        match kind {
            EntryType::GNULongName | EntryType::GNULongLink => {
                while bytes.last() == Some(&0) {
                    bytes.pop();
                }
                let place = if kind == EntryType::GNULongName { &mut self.path } else { &mut self.link };
                *place = Some(bytes);
            }
            EntryType::XHeader => {
                for pair in PaxExtensions::new(&bytes) {
                    let pair = pair?;
                    let value = pair.value_bytes();
                    let number = || std::str::from_utf8(value).ok()?.split('.').next()?.parse::<i64>().ok();
                    let id = || number().and_then(|id| u64::try_from(id).ok());
                    match pair.key_bytes() {
                        b"path" => self.path = Some(value.to_vec()),
                        b"linkpath" => self.link = Some(value.to_vec()),
                        b"uid" => self.uid = id(),
                        b"gid" => self.gid = id(),
                        b"mtime" => self.mtime = number(),
                        b"size" => return Err(odd("a file of 8 GiB or more is in it")),
                        key if key.starts_with(b"GNU.sparse") => return Err(odd("a sparse file is in it")),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
