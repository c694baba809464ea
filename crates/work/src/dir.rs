//! The work directory: creates, finds, lists and removes results.

use crate::names::{is_id, PARTIAL};
use crate::seal::{Seal, RESULT_FILE, SUMS_FILE};
use crate::{fault, Error, IoContext, Key, Lock, Result};
use rustix::fs::{
    renameat_with, utimensat, AtFlags, RenameFlags, Timespec, Timestamps, CWD, UTIME_NOW, UTIME_OMIT,
};
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Prefix of the name of a result that is being deleted.
const REMOVED: &str = ".removed-";

/// Partial directory of a dry run: nothing can be written below a device.
const NOWHERE: &str = "/dev/null/dry-run";

/// Callback for messages to the user, such as waiting for a lock or repeating damaged work.
pub type OnNote = Arc<dyn Fn(&str) + Send + Sync>;

/// A directory of results: `ROOT/<kind>/<id>`.
///
/// A result under its name is complete: it was written under another name, sealed ([`Seal`]) and
/// renamed. Directories without a seal, such as results of older versions, are ignored.
#[derive(Clone)]
pub struct WorkDir {
    root: PathBuf,
    notes: Option<OnNote>,
    /// Set in a dry run: true once a result was to be made.
    dry_run: Option<Arc<AtomicBool>>,
}

impl fmt::Debug for WorkDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkDir").field("root", &self.root).finish_non_exhaustive()
    }
}

