//! Prepared profile in the work directory.

use super::ExecutedFunction;
use crate::quality::ProfileQuality;
use crate::stored::{open, read_json, read_quality};
use crate::Result;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Kind of result in the work directory.
pub(super) const KIND: &str = "clang-autofdo";
pub(super) const MANIFEST: &str = "profile.json";
pub(super) const FUNCTIONS: &str = "functions.json";
/// Directory with the files for the build directory.
pub(super) const TREE: &str = "tree";
const SCHEMA: &str = "kerntune-clang-autofdo/1";

/// Sizes of a recording and of its sample profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AutofdoSummary {
    /// Straight runs of code that were executed, each once.
    pub ranges: u64,
    /// Taken branches, each once.
    pub branches: u64,
    /// Executed bytes of the kernel's code.
    pub executed_bytes: u64,
    /// Executed bytes outside of the kernel's image, which are left out.
    pub outside_bytes: u64,
    /// Executed bytes that the sample profile has. The rest is code without line tables: assembly.
    pub attributed_bytes: u64,
    /// Functions of the image that ran.
    pub functions: u64,
    /// C functions that ran.
    pub c_functions: u64,
    /// C functions that ran and are in the sample profile.
    pub matched_functions: u64,
    /// Functions of the image with places among those that hold 99 % of all samples.
    pub hot_functions: u64,
    /// Samples that make a place hot.
    pub hot_from: u64,
}

impl AutofdoSummary {
    /// Returns the share of the executed bytes that the sample profile has, 0 to 1.
    pub fn attributed_share(&self) -> f64 {
        share(self.attributed_bytes, self.executed_bytes)
    }

    /// Returns the share of the executed C functions that the sample profile has, 0 to 1.
    pub fn matched_share(&self) -> f64 {
        share(self.matched_functions, self.c_functions)
    }
}

pub(super) fn share(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        part as f64 / of as f64
    }
}

/// Contents of `profile.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AutofdoManifest {
    pub schema: String,
    pub id: String,
    pub kernel: String,
    pub recording: String,
    pub summary: AutofdoSummary,
}

impl AutofdoManifest {
    pub fn new(id: &str, kernel: &str, recording: &str, summary: AutofdoSummary) -> Self {
        let (id, kernel, recording) = (id.to_string(), kernel.to_string(), recording.to_string());
        Self { schema: SCHEMA.into(), id, kernel, recording, summary }
    }
}

/// Sample profile for Clang, with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutofdoProfile {
    /// Absolute result directory: `profile.json`, `functions.json`, `counts.txt` (input of
    /// `llvm-profgen`), `samples.txt` (its output as text), `llvm-profgen.log`, and the
    /// [`tree`](Self::tree).
    pub dir: PathBuf,
    /// 16 hex digits: hash of the counts and the kernel.
    pub id: String,
    /// Id of the kernel that was recorded.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// Sizes of the recording and of the profile.
    pub summary: AutofdoSummary,
}

impl AutofdoProfile {
    /// Loads the profile in `dir`.
    ///
    /// # Errors
    /// A missing or damaged `profile.json`, or one of another version.
    pub fn load(dir: &Path) -> Result<Self> {
        let (dir, manifest): (_, AutofdoManifest) = open(dir, "open profile", MANIFEST, SCHEMA)?;
        let AutofdoManifest { id, kernel, recording, summary, .. } = manifest;
        Ok(Self { dir, id, kernel, recording, summary })
    }

    /// Returns the directory with the sample profile, to be copied into the build directory.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// Reads the gate's figures of the recording; `None` in results made before there was a gate.
    pub fn quality(&self) -> Result<Option<ProfileQuality>> {
        read_quality(&self.dir)
    }

    /// Reads the functions that ran, by executed bytes, most first.
    pub fn functions(&self) -> Result<Vec<ExecutedFunction>> {
        read_json(&self.dir.join(FUNCTIONS))
    }
}
