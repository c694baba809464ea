//! Prepared profile in the work directory.

use super::{ObjectCounts, ValueSummary};
use crate::quality::ProfileQuality;
use crate::stored::{open, read_json, read_quality};
use crate::Result;
use kerntune_convert::gcda::ProgramSummary;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Kind of result in the work directory.
pub(super) const KIND: &str = "gcc-pgo";
pub(super) const MANIFEST: &str = "profile.json";
pub(super) const COUNTS: &str = "functions.json";
pub(super) const TREE: &str = "gcda";
const SCHEMA: &str = "kerntune-gcc-pgo/1";

/// Totals over the files of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GccPgoSummary {
    /// Files, one per instrumented object.
    pub files: u64,
    /// Instrumented functions.
    pub functions: u64,
    /// Functions that ran at least once.
    pub executed_functions: u64,
    /// Arc counters.
    pub counters: u64,
    /// Largest arc count, GCC's reference for hotness.
    pub sum_max: u64,
    /// Sum of all arc counts.
    pub total: u64,
}

impl From<ProgramSummary> for GccPgoSummary {
    fn from(s: ProgramSummary) -> Self {
        Self {
            files: s.files,
            functions: s.functions,
            executed_functions: s.executed_functions,
            counters: s.counters,
            sum_max: s.sum_max,
            total: s.total,
        }
    }
}

/// Contents of `profile.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GccPgoManifest {
    pub schema: String,
    pub id: String,
    pub gcov_kernel: String,
    pub compiler: String,
    pub runs: u32,
    pub summary: GccPgoSummary,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ValueSummary>,
}

/// Counters for GCC: checked, merged over the training runs, each file with the summary of the
/// whole program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GccPgoProfile {
    /// Absolute result directory: `profile.json`, `functions.json` and the [`tree`](Self::tree).
    pub dir: PathBuf,
    /// 16 hex digits: hash of the content.
    pub id: String,
    /// Id of the gcov kernel that counted.
    pub gcov_kernel: String,
    /// Version of that kernel's compiler, as it prints it.
    pub compiler: String,
    /// Number of merged training runs.
    pub runs: u32,
    /// Totals over all files.
    pub summary: GccPgoSummary,
    /// Totals of the value counters; `None` if only arcs were counted.
    pub values: Option<ValueSummary>,
}

impl GccPgoProfile {
    /// Loads the profile in `dir`.
    ///
    /// # Errors
    /// A missing or damaged `profile.json`, or one of another version.
    pub fn load(dir: &Path) -> Result<Self> {
        let (dir, manifest): (_, GccPgoManifest) = open(dir, "open profile", MANIFEST, SCHEMA)?;
        let GccPgoManifest { id, gcov_kernel, compiler, runs, summary, values, .. } = manifest;
        Ok(Self { dir, id, gcov_kernel, compiler, runs, summary, values })
    }

    /// Returns the directory to be copied into the build directory: `kernel/fork.gcda` is for
    /// `kernel/fork.o`.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// Reads the gate's figures of the counters; `None` in results made before there was a gate.
    pub fn quality(&self) -> Result<Option<ProfileQuality>> {
        read_quality(&self.dir)
    }

    /// Reads the executions of each function, by object in the order of names.
    pub fn counts(&self) -> Result<Vec<ObjectCounts>> {
        read_json(&self.dir.join(COUNTS))
    }
}

impl GccPgoManifest {
    pub fn new(
        id: &str,
        gcov: &kerntune_kernel::KernelManifest,
        runs: u32,
        summary: GccPgoSummary,
        values: Option<ValueSummary>,
    ) -> Self {
        Self {
            schema: SCHEMA.into(),
            id: id.into(),
            gcov_kernel: gcov.id.clone(),
            compiler: gcov.compiler.version.clone(),
            runs,
            summary,
            values,
        }
    }
}