impl WorkDir {
    /// Opens the work directory at `root`, which is created if needed.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        fs::create_dir_all(root)
            .at("create work directory", root)
            .map_err(|error| owned_by_another(error, root))?;
        let root = root.canonicalize().at("resolve", root)?;
        Ok(Self { root, notes: None, dry_run: None })
    }

    /// Opens the work directory at `root` for commands that only read: creates nothing. A directory
    /// that does not exist has no results.
    ///
    /// # Errors
    /// A path that is not a directory, or cannot be looked at.
    pub fn open_for_reading(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        let root = match root.metadata() {
            Ok(found) if found.is_dir() => root.canonicalize(),
            Ok(_) => Err(Errno::NOTDIR.into()),
            Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(root),
            Err(error) => Err(error),
        }
        .at("open work directory", root)?;
        Ok(Self { root, notes: None, dry_run: None })
    }

    /// Opens the work directory at `root` for a dry run: results are found, and none is made.
    /// [`stage`](Self::stage) returns a result that is there, and otherwise [`Error::DryRun`].
    ///
    /// # Errors
    /// As [`open_for_reading`](Self::open_for_reading).
    pub fn open_for_dry_run(root: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { dry_run: Some(Arc::default()), ..Self::open_for_reading(root)? })
    }

    /// Returns true if nothing may be made here.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.is_some()
    }

    /// Returns whether a result was to be made since the last call, in a dry run.
    pub fn take_missing(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|missing| missing.swap(false, Ordering::Relaxed))
    }

    /// Notes that a result is missing in a dry run, and returns the error that ends the work on it.
    fn missing(&self, kind: &str, id: &str) -> Error {
        if let Some(missing) = &self.dry_run {
            missing.store(true, Ordering::Relaxed);
        }
        Error::DryRun { what: format!("{kind}/{id}") }
    }

    /// Sets the receiver of messages to the user.
    pub fn with_notes(self, notes: OnNote) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// Returns the directory as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of one kind of result (`kernels`, `profiles` …), which is created if
    /// needed, but not in a dry run.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn kind_dir(&self, kind: &str) -> Result<PathBuf> {
        let path = self.root.join(kind);
        if !self.is_dry_run() {
            let made = fs::create_dir_all(&path).at("create", &path);
            made.map_err(|error| owned_by_another(error, &self.root))?;
        }
        Ok(path)
    }

    /// Lists the kinds of results, sorted.
    ///
    /// # Errors
    /// A work directory that cannot be listed.
    pub fn kinds(&self) -> Result<Vec<String>> {
        let kind_dirs = self.kind_dirs()?.into_iter();
        Ok(kind_dirs.filter(|name| !name.starts_with('.')).collect())
    }

    /// Lists the kinds and other directories, such as ccache's, whose names begin with a dot;
    /// sorted.
    pub(crate) fn kind_dirs(&self) -> Result<Vec<String>> {
        let mut kind_dirs = Vec::new();
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(kind_dirs),
            other => other.at("list", &self.root)?,
        };
        for entry in entries {
            let entry = entry.at("list", &self.root)?;
            if entry.path().is_dir() {
                kind_dirs.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        kind_dirs.sort();
        Ok(kind_dirs)
    }

    /// Returns the directory of the result `id` of `kind`, if it was ever finished. The seal is
    /// checked; the files are not, which is left to their users
    /// ([`find_verified`](Self::find_verified), [`checked`]).
    pub fn find(&self, kind: &str, id: &str) -> Option<PathBuf> {
        let path = is_id(id).then(|| self.root.join(kind).join(id))?;
        let seal = Seal::read(&path).ok()?;
        (seal.kind == kind && seal.id == id).then_some(path)
    }

    /// Returns the result `id` of `kind` if every file is unchanged. A damaged result is reported
    /// and counts as missing, so it is made again.
    pub fn find_verified(&self, kind: &str, id: &str) -> Option<PathBuf> {
        let path = self.find(kind, id)?;
        match Seal::read(&path).and_then(|seal| seal.check(&path)) {
            Ok(()) => {
                note_use(&path.join(RESULT_FILE));
                Some(path)
            }
            Err(error) => {
                self.note(&format!("{error}: it is made again"));
                None
            }
        }
    }

    /// Lists the finished results of a kind, by name. Unfinished, foreign and damaged entries are
    /// left out ([`damaged`](Self::damaged)).
    ///
    /// # Errors
    /// A directory that cannot be listed.
    pub fn list(&self, kind: &str) -> Result<Vec<PathBuf>> {
        let names = self.names(kind)?;
        Ok(names.iter().filter_map(|name| self.find(kind, name)).collect())
    }

    /// Lists the entries of a kind that look like results and are not, with the reason.
    ///
    /// # Errors
    /// A directory that cannot be listed.
    pub fn damaged(&self, kind: &str) -> Result<Vec<(PathBuf, Error)>> {
        let mut found = Vec::new();
        for name in self.names(kind)? {
            let path = self.root.join(kind).join(&name);
            match Seal::read(&path) {
                Err(error) => found.push((path, error)),
                Ok(seal) if seal.kind != kind || seal.id != name => {
                    let what = format!("it is the result {} of {}", seal.id, seal.kind);
                    found.push((path.clone(), Error::Changed { dir: path, what }));
                }
                Ok(_) => {}
            }
        }
        Ok(found)
    }

    /// Lists the directories of a kind that are neither being made nor being deleted, sorted.
    fn names(&self, kind: &str) -> Result<Vec<String>> {
        let kind_dir = self.root.join(kind);
        let mut found = Vec::new();
        let entries = match fs::read_dir(&kind_dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
            other => other.at("list", &kind_dir)?,
        };
        for entry in entries {
            let entry = entry.at("list", &kind_dir)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && !name.starts_with('.') && !name.contains(PARTIAL) {
                found.push(name);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Starts or resumes the result of `kind` that `key` names.
    ///
    /// Waits while another process makes the same result. Files that an interrupted process left in
    /// the partial directory are still there: the caller uses or clears them.
    ///
    /// # Errors
    /// A directory that cannot be created; an interrupt.
    pub fn stage(&self, kind: &str, key: &Key) -> Result<StagedResult> {
        self.stage_as(kind, &key.id(), key)
    }

    /// Starts or resumes a result that is not named by its key; otherwise as
    /// [`stage`](Self::stage).
    ///
    /// # Errors
    /// As [`stage`](Self::stage); an id that is not a plain name.
    pub fn stage_as(&self, kind: &str, id: &str, key: &Key) -> Result<StagedResult> {
        let (partial, lock) = match self.is_dry_run() {
            true if self.find_verified(kind, id).is_none() => return Err(self.missing(kind, id)),
            true => (NOWHERE.into(), None),
            false => {
                let lock = self.lock(kind, id)?;
                let partial = self.kind_dir(kind)?.join(format!("{id}{PARTIAL}"));
                if is_foreign(&partial) {
                    discard(&partial)?;
                }
                fault::point("stage").at("create", &partial)?;
                fs::create_dir_all(&partial).at("create", &partial)?;
                fault::point("staged").at("create", &partial)?;
                (partial, Some(lock))
            }
        };
        Ok(StagedResult {
            partial,
            work: self.clone(),
            kind: kind.to_owned(),
            id: id.to_owned(),
            key: key.clone(),
            loose: Vec::new(),
            original: None,
            lock,
        })
    }

    /// Locks a result and its partial directory.
    fn lock(&self, kind: &str, id: &str) -> Result<Lock> {
        if !is_id(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        let path = self.kind_dir(kind)?.join(format!(".{id}.lock"));
        Lock::take(&path, &|| self.note(&format!("waiting for another process, which makes {kind}/{id}")))
            .map_err(|error| owned_by_another(error, &self.root))
    }

    /// Adds a name to a result, but not in a dry run.
    ///
    /// # Errors
    /// A result that does not exist; a file that cannot be written.
    pub fn add_name(&self, kind: &str, id: &str, name: &str) -> Result<()> {
        if self.is_dry_run() {
            return Ok(());
        }
        let kind_dir = self.kind_dir(kind)?;
        let _lock = Lock::of_directory(&kind_dir)?;
        let path = kind_dir.join(id);
        Seal::read(&path)?.add_name(&path, name)
    }

    /// Deletes the entry `id` of `kind`, finished or not, damaged or not. It is renamed first, so
    /// that it is never seen incomplete. Returns whether it existed.
    ///
    /// # Errors
    /// An id that is not a plain name; a directory that cannot be renamed or deleted.
    pub fn remove(&self, kind: &str, id: &str) -> Result<bool> {
        let _lock = self.lock(kind, id)?;
        let kind_dir = self.kind_dir(kind)?;
        let mut any = false;
        for path in [kind_dir.join(id), kind_dir.join(format!("{id}{PARTIAL}"))] {
            if path.symlink_metadata().is_ok() {
                any = true;
                discard(&path)?;
            }
        }
        Ok(any)
    }

    /// Sends a message to the user.
    pub fn note(&self, line: &str) {
        if let Some(notes) = &self.notes {
            notes(line);
        }
    }
}

/// Reads the seal of the result in `dir` and checks some of its files; a path that ends with `/`
/// means everything below it. An empty list means all files, and counts as a use of the result
/// ([`note_use`]).
///
/// # Errors
/// Those of [`Seal::read`] and [`Seal::check_files`].
pub fn checked(dir: &Path, files: &[&str]) -> Result<Seal> {
    let seal = Seal::read(dir)?;
    match files {
        [] => {
            seal.check(dir)?;
            note_use(&dir.join(RESULT_FILE));
        }
        files => seal.check_files(dir, files)?,
    }
    Ok(seal)
}

/// Records that a result, or a plan, is used now, which resets
/// [`StoreEntry::age`](crate::StoreEntry::age). The record is the modification time of the file
/// with the hashes; a read-only store has none.
pub fn note_use(file: &Path) {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    };
    let _ = utimensat(CWD, file, &times, AtFlags::empty());
}

/// Names the owner of the work directory `root` in an error of permission, if it is another user.
fn owned_by_another(error: Error, root: &Path) -> Error {
    let Error::Io { source, .. } = &error else { return error };
    let existing = root.ancestors().find_map(|path| Some((path, path.metadata().ok()?.uid())));
    match existing {
        Some((path, owner))
            if source.kind() == ErrorKind::PermissionDenied
                && owner != rustix::process::geteuid().as_raw() =>
        {
            Error::OthersWorkDir { path: path.to_owned(), owner: user_name(owner) }
        }
        _ => error,
    }
}

/// Returns the name of a user in `/etc/passwd`, otherwise its number.
fn user_name(id: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("user {id}"))
}

/// Returns whether a partial directory was not left by this user: a link, or a directory of another
/// user, which may contain links to anywhere.
fn is_foreign(partial: &Path) -> bool {
    // Owner of root's files on a file server that maps root to nobody.
    const NOBODY: u32 = 65_534;
    let ours = [rustix::process::geteuid().as_raw(), NOBODY];
    partial.symlink_metadata().is_ok_and(|found| !found.is_dir() || !ours.contains(&found.uid()))
}

/// Deletes a directory of the store. It is renamed first, so an interrupted deletion leaves nothing
/// that looks like a result.
pub(crate) fn discard(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut aside = path.to_owned();
    for number in 0.. {
        aside = path.with_file_name(format!("{REMOVED}{name}.{}-{number}", std::process::id()));
        if aside.symlink_metadata().is_err() {
            break;
        }
    }
    fault::point("remove").at("remove", path)?;
    fs::rename(path, &aside).at("remove", path)?;
    fault::point("removed").at("remove", path)?;
    let gone = if aside.is_dir() { fs::remove_dir_all(&aside) } else { fs::remove_file(&aside) };
    gone.at("remove", &aside)
}

/// Returns the id of the result if the name is that of a partial directory.
pub(crate) fn partial_of(name: &str) -> Option<&str> {
    name.split_once(PARTIAL).map(|(id, _)| id)
}

/// Returns whether the name is that of a result that is being deleted.
pub(crate) fn is_removed(name: &str) -> bool {
    name.starts_with(REMOVED)
}

/// A result directory that is being made. If dropped unpublished it stays for the next attempt,
/// unless it is empty.
#[derive(Debug)]
pub struct StagedResult {
    partial: PathBuf,
    work: WorkDir,
    kind: String,
    id: String,
    key: Key,
    loose: Vec<String>,
    original: Option<PathBuf>,
    /// Held until the end; `None` in a dry run.
    lock: Option<Lock>,
}

impl StagedResult {
    /// Returns the directory to write into; in a dry run, a path at which nothing can be written.
    pub fn path(&self) -> &Path {
        if self.lock.is_none() {
            self.work.missing(&self.kind, &self.id);
        }
        &self.partial
    }

    /// Returns the result if another process finished it while this one waited for the lock, and
    /// every file is unchanged.
    pub fn already(&self) -> Option<PathBuf> {
        self.work.find_verified(&self.kind, &self.id)
    }

    /// Empties the directory, if files of an earlier attempt are useless.
    ///
    /// # Errors
    /// A directory that cannot be deleted or created; [`Error::DryRun`] in a dry run, in which the
    /// caller would now make the result again.
    pub fn clear(&self) -> Result<()> {
        if self.lock.is_none() {
            return Err(self.work.missing(&self.kind, &self.id));
        }
        fs::remove_dir_all(&self.partial).at("clear", &self.partial)?;
        fault::point("cleared").at("clear", &self.partial)?;
        fs::create_dir_all(&self.partial).at("create", &self.partial)
    }

    /// Marks a top-level directory of the result that is not sealed and may change after
    /// publication.
    pub fn loose(&mut self, name: &str) {
        self.loose.push(name.to_owned());
    }

    /// Names another result whose files this one shares by hard links. These files are sealed with
    /// its hashes and not read again.
    pub fn links_to(&mut self, original: &Path) {
        self.original = Some(original.to_owned());
    }

    /// Seals the directory and renames it to its final name in one step, also if it replaces a
    /// result. Other names of a replaced result are kept.
    ///
    /// # Errors
    /// Files that cannot be read, written or renamed. The partial directory stays.
    pub fn publish(self) -> Result<PathBuf> {
        let whole = self.work.root.join(&self.kind).join(&self.id);
        let names = Seal::read(&whole).map(|seal| seal.names).unwrap_or_default();
        let original = self.original.as_deref();
        Seal::make(&self.partial, &self.kind, &self.id, &self.key, &self.loose, names, original)?;
        sync_tree(&self.partial)?;
        fault::point("sealed").at("publish", &whole)?;
        rename_or_exchange(&self.partial, &whole)?;
        fault::point("published").at("publish", &whole)?;
        sync_directory(whole.parent().unwrap_or(&self.work.root))?;
        if self.partial.is_dir() {
            discard(&self.partial)?;
        }
        Ok(whole)
    }
}

impl Drop for StagedResult {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // Fails if the directory has files, which then stay.
            let _ = fs::remove_dir(&self.partial);
        }
    }
}

