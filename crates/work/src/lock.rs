//! Locks between processes.

use crate::{interrupt, open_own, Error, IoContext, Result};
use rustix::fs::{flock, FlockOperation};
use rustix::io::{fcntl_setfd, Errno, FdFlags};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// Wait after which a message tells the user.
const QUIET: Duration = Duration::from_millis(500);

/// An exclusive lock on a file, held until dropped *and* until every child process started
/// meanwhile has ended: children inherit the descriptor, so a second run never works in a directory
/// in which orphans of a killed run are still writing.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock; an interrupt ends the wait. `waiting` is called once if it takes longer
    /// than a moment.
    ///
    /// # Errors
    /// A file that cannot be opened; a file system without locks; an interrupt.
    pub fn take(path: &Path, waiting: &dyn Fn()) -> Result<Self> {
        Self::wait(open(path)?, path, waiting)
    }

    /// Waits for a lock on a directory, in which no lock file is made: for files that are replaced
    /// by [`write_atomic`](crate::write_atomic) and may be changed by several processes at once.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn of_directory(path: &Path) -> Result<Self> {
        Self::wait(File::open(path).at("open", path)?, path, &|| {})
    }

    /// Returns the lock if it is free.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn try_take(path: &Path) -> Result<Option<Self>> {
        let file = open(path)?;
        Ok(try_lock(&file, path)?.then_some(Self { _file: file }))
    }

    fn wait(file: File, path: &Path, waiting: &dyn Fn()) -> Result<Self> {
        fcntl_setfd(&file, FdFlags::empty()).map_err(std::io::Error::from).at("lock", path)?;
        let began = Instant::now();
        let mut said = false;
        while !try_lock(&file, path)? {
            interrupt::check()?;
            if !said && began.elapsed() > QUIET {
                said = true;
                waiting();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> Result<File> {
    open_own("open lock", path, 0o644)
}

/// Tries to lock without waiting; returns whether it succeeded.
fn try_lock(file: &File, path: &Path) -> Result<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => {
                return Err(Error::Io { action: "lock", path: path.to_owned(), source: error.into() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;

    #[test]
    fn a_second_one_waits_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        let first = Lock::take(&path, &|| panic!("nobody has it")).unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        let held = Cell::new(Some(first));
        let said = Cell::new(0);
        Lock::take(&path, &|| {
            said.set(said.get() + 1);
            held.take();
        })
        .unwrap();
        assert_eq!(said.get(), 1);
    }

    #[test]
    fn an_error_that_is_not_another_holder_is_an_error() {
        // flock(2): a descriptor opened with O_PATH is refused with EBADF, as other file systems
        // refuse with ENOLCK.
        let dir = tempfile::tempdir().unwrap();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::PATH.bits() as i32)
            .open(dir.path())
            .unwrap();
        let error = Lock::wait(file, dir.path(), &|| {}).unwrap_err().to_string();
        assert!(error.starts_with("cannot lock "), "{error}");
    }
}
