//! The work directory, staged result directories, locks and atomic files.

use crate::{Error, IoContext, Result};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A directory of content-addressed results: `ROOT/<kind>/<id>`.
///
/// A result that is there under its name is whole: it was made under another name and renamed.
#[derive(Debug, Clone)]
pub struct WorkDir {
    root: PathBuf,
}

impl WorkDir {
    /// Opens (and makes, if need be) the work directory at `root`.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        fs::create_dir_all(root).at("create work directory", root)?;
        let root = root.canonicalize().at("resolve", root)?;
        Ok(Self { root })
    }

    /// The work directory at `root`, if there is one. For those who only look.
    pub fn open_existing(root: impl AsRef<Path>) -> Option<Self> {
        let root = root.as_ref().canonicalize().ok().filter(|path| path.is_dir())?;
        Some(Self { root })
    }

    /// The directory itself, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of one kind of result (`kernels`, `profiles` …), made if need be.
    pub fn room(&self, kind: &str) -> Result<PathBuf> {
        let path = self.root.join(kind);
        fs::create_dir_all(&path).at("create", &path)?;
        Ok(path)
    }

    /// Where the result `id` of `kind` is, if it was ever finished.
    pub fn find(&self, kind: &str, id: &str) -> Option<PathBuf> {
        let path = self.root.join(kind).join(id);
        path.is_dir().then_some(path)
    }

    /// The finished results of a kind, by name. Unfinished and foreign entries are left out.
    pub fn list(&self, kind: &str) -> Result<Vec<PathBuf>> {
        let room = self.room(kind)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&room).at("list", &room)? {
            let path = entry.at("list", &room)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.contains(".partial") {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Begins (or takes up again) the making of result `id` of `kind`.
    ///
    /// Waits while another process makes the same result. What an interrupted process left in
    /// the partial directory is still there: the maker decides whether to use it or to clear it.
    pub fn stage(&self, kind: &str, id: &str) -> Result<Staged> {
        let room = self.room(kind)?;
        let partial = room.join(format!("{id}.partial"));
        let lock = Lock::take(&room.join(format!(".{id}.lock")))?;
        fs::create_dir_all(&partial).at("create", &partial)?;
        Ok(Staged { partial, whole: room.join(id), _lock: lock })
    }
}

/// A result directory in the making. Dropped unpublished, it stays for the next try.
#[derive(Debug)]
pub struct Staged {
    partial: PathBuf,
    whole: PathBuf,
    _lock: Lock,
}

impl Staged {
    /// The directory to write into.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// The result, if another process finished it while we waited for the lock.
    pub fn already(&self) -> Option<&Path> {
        self.whole.is_dir().then_some(self.whole.as_path())
    }

    /// Empties the directory: nothing of an earlier try is of use.
    pub fn clear(&self) -> Result<()> {
        fs::remove_dir_all(&self.partial).at("clear", &self.partial)?;
        fs::create_dir_all(&self.partial).at("create", &self.partial)
    }

    /// Gives the directory its final name, replacing what had it.
    pub fn publish(self) -> Result<PathBuf> {
        sync_tree(&self.partial)?;
        if self.whole.is_dir() {
            fs::remove_dir_all(&self.whole).at("replace", &self.whole)?;
        }
        fs::rename(&self.partial, &self.whole).at("publish", &self.whole)?;
        Ok(self.whole)
    }
}

/// Makes file contents durable before the rename that declares them whole. One level is enough
/// for the small files we vouch for; bulk below (kernel objects) can be rebuilt.
fn sync_tree(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).at("list", dir)? {
        let path = entry.at("list", dir)?.path();
        if path.is_file() {
            File::open(&path).and_then(|f| f.sync_data()).at("sync", &path)?;
        }
    }
    Ok(())
}

/// An exclusive lock on a file, kept until dropped *and* until every child process that was
/// started meanwhile has ended: children inherit the descriptor, so that a second run never
/// works in a directory in which orphans of a killed run are still writing.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock; an interrupt ends the wait.
    pub fn take(path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o644)
            .open(path)
            .at("open lock", path)?;
        Self::wait(file)
    }

    /// The same of a directory, which nothing is put into: for files that are replaced by [`write_atomic`] and may be changed by
    /// several at once.
    pub fn of_directory(path: &Path) -> Result<Self> {
        Self::wait(File::open(path).at("open", path)?)
    }

    fn wait(file: File) -> Result<Self> {
        let fd = file.as_raw_fd();
        // SAFETY: plain fcntl/flock on a descriptor that we own and that is open.
        unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
        loop {
            // SAFETY: as above.
            if unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(Self { _file: file });
            }
            crate::interrupt::check()?;
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

/// Writes a file aside and renames it, so that a reader sees the old or the new, never a part.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = dir.join(format!(".{name}.{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&aside)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&aside, path)
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&aside);
        Error::Io { action: "write", path: path.to_owned(), source }
    })
}

/// [`write_atomic`] of a value as indented JSON with a final newline.
pub fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|source| Error::Json { path: path.to_owned(), source })?;
    text.push(b'\n');
    write_atomic(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_result_is_not_listed_and_survives_for_the_next_try() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let staged = work.stage("kernels", "abc").unwrap();
        fs::write(staged.path().join("half"), "x").unwrap();
        drop(staged);
        assert!(work.list("kernels").unwrap().is_empty());
        assert!(work.find("kernels", "abc").is_none());
        let again = work.stage("kernels", "abc").unwrap();
        assert!(again.path().join("half").exists());
        again.publish().unwrap();
        assert_eq!(work.list("kernels").unwrap().len(), 1);
    }

    #[test]
    fn atomic_write_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