/// Renames `from` to `to`. If `to` exists, the two are exchanged.
fn rename_or_exchange(from: &Path, to: &Path) -> Result<()> {
    if to.symlink_metadata().is_err() {
        return fs::rename(from, to).at("publish", to);
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // The file system cannot exchange: after a kill between the two steps the result is absent,
        // never incomplete.
        Err(Errno::INVAL | Errno::NOSYS) => {
            discard(to)?;
            fs::rename(from, to).at("publish", to)
        }
        Err(error) => Err(Error::Io { action: "publish", path: to.to_owned(), source: error.into() }),
    }
}

/// Makes the top-level files durable before the rename that completes the result. They have the
/// hashes of all other files, so losses below are detected.
fn sync_tree(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).at("list", dir)? {
        let path = entry.at("list", dir)?.path();
        if path.is_file() {
            File::open(&path).and_then(|f| f.sync_data()).at("sync", &path)?;
        }
    }
    sync_directory(dir)
}

fn sync_directory(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|f| f.sync_all()).at("sync", dir)
}

/// Returns whether this file of a result belongs to the store.
pub fn is_store_file(name: &str) -> bool {
    name == RESULT_FILE || name == SUMS_FILE
}

#[cfg(test)]
#[path = "dir_tests.rs"]
mod tests;
