//! Locks between processes.

use crate::{interrupt, open_own, Error, IoContext, Result};
use rustix::fs::{flock, fstat, FlockOperation};
use rustix::io::{fcntl_getfd, fcntl_setfd, Errno, FdFlags};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Descriptors of this process's own locks. All others of a lock's file are inherited.
static OWN: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<RawFd>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wait after which a message tells the user.
const QUIET: Duration = Duration::from_millis(500);

/// An exclusive lock on a file, held until dropped *and* until every child process started
/// meanwhile has ended: children inherit the descriptor, so a second run never works in a directory
/// in which orphans of a killed run are still writing.
#[derive(Debug)]
pub struct Lock {
    /// The locked file; `None` only while it is dropped.
    file: Option<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closed before another thread can take its number for an inherited descriptor.
        let mut own = own();
        if let Some(file) = self.file.take() {
            own.remove(&file.as_raw_fd());
            drop(file);
        }
    }
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
        Ok(try_lock(&file, path)?.then(|| Self::of(file)))
    }

    fn wait(file: File, path: &Path, waiting: &dyn Fn()) -> Result<Self> {
        let lock = Self::of(file);
        let Some(file) = &lock.file else { return Ok(lock) };
        fcntl_setfd(file, FdFlags::empty()).map_err(std::io::Error::from).at("lock", path)?;
        let began = Instant::now();
        let mut said = false;
        while !try_lock(file, path)? {
            interrupt::check()?;
            close_inherited(file);
            if !said && began.elapsed() > QUIET {
                said = true;
                waiting();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(lock)
    }

    fn of(file: File) -> Self {
        own().insert(file.as_raw_fd());
        Self { file: Some(file) }
    }
}

/// Closes descriptors of the same file that this process inherited. A `kerntune` that another one
/// starts while a thread of that one has the lock would otherwise keep the lock from itself.
#[expect(unsafe_code, reason = "an inherited descriptor has no owner to close it")]
fn close_inherited(file: &File) {
    let own = own();
    let Ok(wanted) = fstat(file) else { return };
    let numbers = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| !own.contains(number)) {
        if is_inherited(number, (wanted.st_dev, wanted.st_ino)) {
            // SAFETY: the descriptor is open, and no value of this process owns it: whatever this
            // process opens is closed on exec, but for locks, whose descriptors are in `OWN`.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

/// Checks whether a descriptor is of the file with this device and inode, and survives an exec.
#[expect(unsafe_code, reason = "numbers of inherited descriptors have no owner to borrow from")]
fn is_inherited(number: RawFd, of: (u64, u64)) -> bool {
    // SAFETY: it is only looked at; one that was closed meanwhile gives an error.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let kept = fcntl_getfd(descriptor).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
    kept && fstat(descriptor).is_ok_and(|found| (found.st_dev, found.st_ino) == of)
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
    use std::os::fd::IntoRawFd;
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
    fn a_lock_that_was_inherited_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        // As a process has it whose parent had the lock when it was started.
        let inherited = open(&path).unwrap();
        assert!(try_lock(&inherited, &path).unwrap());
        fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
        let _ = inherited.into_raw_fd();
        let lock = Lock::take(&path, &|| panic!("it waits for itself")).unwrap();
        // Two locks of one process are no inheritance.
        assert!(Lock::try_take(&path).unwrap().is_none());
        drop(lock);
        assert!(Lock::try_take(&path).unwrap().is_some());
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
