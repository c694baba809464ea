//! Profiles below a prefix: adding, listing and auditing.

use crate::location::{self, PartitionKey, ProfileFilter, ProfileLocation};
use crate::{summary, Error, Result};
use kerntune_profile::{load_manifest, Manifest, Profile, KIND, MANIFEST_FILE};
use kerntune_work::{checked, seal, write_atomic, Hash, IoContext, Lock};
use rustix::fs::{renameat_with, RenameFlags, CWD};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Directory of tables by content; tables of equal content are one file.
const CONTENT: &str = ".content";
/// Directory in which profiles are written before they get their names.
const PARTIAL: &str = ".partial";
/// Innermost level: one directory for each profile.
const PROFILE: &str = "profile";

/// Profiles of many machines below a prefix.
#[derive(Debug, Clone)]
pub struct Fleet {
    root: PathBuf,
}

/// A profile of a fleet. Its files are checked when they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetEntry {
    /// Kernel, day, machine and workload of the profile.
    pub location: ProfileLocation,
    /// Id of the profile.
    pub id: String,
    /// Directory of the profile.
    pub path: PathBuf,
}

/// Result of adding a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddOutcome {
    /// The profile in the fleet.
    pub entry: FleetEntry,
    /// True if the profile was added; false if it existed.
    pub is_new: bool,
}

impl Fleet {
    /// Opens the fleet below `root`, which is created if needed.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn open(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).at("create", root)?;
        Ok(Self { root: root.canonicalize().at("resolve", root)? })
    }

    /// Opens the fleet below `root` for reading.
    ///
    /// # Errors
    /// [`Error::NoFleet`] if there is no such directory.
    pub fn existing(root: &Path) -> Result<Self> {
        let found = root.canonicalize().ok().filter(|root| root.is_dir());
        found.map(|root| Self { root }).ok_or_else(|| Error::NoFleet { path: root.to_owned() })
    }

    /// Returns the prefix as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Copies the profile in `dir` below the prefix, as a profile of the machine `host`. Every
    /// table is read and checked first. An intact copy is left as it is; a damaged one is replaced.
    ///
    /// # Errors
    /// A damaged profile; another profile with the same id; files that cannot be written.
    pub fn add(&self, dir: &Path, host: &str) -> Result<AddOutcome> {
        let manifest = Profile::load(dir)?.manifest;
        let host = if host.is_empty() { "unknown" } else { host };
        let date = manifest.recorded.get(..10).unwrap_or("1970-01-01");
        location::check_date(date)?;
        let workload = if manifest.workload.is_empty() { "unknown" } else { &manifest.workload };
        let location = ProfileLocation::new(&manifest.kernel.id, date, host, workload);
        let mut path = self.root.clone();
        path.extend(location.directories());
        path.push(location::directory(PROFILE, &manifest.id));
        let entry = FleetEntry { location, id: manifest.id.clone(), path };
        if entry.path.symlink_metadata().is_ok() && Profile::load(&entry.path).is_ok() {
            return self.already(entry, &manifest);
        }
        let partial = PartialDirectory::new(&self.root.join(PARTIAL), &manifest.id)?;
        self.fill(&partial.path, dir, &manifest)?;
        let parent = entry.path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).at("create", parent)?;
        let is_new = publish(&partial.path, &entry.path)?;
        if !is_new {
            return self.already(entry, &manifest);
        }
        Ok(AddOutcome { entry, is_new })
    }

    /// Returns the existing entry if it is the same profile.
    fn already(&self, entry: FleetEntry, manifest: &Manifest) -> Result<AddOutcome> {
        match load_manifest(&entry.path)? == *manifest {
            true => Ok(AddOutcome { entry, is_new: false }),
            false => Err(Error::Another { path: entry.path }),
        }
    }

    /// Writes the files of a profile: tables first, the seal last.
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
        Ok(seal(partial, KIND, &manifest.id, &[])?)
    }

    /// Writes the table `to` as a hard link to the file of the same content, or as a copy if the
    /// file system has no links.
    fn put_table(&self, from: &Path, hash: &Hash, to: &Path) -> Result<()> {
        let dir = self.root.join(CONTENT).join(&hash[..2]);
        let kept = dir.join(format!("{hash}.parquet"));
        let bytes = fs::read(from).at("read", from)?;
        if Hash::of(&bytes) != *hash {
            let what = "it changed while it was added".into();
            return Err(kerntune_profile::Error::Damaged { path: from.to_owned(), what }.into());
        }
        let is_kept = || fs::read(&kept).is_ok_and(|there| there == bytes);
        if !is_kept() {
            fs::create_dir_all(&dir).at("create", &dir)?;
            // A damaged file is replaced; its other names keep the damaged content and are refused
            // when read. The new one is written in the partial directory, which is cleaned up after
            // killed processes.
            let aside = to.with_extension("content");
            write_atomic(&aside, &bytes)?;
            fs::rename(&aside, &kept).at("keep", &kept)?;
        }
        match fs::hard_link(&kept, to) {
            Ok(()) => Ok(()),
            // The file system has no hard links, or the file has too many.
            Err(_) => Ok(write_atomic(to, &bytes)?),
        }
    }

    /// Lists the profiles that match `filter`, in the order of locations and ids.
    ///
    /// # Errors
    /// A directory that cannot be listed, or does not belong to a fleet.
    pub fn list(&self, filter: &ProfileFilter) -> Result<Vec<FleetEntry>> {
        filter.check()?;
        let mut found = Vec::new();
        self.descend(filter, &mut Vec::new(), &self.root, &mut found)?;
        // Sort by value; directory names sort differently: `%20` comes after `-`, a blank before
        // it.
        found.sort_by(|a, b| (&a.location, &a.id).cmp(&(&b.location, &b.id)));
        Ok(found)
    }

    /// Reads every profile and every table in the content directory. Returns the number of profiles
    /// and the errors by file.
    ///
    /// # Errors
    /// A directory that cannot be listed, or does not belong to a fleet.
    pub fn audit(&self) -> Result<(usize, Vec<(PathBuf, String)>)> {
        let entries = self.list(&ProfileFilter::default())?;
        let mut found = Vec::new();
        for entry in &entries {
            kerntune_work::interrupt::check()?;
            let whole = entry.load().map_err(|error| error.to_string());
            let whole = whole.and_then(|_| checked(&entry.path, &[]).map_err(|error| error.to_string()));
            found.extend(whole.err().map(|what| (entry.path.clone(), what)));
        }
        let content = self.root.join(CONTENT);
        for dir in list_directory(&content)? {
            for path in list_directory(&dir)? {
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
        filter: &ProfileFilter,
        above: &mut Vec<String>,
        directory: &Path,
        found: &mut Vec<FleetEntry>,
    ) -> Result<()> {
        let level = PartitionKey::ALL.get(above.len()).copied();
        let expected = level.map_or(PROFILE, PartitionKey::name);
        for entry in fs::read_dir(directory).at("list", directory)? {
            let path = entry.at("list", directory)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || !path.is_dir() {
                continue;
            }
            let Some(value) = location::value(&name, expected) else {
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
                    found.push(FleetEntry { location: ProfileLocation::of_values(values), id: value, path });
                }
            }
        }
        Ok(())
    }
}

