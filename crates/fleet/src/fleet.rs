//! The prefix: profiles are put there whole, and listed.

use crate::place::{self, Filter, Key, Place};
use crate::{summary, Error, Result};
use kerntune_profile::{load_manifest, Manifest, Profile, MANIFEST_FILE, ROOM};
use kerntune_work::{checked, seal, write_atomic, Hash, IoContext, Lock};
use rustix::fs::{renameat_with, RenameFlags, CWD};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where tables of equal content have their one file.
const CONTENT: &str = ".content";
/// Where profiles are made before they get their names.
const PARTIAL: &str = ".partial";
/// The innermost level: one directory for each profile.
const PROFILE: &str = "profile";

/// Profiles below a prefix.
#[derive(Debug, Clone)]
pub struct Fleet {
    root: PathBuf,
}

/// A profile of a fleet. Its files are checked when they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it lies.
    pub place: Place,
    /// Its id.
    pub id: String,
    /// Its directory.
    pub path: PathBuf,
}

/// What became of a profile that was to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Its place.
    pub entry: Entry,
    /// Whether it was not there before.
    pub is_new: bool,
}

impl Fleet {
    /// The fleet below `root`, which is made if need be.
    ///
    /// # Errors
    /// A directory that cannot be made.
    pub fn open(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).at("create", root)?;
        Ok(Self { root: root.canonicalize().at("resolve", root)? })
    }

    /// The fleet below `root`, for those who only look.
    ///
    /// # Errors
    /// [`Error::NoFleet`] if there is no such directory.
    pub fn existing(root: &Path) -> Result<Self> {
        let found = root.canonicalize().ok().filter(|root| root.is_dir());
        found.map(|root| Self { root }).ok_or_else(|| Error::NoFleet { path: root.to_owned() })
    }

    /// The prefix, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Puts a copy of the profile in `dir` below the prefix, as one of the machine `host`. Every table is read and checked
    /// first. A profile that is there already, and whole, is left as it is; one that was damaged is replaced.
    ///
    /// # Errors
    /// A profile that is damaged; another one of the same id; what keeps files from being written.
    pub fn add(&self, dir: &Path, host: &str) -> Result<Added> {
        let manifest = Profile::load(dir)?.manifest;
        let host = if host.is_empty() { "unknown" } else { host };
        let date = manifest.recorded.get(..10).unwrap_or("1970-01-01");
        place::check_date(date)?;
        let workload = if manifest.workload.is_empty() { "unknown" } else { &manifest.workload };
        let place = Place::new(&manifest.kernel.id, date, host, workload);
        let mut path = self.root.clone();
        path.extend(place.directories());
        path.push(place::directory(PROFILE, &manifest.id));
        let entry = Entry { place, id: manifest.id.clone(), path };
        if entry.path.symlink_metadata().is_ok() && Profile::load(&entry.path).is_ok() {
            return self.already(entry, &manifest);
        }
        let partial = Partial::new(&self.root.join(PARTIAL), &manifest.id)?;
        self.fill(&partial.path, dir, &manifest)?;
        let parent = entry.path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).at("create", parent)?;
        let is_new = put(&partial.path, &entry.path)?;
        if !is_new {
            return self.already(entry, &manifest);
        }
        Ok(Added { entry, is_new })
    }

    /// What was added is there: the same, or another one.
    fn already(&self, entry: Entry, manifest: &Manifest) -> Result<Added> {
        match load_manifest(&entry.path)? == *manifest {
            true => Ok(Added { entry, is_new: false }),
            false => Err(Error::Another { path: entry.path }),
        }
    }

    /// The files of a profile: tables first, the seal last.
    fn fill(&self, partial: &Path, from: &Path, manifest: &Manifest) -> Result<()> {
        for (table, file) in &manifest.tables {
            let name = format!("{table}.parquet");
            self.put_table(&from.join(&name), &file.blake3, &partial.join(&name))?;
        }
        let path = from.join(MANIFEST_FILE);
        let text = fs::read(&path).at("read", &path)?;
        write_atomic(&partial.join(MANIFEST_FILE), &text)?;
        let path = partial.join(summary::FILE);
        write_atomic(&path, &summary::encode(manifest, &path)?)?;
        Ok(seal(partial, ROOM, &manifest.id, &[])?)
    }

    /// The table under the name `to`: a second name of a file of the same content, where the file system has such.
    fn put_table(&self, from: &Path, hash: &Hash, to: &Path) -> Result<()> {
        let room = self.root.join(CONTENT).join(&hash[..2]);
        let kept = room.join(format!("{hash}.parquet"));
        let bytes = fs::read(from).at("read", from)?;
        if Hash::of(&bytes) != *hash {
            let what = "it changed while it was added".into();
            return Err(kerntune_profile::Error::Damaged { path: from.to_owned(), what }.into());
        }
        let is_kept = || fs::read(&kept).is_ok_and(|there| there == bytes);
        if !is_kept() {
            fs::create_dir_all(&room).at("create", &room)?;
            // Replaced, if it was damaged: other names keep what they have, and are refused when they are read.
            // Written in the partial directory, where nothing stays of a process that is killed.
            let aside = to.with_extension("content");
            write_atomic(&aside, &bytes)?;
            fs::rename(&aside, &kept).at("keep", &kept)?;
        }
        match fs::hard_link(&kept, to) {
            Ok(()) => Ok(()),
            // No such links there, or too many of this file.
            Err(_) => Ok(write_atomic(to, &bytes)?),
        }
    }

    /// The profiles that are meant, in the order of their places and ids.
    ///
    /// # Errors
    /// A directory that cannot be listed, or does not belong there.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>> {
        filter.check()?;
        let mut found = Vec::new();
        self.descend(filter, &mut Vec::new(), &self.root, &mut found)?;
        // As values sort, which directories need not: `%20` is after `-`, and a blank before it.
        found.sort_by(|a, b| (&a.place, &a.id).cmp(&(&b.place, &b.id)));
        Ok(found)
    }

    /// Reads every profile, and every table that is kept by its hash: how many profiles there are, and what is wrong, by file.
    ///
    /// # Errors
    /// A directory that cannot be listed, or does not belong there.
    pub fn audit(&self) -> Result<(usize, Vec<(PathBuf, String)>)> {
        let entries = self.list(&Filter::default())?;
        let mut found = Vec::new();
        for entry in &entries {
            kerntune_work::interrupt::check()?;
            let whole = entry.load().map_err(|error| error.to_string());
            let whole = whole.and_then(|_| checked(&entry.path, &[]).map_err(|error| error.to_string()));
            found.extend(whole.err().map(|what| (entry.path.clone(), what)));
        }
        let content = self.root.join(CONTENT);
        for room in listed(&content)? {
            for path in listed(&room)? {
                let named = path.file_stem().and_then(|name| name.to_str()?.parse::<Hash>().ok());
                let is_so =
                    named.is_some_and(|hash| fs::read(&path).is_ok_and(|bytes| Hash::of(&bytes) == hash));
                if !is_so {
                    found.push((path, "it is not the table that its name says".to_owned()));
                }
            }
        }
        Ok((entries.len(), found))
    }

    fn descend(
        &self,
        filter: &Filter,
        above: &mut Vec<String>,
        directory: &Path,
        found: &mut Vec<Entry>,
    ) -> Result<()> {
        let level = Key::ALL.get(above.len()).copied();
        let expected = level.map_or(PROFILE, Key::name);
        for entry in fs::read_dir(directory).at("list", directory)? {
            let path = entry.at("list", directory)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || !path.is_dir() {
                continue;
            }
            let Some(value) = place::value(&name, expected) else {
                return Err(Error::Stray { path: path.clone(), expected });
            };
            match level {
                Some(key) if filter.takes(key, &value) => {
                    above.push(value);
                    self.descend(filter, above, &path, found)?;
                    above.pop();
                }
                Some(_) => {}
                None => {
                    let values = [0, 1, 2, 3].map(|at| above.get(at).cloned().unwrap_or_default());
                    found.push(Entry { place: Place::of_values(values), id: value, path });
                }
            }
        }
        Ok(())
    }
}

