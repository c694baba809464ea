//! A prepared profile in the work directory.

use super::RanFunction;
use crate::quality::Quality;
use crate::stored::{open, read_json, read_quality};
use crate::Result;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The kind of result in the work directory.
pub(super) const KIND: &str = "clang-autofdo";
pub(super) const MANIFEST: &str = "profile.json";
pub(super) const FUNCTIONS: &str = "functions.json";
/// What goes into the build directory.
pub(super) const TREE: &str = "tree";
const SCHEMA: &str = "kerntune-clang-autofdo/1";

/// What was recorded and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProfileSummary {
    /// Straight stretches of code that ran.
    pub ranges: u64,
    /// Taken branches, each once.
    pub branches: u64,
    /// Bytes of the kernel's code, each as often as it ran.
    pub executed_bytes: u64,
    /// The same of code outside of the kernel's image, which is left out.
    pub outside_bytes: u64,
    /// Of the executed bytes those that the sample profile has. The others are of code without line tables:
    /// assembly.
    pub attributed_bytes: u64,
    /// Functions of the image that ran.
    pub functions: u64,
    /// Of them those written in C.
    pub c_functions: u64,
    /// Of the latter those that the sample profile has.
    pub matched_functions: u64,
    /// Functions of the image with places among those that hold 99 % of all samples.
    pub hot_functions: u64,
    /// Samples that make a place one of those.
    pub hot_from: u64,
}

impl ProfileSummary {
    /// The share of what ran that the sample profile has, 0 to 1.
    pub fn attributed_share(&self) -> f64 {
        share(self.attributed_bytes, self.executed_bytes)
    }

    /// The share of the C functions that ran that the sample profile has, 0 to 1.
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

/// `profile.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub schema: String,
    pub id: String,
    pub kernel: String,
    pub recording: String,
    pub summary: ProfileSummary,
}

impl Manifest {
    pub fn new(id: &str, kernel: &str, recording: &str, summary: ProfileSummary) -> Self {
        let (id, kernel, recording) = (id.to_string(), kernel.to_string(), recording.to_string());
        Self { schema: SCHEMA.into(), id, kernel, recording, summary }
    }
}

/// A sample profile as Clang takes it, with what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedProfile {
    /// The result directory, absolute: `profile.json`, `functions.json`, `counts.txt` (what `llvm-profgen` was
    /// given), `samples.txt` (what it made, to look at), `llvm-profgen.log`, and the [`tree`](Self::tree).
    pub dir: PathBuf,
    /// 16 hex digits over the counts and the kernel.
    pub id: String,
    /// Id of the kernel that was recorded.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// What it holds.
    pub summary: ProfileSummary,
}

impl PreparedProfile {
    /// Loads the profile in `dir`.
    ///
    /// # Errors
    /// A missing or damaged `profile.json`, or one of another version.
    pub fn load(dir: &Path) -> Result<Self> {
        let (dir, manifest): (_, Manifest) = open(dir, "open profile", MANIFEST, SCHEMA)?;
        let Manifest { id, kernel, recording, summary, .. } = manifest;
        Ok(Self { dir, id, kernel, recording, summary })
    }

    /// What belongs into the build directory: the sample profile.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// What the gate said of the recording; None in results of before there was one.
    pub fn quality(&self) -> Result<Option<Quality>> {
        read_quality(&self.dir)
    }

    /// Which function ran how much, the most first.
    pub fn functions(&self) -> Result<Vec<RanFunction>> {
        read_json(&self.dir.join(FUNCTIONS))
    }
}
