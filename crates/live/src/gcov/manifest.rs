//! Manifest of collected counters.

use crate::{Error, Result};
use kerntune_work::write_json;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Value of [`GcovManifest::schema`].
pub(super) const SCHEMA: &str = "kerntune-gcov/1";

/// Name of the manifest in the directory of collected counters.
pub const GCOV_MANIFEST: &str = "gcov.json";

/// Largest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// Origin of collected counters: `gcov.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcovManifest {
    /// Format and version of this object.
    pub schema: String,
    /// Machine as named for `ssh`; `None` for the machine that collected.
    pub host: Option<String>,
    /// Release of the kernel, as `uname -r`.
    pub release: String,
    /// Build id in hexadecimal; `None` if the kernel shows none.
    pub build_id: Option<String>,
    /// Time of the collection: RFC 3339, UTC.
    pub collected: String,
    /// Number of counter files, those of modules included.
    pub files: u64,
    /// Size of all counter files, in bytes.
    pub bytes: u64,
    /// Loaded modules, in the order of `/proc/modules`.
    pub modules: Vec<ModuleFiles>,
}

/// Loaded module and its counter files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFiles {
    /// Name as in `/proc/modules`.
    pub name: String,
    /// Counter files of the module's name. A module of several objects has others too, which only
    /// the build can tell from those of the image.
    pub files: Vec<PathBuf>,
}

impl ModuleFiles {
    /// Assigns files to the modules of `/proc/modules` by name. In the names of modules `_` also
    /// stands for `-`.
    pub(super) fn of(modules: &str, files: &[PathBuf]) -> Vec<Self> {
        let of_name = |name: &str| {
            let is_it = |file: &&PathBuf| {
                file.file_stem().is_some_and(|stem| stem.to_string_lossy().replace('-', "_") == name)
            };
            files.iter().filter(is_it).cloned().collect()
        };
        let names = modules.lines().filter_map(|line| line.split_whitespace().next());
        names.map(|name| Self { name: name.into(), files: of_name(name) }).collect()
    }
}

impl GcovManifest {
    pub(super) fn write(&self, directory: &Path) -> Result<()> {
        Ok(write_json(&directory.join(GCOV_MANIFEST), self)?)
    }

    /// Reads the manifest of a directory; `None` if it has none, as a copy of debugfs.
    ///
    /// # Errors
    /// A manifest that cannot be read, or of another version.
    pub fn load(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(GCOV_MANIFEST);
        match fs::metadata(&path) {
            Ok(found) if found.len() <= MAX_MANIFEST => {}
            Ok(_) => return Err(Error::Gcov(format!("{} is too large for a manifest", path.display()))),
            Err(_) => return Ok(None),
        }
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let manifest: Self = serde_json::from_str(&text).map_err(|error| {
            Error::Gcov(format!("{} is no manifest of counters: {error}", path.display()))
        })?;
        match manifest.schema == SCHEMA {
            true => Ok(Some(manifest)),
            false => Err(Error::Gcov(format!(
                "{} is of version {:?}, this is {SCHEMA}",
                path.display(),
                manifest.schema
            ))),
        }
    }

    /// Returns the number of counter files that belong to loaded modules by their name.
    pub fn module_files(&self) -> usize {
        self.modules.iter().map(|module| module.files.len()).sum()
    }
}
