//! Where a collector's files are.

use crate::{Error, Result};
use kerntune_work::{Lock, WorkDir};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, DirBuilder};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The directory of a work directory's collector.
#[derive(Debug, Clone)]
pub struct Place(PathBuf);

/// Its name; what begins with a dot is no kind of result.
const NAME: &str = ".live";
const LOCK: &str = "lock";
const SOCKET: &str = "socket";
const LOG: &str = "log";

impl Place {
    /// Of this work directory. Nothing is made.
    pub fn of(work: &WorkDir) -> Self {
        Self(work.root().join(NAME))
    }

    /// Makes the directory.
    pub(super) fn make(&self) -> Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io("create", &self.0)(error))
            }
            _ => Ok(()),
        }
    }

    /// The lock, if nobody has it.
    pub(super) fn lock(&self) -> Result<Option<Lock>> {
        Ok(Lock::try_take(&self.0.join(LOCK))?)
    }

    /// Number of the process that runs, or that was killed.
    pub fn process(&self) -> Option<u32> {
        fs::read_to_string(self.0.join(LOCK)).ok()?.trim().parse().ok()
    }

    /// Says who runs; nobody if none.
    pub(super) fn set_process(&self, process: Option<u32>) -> Result<()> {
        let path = self.0.join(LOCK);
        let text = process.map_or(String::new(), |process| format!("{process}\n"));
        fs::write(&path, text).map_err(Error::io("write", path))
    }

    /// What the collector says when it has no terminal any more.
    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }

    /// The socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.0.join(SOCKET)
    }

    /// The socket's name in the few bytes that an address has, with what keeps it valid.
    pub(super) fn short(&self) -> Result<(OwnedFd, PathBuf)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.0, flags, Mode::empty())
            .map_err(|error| Error::io("open", &self.0)(error.into()))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()));
        Ok((directory, path))
    }
}