impl Entry {
    /// What it says of itself.
    ///
    /// # Errors
    /// A manifest that is damaged, or of a profile that belongs elsewhere.
    pub fn manifest(&self) -> Result<Manifest> {
        self.belongs(load_manifest(&self.path)?)
    }

    /// All of it.
    ///
    /// # Errors
    /// A file that is damaged, by its name.
    pub fn load(&self) -> Result<Profile> {
        let profile = Profile::load(&self.path)?;
        Ok(Profile { manifest: self.belongs(profile.manifest)?, tables: profile.tables })
    }

    /// A directory that was renamed is another kernel's figures under this one's name.
    fn belongs(&self, manifest: Manifest) -> Result<Manifest> {
        let workload = if manifest.workload.is_empty() { "unknown" } else { &manifest.workload };
        let date = manifest.recorded.get(..10).unwrap_or_default();
        let says = [
            (PROFILE, manifest.id.as_str()),
            (Key::BuildId.name(), manifest.kernel.id.as_str()),
            (Key::Date.name(), date),
            (Key::Workload.name(), workload),
        ];
        let names: Vec<String> = self.path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        for (key, value) in says {
            if !names.contains(&place::directory(key, value)) {
                let what = format!("{key} {value}");
                return Err(Error::Misplaced { path: self.path.clone(), what });
            }
        }
        Ok(manifest)
    }
}

