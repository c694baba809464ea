//! Directory of a collector daemon.

use crate::{Error, Result};
use kerntune_work::{file_kind, open_own, Lock, WorkDir};
use rustix::fs::{fstat, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Directory of a work directory's daemon.
#[derive(Debug, Clone)]
pub struct DaemonDir(PathBuf);

/// Name of the directory. Names with a leading dot are never kinds of results.
const NAME: &str = ".live";
const LOCK: &str = "lock";
const SOCKET: &str = "socket";
const LOG: &str = "log";
/// Write permissions that only the owner may have.
const OTHERS_WRITE: u32 = 0o022;

impl DaemonDir {
    /// Returns the daemon's directory in a work directory, without creating it.
    pub fn of(work: &WorkDir) -> Self {
        Self(work.root().join(NAME))
    }

    /// Creates the directory.
    pub(super) fn make(&self) -> Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io("create", &self.0)(error))
            }
            _ => self.open().map(drop),
        }
    }

    /// Opens and checks the directory, so that nobody else can put anything into it or replace it.
    /// `None` if it does not exist.
    fn open(&self) -> Result<Option<OwnedFd>> {
        let refused = |what: &str| {
            Error::Filter(format!(
                "{} {what}: nothing in it is touched; look at it, remove it, and run the command again",
                self.0.display()
            ))
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(&self.0, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => {
                let kind = fs::symlink_metadata(&self.0).ok().and_then(|found| file_kind(found.file_type()));
                return Err(match kind {
                    Some(kind) if kind != "a directory" => {
                        refused(&format!("is {kind}, and not the directory of a collector"))
                    }
                    _ => Error::io("open", &self.0)(error.into()),
                });
            }
            Ok(directory) => directory,
        };
        let found = fstat(&directory).map_err(|error| Error::io("look at", &self.0)(error.into()))?;
        let us = geteuid().as_raw();
        if found.st_uid != us {
            return Err(refused(&format!(
                "belongs to user {}, and kerntune runs as user {us}",
                found.st_uid
            )));
        }
        if found.st_mode & OTHERS_WRITE != 0 {
            return Err(refused("can be written to by other users"));
        }
        Ok(Some(directory))
    }

    /// Returns the open directory and a path of `name` in it that stays valid while it is open.
    fn within(&self, name: &str) -> Result<(OwnedFd, PathBuf)> {
        let directory =
            self.open()?.ok_or_else(|| Error::io("open", &self.0)(std::io::ErrorKind::NotFound.into()))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()));
        Ok((directory, path))
    }

    /// Opens a file of the directory and creates it if necessary.
    fn file(&self, name: &str) -> Result<File> {
        let (_directory, path) = self.within(name)?;
        Ok(open_own("write", &path, 0o600).map_err(|error| self.named(name, error))?)
    }

    /// Replaces the path in an error with the one that users know.
    fn named(&self, name: &str, error: kerntune_work::Error) -> kerntune_work::Error {
        use kerntune_work::Error::Io;
        match error {
            Io { action, source, .. } => Io { action, path: self.0.join(name), source },
            other => other,
        }
    }

    /// Takes the lock if it is free.
    pub(super) fn lock(&self) -> Result<Option<Lock>> {
        let (_directory, path) = self.within(LOCK)?;
        Ok(Lock::try_take(&path).map_err(|error| self.named(LOCK, error))?)
    }

    /// Returns the process id of the daemon that runs or was killed.
    ///
    /// # Errors
    /// The directory does not belong to this user.
    pub fn process(&self) -> Result<Option<u32>> {
        let Some(directory) = self.open()? else { return Ok(None) };
        let path = format!("/proc/self/fd/{}/{LOCK}", directory.as_raw_fd());
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            return Ok(None);
        }
        Ok(fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()))
    }

    /// Stores the process id of the daemon; `None` if none runs.
    pub(super) fn set_process(&self, process: Option<u32>) -> Result<()> {
        let text = process.map_or(String::new(), |process| format!("{process}\n"));
        let mut file = self.file(LOCK)?;
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(Error::io("write", self.0.join(LOCK)))
    }

    /// Opens and empties the log, which receives the daemon's messages once it has no terminal.
    ///
    /// # Errors
    /// The log cannot be opened, or belongs to another user.
    pub fn log(&self) -> Result<File> {
        let file = self.file(LOG)?;
        file.set_len(0).map_err(Error::io("write", self.0.join(LOG)))?;
        Ok(file)
    }

    /// Returns the path of the socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.0.join(SOCKET)
    }

    /// Returns a path of the socket that fits into a socket address, with the directory that keeps
    /// it valid.
    pub(super) fn short(&self) -> Result<(OwnedFd, PathBuf)> {
        self.within(SOCKET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn place() -> (tempfile::TempDir, DaemonDir) {
        let dir = tempfile::tempdir().unwrap();
        let place = DaemonDir::of(&WorkDir::open(dir.path()).unwrap());
        (dir, place)
    }

    #[test]
    fn links_in_the_directory_lead_nowhere() {
        let (dir, place) = place();
        place.make().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, place.0.join(LOCK)).unwrap();
        symlink(&victim, place.0.join(LOG)).unwrap();
        for error in [
            place.lock().unwrap_err(),
            place.set_process(Some(7)).unwrap_err(),
            place.set_process(None).unwrap_err(),
            place.log().unwrap_err(),
        ] {
            let said = error.to_string();
            let is_named = said.contains(".live/lock: it is a symbolic link")
                || said.contains(".live/log: it is a symbolic link");
            assert!(is_named, "{said}");
        }
        assert_eq!(place.process().unwrap(), None);
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn a_directory_that_is_not_ours_is_refused() {
        let (dir, place) = place();
        assert_eq!(place.process().unwrap(), None);
        let refused = |place: &DaemonDir| {
            let said = place.make().unwrap_err().to_string();
            assert_eq!(place.process().unwrap_err().to_string(), said);
            said
        };
        fs::create_dir(dir.path().join("other")).unwrap();
        symlink(dir.path().join("other"), &place.0).unwrap();
        assert!(refused(&place).contains("is a symbolic link, and not the directory"));
        fs::remove_file(&place.0).unwrap();
        fs::write(&place.0, "").unwrap();
        assert!(place.make().unwrap_err().to_string().contains("Not a directory"));
        fs::remove_file(&place.0).unwrap();
        place.make().unwrap();
        place.set_process(Some(7)).unwrap();
        assert_eq!(place.process().unwrap(), Some(7));
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(refused(&place).contains("can be written to by other users"));
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o700)).unwrap();
        // Only root can give a directory away.
        if std::os::unix::fs::chown(&place.0, Some(4242), None).is_ok() {
            assert!(refused(&place).contains("belongs to user 4242, and kerntune runs as user"));
        }
    }
}
