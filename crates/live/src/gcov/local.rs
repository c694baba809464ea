//! Counters of this machine's kernel.

use super::{CounterSink, CountingKernel, MAX_BYTES, MAX_FILES};
use crate::{Error, Result};
use rustix::mount::{fsconfig_create, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// An instance of debugfs that is mounted nowhere, and is gone when this process ends.
struct Debugfs(OwnedFd);

impl Debugfs {
    fn open() -> Result<Self> {
        let open = || -> io::Result<OwnedFd> {
            let context = fsopen("debugfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&context)?;
            Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
        };
        let of = |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                Error::Gcov("the kernel's counters are only for root: run this as root".into())
            }
            _ => Error::Gcov(format!("debugfs cannot be read ({source}): the kernel needs CONFIG_DEBUG_FS")),
        };
        open().map(Self).map_err(of)
    }

    /// Returns the directory of the counters.
    fn gcov(&self) -> Result<PathBuf> {
        let top = PathBuf::from(format!("/proc/self/fd/{}/gcov", self.0.as_raw_fd()));
        match top.is_dir() {
            true => Ok(top),
            false => Err(not_instrumented("this machine")),
        }
    }
}

/// Returns the error for a kernel without gcov.
pub(super) fn not_instrumented(machine: &str) -> Error {
    Error::Gcov(format!(
        "the kernel of {machine} has no counters: debugfs has no directory gcov. Boot an instrumented kernel \
         (CONFIG_GCOV_KERNEL, CONFIG_GCOV_PROFILE_ALL; docs/recipes.md)"
    ))
}

pub(super) fn reset() -> Result<()> {
    let debugfs = Debugfs::open()?;
    let path = debugfs.gcov()?.join("reset");
    fs::write(&path, "1").map_err(Error::io("write", path))
}

pub(super) fn collect(sink: &mut CounterSink) -> Result<CountingKernel> {
    let debugfs = Debugfs::open()?;
    copy(&debugfs.gcov()?, sink)?;
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    Ok(CountingKernel {
        release: text("/proc/sys/kernel/osrelease"),
        notes: fs::read("/sys/kernel/notes").unwrap_or_default(),
        modules: text("/proc/modules"),
    })
}

/// Copies every `.gcda` file below `top`, by name. Does not follow links: the kernel shows one to
/// each object's notes.
pub(super) fn copy(top: &Path, sink: &mut CounterSink) -> Result<()> {
    let (mut files, mut dirs) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).map_err(Error::io("list", &dir))? {
            let entry = entry.map_err(Error::io("list", &dir))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(Error::io("look at", entry.path()))?);
            if kind.is_dir() {
                dirs.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "gcda") {
                files.push(path);
            }
            if files.len() > MAX_FILES || dirs.len() > MAX_FILES {
                return Err(Error::Gcov(format!("{} has more than {MAX_FILES} files", top.display())));
            }
        }
    }
    files.sort();
    for path in files {
        // The size that the kernel shows is 0.
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
        match read {
            Ok(_) => {}
            // The module was unloaded in the meantime, and reset.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("read", &path)(error)),
        }
        sink.add(path.strip_prefix(top).unwrap_or(&path), &bytes)?;
    }
    Ok(())
}