impl FleetEntry {
    /// Reads the manifest.
    ///
    /// # Errors
    /// A damaged manifest, or one of a profile that belongs elsewhere.
    pub fn manifest(&self) -> Result<Manifest> {
        self.belongs(load_manifest(&self.path)?)
    }

    /// Reads the profile.
    ///
    /// # Errors
    /// A damaged file, by its name.
    pub fn load(&self) -> Result<Profile> {
        let profile = Profile::load(&self.path)?;
        Ok(Profile { manifest: self.belongs(profile.manifest)?, tables: profile.tables })
    }

    /// Checks that the manifest matches the directory names: after a rename the figures would count
    /// for another kernel.
    fn belongs(&self, manifest: Manifest) -> Result<Manifest> {
        let workload = if manifest.workload.is_empty() { "unknown" } else { &manifest.workload };
        let date = manifest.recorded.get(..10).unwrap_or_default();
        let says = [
            (PROFILE, manifest.id.as_str()),
            (PartitionKey::BuildId.name(), manifest.kernel.id.as_str()),
            (PartitionKey::Date.name(), date),
            (PartitionKey::Workload.name(), workload),
        ];
        let names: Vec<String> = self.path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        for (key, value) in says {
            if !names.contains(&location::directory(key, value)) {
                let what = format!("{key} {value}");
                return Err(Error::Misplaced { path: self.path.clone(), what });
            }
        }
        Ok(manifest)
    }
}

/// Lists a directory; empty if it does not exist.
fn list_directory(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(Vec::new())
        }
        entries => entries.at("list", directory)?,
    };
    entries.map(|entry| Ok(entry.at("list", directory)?.path())).collect()
}

/// A directory to write a profile in, deleted when dropped. Its lock shows that a process works
/// there; an unlocked directory was left by a killed one.
struct PartialDirectory {
    path: PathBuf,
    _lock: Lock,
}

impl PartialDirectory {
    fn new(dir: &Path, id: &str) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(dir).at("create", dir)?;
        sweep(dir)?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(
            "{}.{}-{}-{number}",
            location::directory(PROFILE, id),
            location::directory("host", &host),
            std::process::id()
        );
        let lock =
            Lock::try_take(&lock_of(dir, &name))?.ok_or_else(|| Error::Busy { path: dir.join(&name) })?;
        let path = dir.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).at("remove", &path)?;
        }
        fs::create_dir(&path).at("create", &path)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        // If this fails, the next addition removes the directory.
        let _ = fs::remove_dir_all(&self.path);
        if let (Some(dir), Some(name)) = (self.path.parent(), self.path.file_name()) {
            let _ = fs::remove_file(lock_of(dir, &name.to_string_lossy()));
        }
    }
}

fn lock_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!(".{name}.lock"))
}

/// Removes directories of killed processes in `.partial`, judged by name and lock; other files
/// stay.
fn sweep(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).at("list", dir)? {
        let path = entry.at("list", dir)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A killed process may leave a lock without a directory.
        let of_lock = name.strip_prefix('.').and_then(|name| name.strip_suffix(".lock"));
        let name = of_lock.unwrap_or(&name);
        let path = dir.join(name);
        let is_link = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if is_link || !name.starts_with(PROFILE) {
            continue;
        }
        let lock = lock_of(dir, name);
        let Some(_held) = Lock::try_take(&lock)? else { continue };
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).at("remove", &path)?,
            _ => {}
        }
        let _ = fs::remove_file(&lock);
    }
    Ok(())
}

/// Renames `from` to `to`; a damaged profile at `to` is replaced. Returns false if an intact
/// profile exists.
fn publish(from: &Path, to: &Path) -> Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(true),
        Err(error) => {
            let error = std::io::Error::from(error);
            match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => {}
                // The file system does not know the flag; a plain rename never replaces a directory
                // with files.
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
