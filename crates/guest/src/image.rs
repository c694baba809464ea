//! Packs workloads into initramfs images.

use crate::archive::{self, PackedFile};
use crate::layout::lay_out;
use crate::limits::too_large_for;
use crate::resolve::ResolvedImage;
use crate::{Error, GuestModules, Result, Workload};
use kerntune_work::{checked, read_versioned, write_json, IoContext, Progress, Seal, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Kind of result in the work directory.
pub const KIND: &str = "guests";

/// Schema of `manifest.json`.
pub const SCHEMA: &str = "kerntune.guest/1";

/// A finished image: `initramfs.cpio` and `manifest.json` in one directory.
#[derive(Debug, Clone)]
pub struct GuestImage {
    /// Directory of the image.
    pub dir: PathBuf,
    /// Path of the initramfs, an uncompressed newc archive, so that the guest spends no time on
    /// decompression.
    pub initramfs: PathBuf,
    /// Contents of the image, from `manifest.json`.
    pub manifest: ImageManifest,
}

/// Contents of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageManifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name in the work directory: a hash of everything packed.
    pub id: String,
    /// Name of the workload.
    pub workload: String,
    /// Regular files, sorted by path.
    pub files: Vec<PackedFile>,
    /// Size of the initramfs in bytes.
    pub bytes: u64,
}

impl GuestImage {
    /// Packs the image of a workload, or finds one packed earlier from the same files.
    ///
    /// # Errors
    /// A package, program or library that this machine lacks, with who needs it and what to do; a
    /// file that cannot be read; a missing compiler.
    pub fn build(work: &WorkDir, workload: &Workload, progress: &dyn Progress) -> Result<Self> {
        Self::with_modules(work, workload, None, progress)
    }

    /// Packs the image of a workload with modules that its kernel loads, like [`GuestImage::build`].
    ///
    /// # Errors
    /// As of [`GuestImage::build`].
    pub fn with_modules(
        work: &WorkDir,
        workload: &Workload,
        modules: Option<&GuestModules>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        progress.begin(&format!("guest image of {}", workload.name), None);
        let built = Self::build_inner(work, workload, modules, progress);
        progress.end();
        built
    }

    fn build_inner(
        work: &WorkDir,
        workload: &Workload,
        modules: Option<&GuestModules>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let resolved = ResolvedImage::of(work, workload, modules, progress)?;
        let tree = lay_out(resolved)?;
        let key = archive::identify(&workload.name, &tree)?;
        let id = key.id();
        if let Some(dir) = work.find_verified(KIND, &id) {
            return Self::open(&dir);
        }
        let staged = work.stage(KIND, &key)?;
        if let Some(dir) = staged.already() {
            return Self::open(&dir);
        }
        let size = archive::size(&tree)?;
        if let Some(problem) = too_large_for(size, workload.memory_mb) {
            return Err(Error::TooLarge { workload: workload.name.clone(), problem });
        }
        staged.clear()?;
        if tree.is_private {
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(staged.path(), private).at("protect", staged.path())?;
        }
        let path = staged.path().join("initramfs.cpio");
        let files = archive::write(&tree, &path)?;
        let bytes = path.metadata().at("look at", &path)?.len();
        let manifest =
            ImageManifest { schema: SCHEMA.into(), id, workload: workload.name.clone(), files, bytes };
        write_json(&staged.path().join("manifest.json"), &manifest)?;
        Self::open(&staged.publish()?)
    }

    /// Returns a hash of each entry by its path in the guest: of its kind, attributes and contents.
    ///
    /// # Errors
    /// An image whose key cannot be read.
    pub fn entries(&self) -> Result<BTreeMap<String, String>> {
        let key = Seal::read(&self.dir)?.key();
        Ok(archive::entries(&key))
    }

    /// Opens an existing image.
    ///
    /// # Errors
    /// An image of another version, or with changed files.
    pub fn open(dir: &Path) -> Result<Self> {
        checked(dir, &[])?;
        let manifest = read_versioned(&dir.join("manifest.json"), SCHEMA)?;
        Ok(Self { dir: dir.to_owned(), initramfs: dir.join("initramfs.cpio"), manifest })
    }
}

#[cfg(test)]
mod tests;
