//! Profiles in the work directory: list, find, keep and remove.

use crate::directory::{load_manifest, KIND, MANIFEST_FILE};
use crate::latest::LatestFilter;
use crate::{Error, Manifest, Profile, Result};
use kerntune_work::{Key, WorkDir};
use std::path::{Path, PathBuf};

/// Location and manifest of a profile on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    /// Directory of the profile.
    pub path: PathBuf,
    /// Manifest, read without the tables.
    pub manifest: Manifest,
}

/// Profiles of a work directory.
#[derive(Debug, Default)]
pub struct ProfileList {
    /// Profiles with a readable manifest, oldest first.
    pub entries: Vec<StoredProfile>,
    /// Errors of the other profiles.
    pub damaged: Vec<Error>,
}

/// Lists the finished profiles, oldest first; those of the same time by id.
pub fn list(work: &WorkDir) -> Result<ProfileList> {
    let mut listing = ProfileList::default();
    for path in work.list(KIND)? {
        match load_manifest(&path) {
            Ok(manifest) => listing.entries.push(StoredProfile { path, manifest }),
            Err(error) => listing.damaged.push(error),
        }
    }
    listing.damaged.extend(work.damaged(KIND)?.into_iter().map(|(_, error)| Error::from(error)));
    let key = |entry: &StoredProfile| (entry.manifest.recorded.clone(), entry.manifest.id.clone());
    listing.entries.sort_by_key(key);
    Ok(listing)
}

/// Finds a profile by the path of its directory, by the beginning of its id, as `latest` or
/// `latest~N`, or as the latest that passes filters: `latest:workload=rr,kernel=base`.
pub fn find(work: &WorkDir, wanted: &str) -> Result<StoredProfile> {
    let path = Path::new(wanted);
    if wanted.contains('/') || path.join(MANIFEST_FILE).is_file() {
        return Ok(StoredProfile { path: path.to_owned(), manifest: load_manifest(path)? });
    }
    if let Some(latest) = latest(work, wanted)? {
        return Ok(latest);
    }
    let path = find_by_id(work, wanted)?;
    Ok(StoredProfile { manifest: load_manifest(&path)?, path })
}

/// Stores a profile that was made of other profiles, under its id; leaves an existing one as it is.
/// Returns its path.
///
/// # Errors
/// The profile cannot be written.
pub fn keep(work: &WorkDir, profile: &Profile) -> Result<PathBuf> {
    let of = &profile.manifest;
    let mut key = Key::new("made-of-profiles/1", crate::CODE).field("kernel", &of.kernel.id);
    for source in &of.sources {
        key = key.field("source", source);
    }
    let staged = work.stage_as(KIND, &of.id, &key)?;
    if let Some(done) = staged.already() {
        return Ok(done);
    }
    staged.clear()?;
    profile.save(staged.path())?;
    Ok(staged.publish()?)
}

/// Removes the profile with this path, or whose id begins with `wanted`, also if it is damaged.
/// Never removes anything outside the work directory. Returns the former path.
pub fn remove(work: &WorkDir, wanted: &str) -> Result<PathBuf> {
    let path = match wanted {
        name if name.starts_with("latest") => {
            latest(work, name)?.ok_or_else(|| not_found(work, wanted))?.path
        }
        path if path.contains('/') => own(work, path).ok_or_else(|| not_found(work, wanted))?,
        id => find_by_id(work, id)?,
    };
    let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    work.remove(KIND, &id)?;
    Ok(path)
}

/// Finds the profile if `wanted` is a `latest` name; returns `None` for other names.
fn latest(work: &WorkDir, wanted: &str) -> Result<Option<StoredProfile>> {
    let Some(latest) = LatestFilter::parse(wanted)? else { return Ok(None) };
    let mut listing = list(work)?;
    if listing.entries.is_empty() && listing.damaged.is_empty() {
        return Err(Error::NoProfiles { directory: work.root().join(KIND) });
    }
    listing.entries.retain(|entry| latest.fits(&entry.manifest));
    let found = listing.entries.into_iter().nth_back(latest.before);
    found.map(Some).ok_or_else(|| not_found(work, wanted))
}

/// Finds the work directory's profile at this path.
fn own(work: &WorkDir, path: &str) -> Option<PathBuf> {
    let path = Path::new(path).canonicalize().ok()?;
    owned(work).ok()?.into_iter().find(|own| own.canonicalize().is_ok_and(|own| own == path))
}

/// Lists the directories of all profiles, damaged ones too.
fn owned(work: &WorkDir) -> Result<Vec<PathBuf>> {
    let mut all = work.list(KIND)?;
    all.extend(work.damaged(KIND)?.into_iter().map(|(path, _)| path));
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
    Error::NotFound { wanted: wanted.to_owned(), directory: work.root().join(KIND) }
}
