//! The work directory: the one place that makes, finds, lists and removes results.

use crate::names::{is_id, PARTIAL};
use crate::seal::{Seal, RESULT_FILE, SUMS_FILE};
use crate::{fault, Error, IoContext, Key, Lock, Result};
use rustix::fs::{
    renameat_with, utimensat, AtFlags, RenameFlags, Timespec, Timestamps, CWD, UTIME_NOW, UTIME_OMIT,
};
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the name of a result that is being deleted begins with.
const REMOVED: &str = ".removed-";

/// Hears what a user should know of the store: who is waited for, what is made again.
pub type Notes = Arc<dyn Fn(&str) + Send + Sync>;

/// A directory of results: `ROOT/<kind>/<id>`.
///
/// A result that is there under its name is whole: it was made under another name, sealed
/// ([`Seal`]) and renamed. Whatever has no seal, such as results of older versions, is not seen.
#[derive(Clone)]
pub struct WorkDir {
    root: PathBuf,
    notes: Option<Notes>,
}

impl fmt::Debug for WorkDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkDir").field("root", &self.root).finish_non_exhaustive()
    }
}

impl WorkDir {
    /// Opens (and makes, if need be) the work directory at `root`.
    ///
    /// # Errors
    /// A directory that cannot be made.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        fs::create_dir_all(root).at("create work directory", root)?;
        let root = root.canonicalize().at("resolve", root)?;
        Ok(Self { root, notes: None })
    }

    /// The work directory at `root`, if there is one. For those who only look.
    pub fn open_existing(root: impl AsRef<Path>) -> Option<Self> {
        let root = root.as_ref().canonicalize().ok().filter(|path| path.is_dir())?;
        Some(Self { root, notes: None })
    }

    /// The same, with someone who hears what a user should know.
    pub fn with_notes(self, notes: Notes) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// The directory itself, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of one kind of result (`kernels`, `profiles` …), made if need be.
    ///
    /// # Errors
    /// A directory that cannot be made.
    pub fn room(&self, kind: &str) -> Result<PathBuf> {
        let path = self.root.join(kind);
        fs::create_dir_all(&path).at("create", &path)?;
        Ok(path)
    }

    /// The names of the kinds that there are, sorted.
    ///
    /// # Errors
    /// A work directory that cannot be listed.
    pub fn kinds(&self) -> Result<Vec<String>> {
        let rooms = self.rooms()?.into_iter();
        Ok(rooms.filter(|name| !name.starts_with('.')).collect())
    }

    /// The kinds, and the directories of what is no result (ccache's), whose names begin with a dot; sorted.
    pub(crate) fn rooms(&self) -> Result<Vec<String>> {
        let mut rooms = Vec::new();
        for entry in fs::read_dir(&self.root).at("list", &self.root)? {
            let entry = entry.at("list", &self.root)?;
            if entry.path().is_dir() {
                rooms.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        rooms.sort();
        Ok(rooms)
    }

    /// Where the result `id` of `kind` is, if it was ever finished. What it says of itself is checked, its files are
    /// not: whoever uses them does that ([`sound`](Self::sound), [`checked`]).
    pub fn find(&self, kind: &str, id: &str) -> Option<PathBuf> {
        let path = is_id(id).then(|| self.root.join(kind).join(id))?;
        let seal = Seal::read(&path).ok()?;
        (seal.kind == kind && seal.id == id).then_some(path)
    }

    /// The result `id` of `kind`, every file of it as it was written. A result that is not is told and taken for
    /// absent: it is made again.
    pub fn sound(&self, kind: &str, id: &str) -> Option<PathBuf> {
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

    /// The finished results of a kind, by name. Unfinished, foreign and damaged entries are left out
    /// ([`damaged`](Self::damaged)).
    ///
    /// # Errors
    /// A directory that cannot be listed.
    pub fn list(&self, kind: &str) -> Result<Vec<PathBuf>> {
        let names = self.names(kind)?;
        Ok(names.iter().filter_map(|name| self.find(kind, name)).collect())
    }

    /// The entries of a kind that look like results and are none, with the reason.
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

    /// The names of the directories of a kind that are neither in the making nor being deleted, sorted.
    fn names(&self, kind: &str) -> Result<Vec<String>> {
        let room = self.root.join(kind);
        let mut found = Vec::new();
        let entries = match fs::read_dir(&room) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
            other => other.at("list", &room)?,
        };
        for entry in entries {
            let entry = entry.at("list", &room)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && !name.starts_with('.') && !name.contains(PARTIAL) {
                found.push(name);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Begins (or takes up again) the making of the result of `kind` that `key` names.
    ///
    /// Waits while another process makes the same result. What an interrupted process left in
    /// the partial directory is still there: the maker decides whether to use it or to clear it.
    ///
    /// # Errors
    /// A directory that cannot be made, an interrupt.
    pub fn stage(&self, kind: &str, key: &Key) -> Result<Staged> {
        self.stage_as(kind, &key.id(), key)
    }

    /// [`stage`](Self::stage) of a result that is named otherwise than by its key.
    ///
    /// # Errors
    /// As [`stage`](Self::stage); an id that is not a plain name.
    pub fn stage_as(&self, kind: &str, id: &str, key: &Key) -> Result<Staged> {
        let lock = self.lock(kind, id)?;
        let room = self.room(kind)?;
        let partial = room.join(format!("{id}{PARTIAL}"));
        if is_of_others(&partial) {
            discard(&partial)?;
        }
        fault::point("stage").at("create", &partial)?;
        fs::create_dir_all(&partial).at("create", &partial)?;
        fault::point("staged").at("create", &partial)?;
        Ok(Staged {
            partial,
            work: self.clone(),
            kind: kind.to_owned(),
            id: id.to_owned(),
            key: key.clone(),
            loose: Vec::new(),
            original: None,
            _lock: lock,
        })
    }

    /// The lock on the making of a result, and on what an unfinished one left.
    fn lock(&self, kind: &str, id: &str) -> Result<Lock> {
        if !is_id(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        let path = self.room(kind)?.join(format!(".{id}.lock"));
        Lock::take(&path, &|| self.note(&format!("waiting for another process, which makes {kind}/{id}")))
    }

    /// Adds a name by which a result goes from now on.
    ///
    /// # Errors
    /// A result that is not there; a file that cannot be written.
    pub fn add_name(&self, kind: &str, id: &str, name: &str) -> Result<()> {
        let room = self.room(kind)?;
        let _lock = Lock::of_directory(&room)?;
        let path = room.join(id);
        Seal::read(&path)?.add_name(&path, name)
    }

    /// Deletes the entry `id` of `kind`, finished or not, sound or not. It is renamed first, so that it is never seen
    /// half there. Returns whether there was one.
    ///
    /// # Errors
    /// An id that is not a plain name; a directory that cannot be renamed or deleted.
    pub fn remove(&self, kind: &str, id: &str) -> Result<bool> {
        let _lock = self.lock(kind, id)?;
        let room = self.room(kind)?;
        let mut any = false;
        for path in [room.join(id), room.join(format!("{id}{PARTIAL}"))] {
            if path.symlink_metadata().is_ok() {
                any = true;
                discard(&path)?;
            }
        }
        Ok(any)
    }

    /// Tells the user something.
    pub fn note(&self, line: &str) {
        if let Some(notes) = &self.notes {
            notes(line);
        }
    }
}

/// The directory of a result wherever it is, with some of its files as they were written; a path that ends with `/`
/// stands for all below it. No names stand for all files, and are a use of the result ([`note_use`]).
///
/// # Errors
/// What [`Seal::read`] and [`Seal::check_files`] say.
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

/// Notes that a result, or a plan, is used now: [`Found::age`](crate::Found::age) begins anew. The note is the time of the file that
/// vouches for it; a store that cannot be written to has none.
pub fn note_use(file: &Path) {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    };
    let _ = utimensat(CWD, file, &times, AtFlags::empty());
}

/// Whether what has the name of a result in the making is none that this user left there: a link, or another user's, in which
/// there may be links to anywhere.
fn is_of_others(partial: &Path) -> bool {
    // Root's files on a server that takes root for nobody.
    const NOBODY: u32 = 65_534;
    let ours = [rustix::process::geteuid().as_raw(), NOBODY];
    partial.symlink_metadata().is_ok_and(|found| !found.is_dir() || !ours.contains(&found.uid()))
}

/// Deletes a directory of the store. It is renamed first: what an interrupted deletion leaves is seen by nobody.
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

/// Whether the name is that of something in the making; the id of the result.
pub(crate) fn partial_of(name: &str) -> Option<&str> {
    name.split_once(PARTIAL).map(|(id, _)| id)
}

/// Whether the name is that of something that is being deleted.
pub(crate) fn is_removed(name: &str) -> bool {
    name.starts_with(REMOVED)
}

/// A result directory in the making. Dropped unpublished, it stays for the next try; an empty one goes.
#[derive(Debug)]
pub struct Staged {
    partial: PathBuf,
    work: WorkDir,
    kind: String,
    id: String,
    key: Key,
    loose: Vec<String>,
    original: Option<PathBuf>,
    _lock: Lock,
}

impl Staged {
    /// The directory to write into.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// The result, if another process finished it while we waited for the lock, and every file of it is as it was
    /// written.
    pub fn already(&self) -> Option<PathBuf> {
        self.work.sound(&self.kind, &self.id)
    }

    /// Empties the directory: nothing of an earlier try is of use.
    ///
    /// # Errors
    /// A directory that cannot be deleted or made.
    pub fn clear(&self) -> Result<()> {
        fs::remove_dir_all(&self.partial).at("clear", &self.partial)?;
        fault::point("cleared").at("clear", &self.partial)?;
        fs::create_dir_all(&self.partial).at("create", &self.partial)
    }

    /// A directory at the top of the result that may change after it is published, and is not sealed.
    pub fn loose(&mut self, name: &str) {
        self.loose.push(name.to_owned());
    }

    /// Another result, whose files this one has as well, by links: they are sealed as that one was, and not read.
    pub fn links_to(&mut self, original: &Path) {
        self.original = Some(original.to_owned());
    }

    /// Seals the directory and gives it its final name, in one step, also where it replaces what had the name. Other
    /// names of the replaced result stay.
    ///
    /// # Errors
    /// What keeps files from being read, written or renamed. The partial directory stays.
    pub fn publish(self) -> Result<PathBuf> {
        let whole = self.work.root.join(&self.kind).join(&self.id);
        let names = Seal::read(&whole).map(|seal| seal.names).unwrap_or_default();
        let original = self.original.as_deref();
        Seal::make(&self.partial, &self.kind, &self.id, &self.key, &self.loose, names, original)?;
        sync_tree(&self.partial)?;
        fault::point("sealed").at("publish", &whole)?;
        put(&self.partial, &whole)?;
        fault::point("published").at("publish", &whole)?;
        sync_directory(whole.parent().unwrap_or(&self.work.root))?;
        if self.partial.is_dir() {
            discard(&self.partial)?;
        }
        Ok(whole)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Fails where there is something in it, which is what is wanted.
        let _ = fs::remove_dir(&self.partial);
    }
}

/// Gives `from` the name `to`; what has that name gets the name `from`.
fn put(from: &Path, to: &Path) -> Result<()> {
    if to.symlink_metadata().is_err() {
        return fs::rename(from, to).at("publish", to);
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // A file system that cannot exchange: killed between the two, the result is absent, and never half there.
        Err(Errno::INVAL | Errno::NOSYS) => {
            discard(to)?;
            fs::rename(from, to).at("publish", to)
        }
        Err(error) => Err(Error::Io { action: "publish", path: to.to_owned(), source: error.into() }),
    }
}

/// Makes the files at the top, which vouch for those below, durable before the rename that declares them whole. What
/// is lost below is found by its hash.
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

/// Whether this file of a result is the store's own.
pub fn is_of_the_store(name: &str) -> bool {
    name == RESULT_FILE || name == SUMS_FILE
}

#[cfg(test)]
#[path = "dir_tests.rs"]
mod tests;