/// What is in a directory; nothing if there is no such directory.
fn listed(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(Vec::new())
        }
        entries => entries.at("list", directory)?,
    };
    entries.map(|entry| Ok(entry.at("list", directory)?.path())).collect()
}

/// A directory to make a profile in, gone with this value. Its lock says that somebody works there; what nobody works in was left by a
/// process that was killed.
struct Partial {
    path: PathBuf,
    _lock: Lock,
}

impl Partial {
    fn new(room: &Path, id: &str) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(room).at("create", room)?;
        sweep(room)?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(
            "{}.{}-{}-{number}",
            place::directory(PROFILE, id),
            place::directory("host", &host),
            std::process::id()
        );
        let lock =
            Lock::try_take(&lock_of(room, &name))?.ok_or_else(|| Error::Busy { path: room.join(&name) })?;
        let path = room.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).at("remove", &path)?;
        }
        fs::create_dir(&path).at("create", &path)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // The next one that is added removes what is left.
        let _ = fs::remove_dir_all(&self.path);
        if let (Some(room), Some(name)) = (self.path.parent(), self.path.file_name()) {
            let _ = fs::remove_file(lock_of(room, &name.to_string_lossy()));
        }
    }
}

fn lock_of(room: &Path, name: &str) -> PathBuf {
    room.join(format!(".{name}.lock"))
}

/// Removes what killed processes left in `.partial`. Only what has the name and the lock of a profile in the making is looked at.
fn sweep(room: &Path) -> Result<()> {
    for entry in fs::read_dir(room).at("list", room)? {
        let path = entry.at("list", room)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A process may be killed before it has made the directory.
        let of_lock = name.strip_prefix('.').and_then(|name| name.strip_suffix(".lock"));
        let name = of_lock.unwrap_or(&name);
        let path = room.join(name);
        let is_link = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if is_link || !name.starts_with(PROFILE) {
            continue;
        }
        let lock = lock_of(room, name);
        let Some(_held) = Lock::try_take(&lock)? else { continue };
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).at("remove", &path)?,
            _ => {}
        }
        let _ = fs::remove_file(&lock);
    }
    Ok(())
}

/// Gives `from` the name `to`. False if somebody else was faster with a whole one; one that is damaged is replaced.
fn put(from: &Path, to: &Path) -> Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(true),
        Err(error) => {
            let error = std::io::Error::from(error);
            match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => {}
                // A file system that does not know the flag: a directory never replaces one with files in it.
                ErrorKind::InvalidInput | ErrorKind::Unsupported if fs::rename(from, to).is_ok() => {
                    return Ok(true)
                }
                _ => return Err(error).at("publish", to).map_err(Error::from),
            }
        }
    }
    let whole = Profile::load(to).is_ok();
    if !whole {
        let exchanged = renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE);
        exchanged.map_err(std::io::Error::from).at("replace", to)?;
    }
    fs::remove_dir_all(from).at("remove", from)?;
    Ok(!whole)
}
