//! Results of the recipes' preparations on disk.

use crate::quality::{ProfileQuality, QUALITY_SCHEMA};
use crate::Result;
use kerntune_work::{checked, read_versioned, write_json, IoContext, Key, WorkDir};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// File with the gate's figures of the recording that a result was made from; see
/// [`crate::quality`].
const QUALITY: &str = "quality.json";

/// Profile, order or image that a recipe prepared: a directory in the work directory that has a
/// manifest with the fields of the value, and other files.
pub trait PreparedResult: Serialize + DeserializeOwned {
    /// Kind of result in the work directory.
    const KIND: &'static str;
    /// File with the fields.
    const MANIFEST: &'static str;
    /// Schema of the manifest.
    const SCHEMA: &'static str;
    /// Attempt to load it, in errors.
    const OPEN: &'static str;

    /// Returns the absolute result directory.
    fn dir(&self) -> &Path;

    /// Sets the directory, and reads fields that are in files of their own.
    ///
    /// # Errors
    /// Files that are missing or damaged.
    fn in_dir(self, dir: PathBuf) -> Result<Self>;

    /// Loads the result in `dir`.
    ///
    /// # Errors
    /// Files that are missing, damaged, or of another version.
    fn load(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().at(Self::OPEN, dir)?;
        checked(&dir, &[])?;
        read_versioned::<Self>(&dir.join(Self::MANIFEST), Self::SCHEMA)?.in_dir(dir)
    }

    /// Finds the result with this id; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`PreparedResult::load`].
    fn find(work: &WorkDir, id: &str) -> Result<Option<Self>> {
        work.find(Self::KIND, id).map(|dir| Self::load(&dir)).transpose()
    }

    /// Reads the gate's figures of the recording; `None` in results made before there was a gate.
    ///
    /// # Errors
    /// A damaged file.
    fn quality(&self) -> Result<Option<ProfileQuality>> {
        let path = self.dir().join(QUALITY);
        Ok(path.is_file().then(|| read_versioned(&path, QUALITY_SCHEMA)).transpose()?)
    }
}

/// Returns the result of this key. If there is none, `make` writes its files into a directory and
/// returns its fields.
pub(crate) fn store<R: PreparedResult>(
    work: &WorkDir,
    key: &Key,
    quality: Option<&ProfileQuality>,
    make: impl FnOnce(&Path) -> Result<R>,
) -> Result<R> {
    let staged = work.stage(R::KIND, key)?;
    if let Some(done) = staged.already().and_then(|dir| R::load(&dir).ok()) {
        return Ok(done);
    }
    staged.clear()?;
    let fields = make(staged.path())?;
    if let Some(quality) = quality {
        write_json(&staged.path().join(QUALITY), quality)?;
    }
    let manifest = ManifestFields { schema: R::SCHEMA, fields: &fields };
    write_json(&staged.path().join(R::MANIFEST), &manifest)?;
    R::load(&staged.publish()?)
}

/// Contents of a manifest.
#[derive(Serialize)]
struct ManifestFields<'a, R> {
    schema: &'static str,
    #[serde(flatten)]
    fields: &'a R,
}

/// Reads a JSON file of a result.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).at("read", path)?;
    serde_json::from_slice(&bytes)
        .map_err(|source| kerntune_work::Error::Json { path: path.to_owned(), source }.into())
}
