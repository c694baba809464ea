//! Prepared profile in the work directory.

use super::flags::PROFILE_FILE;
use super::ExecutedFunction;
use crate::share::share;
use crate::stored::{read_json, PreparedResult};
use crate::Result;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(super) const FUNCTIONS: &str = "functions.json";
/// Directory with the files for the build directory.
pub(super) const TREE: &str = "tree";

/// Sizes of a recording and of its sample profile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// Modules with code that ran, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleSamples>,
}

/// Sizes of the recording of a module and of its part in the sample profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleSamples {
    /// Name as in `/proc/modules`.
    pub module: String,
    /// Executed bytes of the module's code.
    pub executed_bytes: u64,
    /// Executed bytes that the sample profile has; 0 if the module's file has no line tables.
    pub attributed_bytes: u64,
    /// Functions that ran.
    pub functions: u64,
    /// Functions that ran and are in the sample profile.
    pub matched_functions: u64,
}

impl ModuleSamples {
    /// Returns the share of the executed bytes that the sample profile has, 0 to 1.
    pub fn attributed_share(&self) -> f64 {
        share(self.attributed_bytes, self.executed_bytes)
    }
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

/// Sample profile for Clang, with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutofdoProfile {
    /// Absolute result directory: `profile.json`, `functions.json`, `counts.txt` (input of
    /// `llvm-profgen`), `samples.txt` (its output as text), `llvm-profgen.log`, and the
    /// [`tree`](Self::tree).
    #[serde(skip)]
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

impl PreparedResult for AutofdoProfile {
    const KIND: &'static str = "clang-autofdo";
    const MANIFEST: &'static str = "profile.json";
    const SCHEMA: &'static str = "kerntune-clang-autofdo/1";
    const OPEN: &'static str = "open profile";

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn in_dir(self, dir: PathBuf) -> Result<Self> {
        Ok(Self { dir, ..self })
    }
}

impl AutofdoProfile {
    /// Returns the directory with the sample profile, to be copied into the build directory.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// Returns the path of the sample profile itself.
    pub fn file(&self) -> PathBuf {
        self.tree().join(PROFILE_FILE)
    }

    /// Reads the functions that ran, by executed bytes, most first.
    pub fn functions(&self) -> Result<Vec<ExecutedFunction>> {
        read_json(&self.dir.join(FUNCTIONS))
    }
}
