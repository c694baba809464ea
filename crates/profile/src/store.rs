//! The profiles in the work directory.

use crate::directory::{load_manifest, MANIFEST_FILE, ROOM};
use crate::latest::Latest;
use crate::{Error, Manifest, Profile, Result};
use kerntune_work::{Key, WorkDir};
use std::path::{Path, PathBuf};

/// A profile in the work directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its directory.
    pub path: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
}

/// The profiles of a work directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those whose manifest can be read, oldest first.
    pub entries: Vec<Entry>,
    /// What is wrong with the others.
    pub damaged: Vec<Error>,
}

/// The finished profiles, oldest first; at one time, by id.
pub fn list(work: &WorkDir) -> Result<Listing> {
    let mut listing = Listing::default();
    for path in work.list(ROOM)? {
        match load_manifest(&path) {
            Ok(manifest) => listing.entries.push(Entry { path, manifest }),
            Err(error) => listing.damaged.push(error),
        }
    }
    listing.damaged.extend(work.damaged(ROOM)?.into_iter().map(|(_, error)| Error::from(error)));
    let key = |entry: &Entry| (entry.manifest.recorded.clone(), entry.manifest.id.clone());
    listing.entries.sort_by_key(key);
    Ok(listing)
}

/// Finds a profile by the path of its directory, by the beginning of its id, as `latest`, or as the latest that fits:
/// `latest:workload=rr,kernel=base`.
pub fn find(work: &WorkDir, wanted: &str) -> Result<Entry> {
    let path = Path::new(wanted);
    if wanted.contains('/') || path.join(MANIFEST_FILE).is_file() {
        return Ok(Entry { path: path.to_owned(), manifest: load_manifest(path)? });
    }
    if let Some(latest) = latest(work, wanted)? {
        return Ok(latest);
    }
    let path = find_by_id(work, wanted)?;
    Ok(Entry { manifest: load_manifest(&path)?, path })
}

/// Puts a profile that was made of others in the store, under its id; one that is there already stays. Returns its path.
///
/// # Errors
/// What keeps it from being written.
pub fn keep(work: &WorkDir, profile: &Profile) -> Result<PathBuf> {
    let of = &profile.manifest;
    let mut key = Key::new("made-of-profiles/1", crate::CODE).field("kernel", &of.kernel.id);
    for source in &of.sources {
        key = key.field("source", source);
    }
    let staged = work.stage_as(ROOM, &of.id, &key)?;
    if let Some(done) = staged.already() {
        return Ok(done);
    }
    staged.clear()?;
    profile.save(staged.path())?;
    Ok(staged.publish()?)
}

/// Removes the profile whose id begins with `wanted`, or that is at this path, damaged ones too; never
/// anything outside the work directory. Returns the path that it had.
pub fn remove(work: &WorkDir, wanted: &str) -> Result<PathBuf> {
    let path = match wanted {
        name if name.starts_with("latest") => {
            latest(work, name)?.ok_or_else(|| not_found(work, wanted))?.path
        }
        path if path.contains('/') => own(work, path).ok_or_else(|| not_found(work, wanted))?,
        id => find_by_id(work, id)?,
    };
    let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    work.remove(ROOM, &id)?;
    Ok(path)
}

/// The last of the profiles that `wanted` asks for, if it asks for the latest of some.
fn latest(work: &WorkDir, wanted: &str) -> Result<Option<Entry>> {
    let Some(latest) = Latest::parse(wanted)? else { return Ok(None) };
    let found = list(work)?.entries.into_iter().rfind(|entry| latest.fits(&entry.manifest));
    found.map(Some).ok_or_else(|| not_found(work, wanted))
}

/// The work directory's profile at this path.
fn own(work: &WorkDir, path: &str) -> Option<PathBuf> {
    let path = Path::new(path).canonicalize().ok()?;
    owned(work).ok()?.into_iter().find(|own| own.canonicalize().is_ok_and(|own| own == path))
}

/// What the work directory has as profiles, damaged ones too.
fn owned(work: &WorkDir) -> Result<Vec<PathBuf>> {
    let mut all = work.list(ROOM)?;
    all.extend(work.damaged(ROOM)?.into_iter().map(|(path, _)| path));
    Ok(all)
}

fn find_by_id(work: &WorkDir, wanted: &str) -> Result<PathBuf> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found: Vec<PathBuf> = match wanted {
        "" => Vec::new(),
        _ => owned(work)?.into_iter().filter(|path| name(path).starts_with(wanted)).collect(),
    };
    if let Some(exact) = found.iter().position(|path| name(path) == wanted) {
        return Ok(found.swap_remove(exact));
    }
    if found.len() > 1 {
        let candidates = found.iter().map(name).collect();
        return Err(Error::Ambiguous { wanted: wanted.to_owned(), candidates });
    }
    found.pop().ok_or_else(|| not_found(work, wanted))
}

fn not_found(work: &WorkDir, wanted: &str) -> Error {
    Error::NotFound { wanted: wanted.to_owned(), room: work.root().join(ROOM) }
}
