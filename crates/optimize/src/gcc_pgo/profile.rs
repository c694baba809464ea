//! A prepared profile in the work directory.

use super::{ObjectCounts, ValueSummary};
use crate::quality::Quality;
use crate::stored::{open, read_json, read_quality};
use crate::Result;
use kerntune_convert::gcda::ProgramSummary;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The kind of result in the work directory.
pub(super) const KIND: &str = "gcc-pgo";
pub(super) const MANIFEST: &str = "profile.json";
pub(super) const COUNTS: &str = "functions.json";
pub(super) const TREE: &str = "gcda";
const SCHEMA: &str = "kerntune-gcc-pgo/1";

/// What the files of a profile hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProfileSummary {
    /// Files, one per instrumented object.
    pub files: u64,
    /// Instrumented functions.
    pub functions: u64,
    /// Functions that ran at least once.
    pub executed_functions: u64,
    /// Arc counters.
    pub counters: u64,
    /// The largest arc count: what GCC measures hotness against.
    pub sum_max: u64,
    /// The sum of all arc counts.
    pub total: u64,
}

impl From<ProgramSummary> for ProfileSummary {
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

/// `profile.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub schema: String,
    pub id: String,
    pub gcov_kernel: String,
    pub compiler: String,
    pub runs: u32,
    pub summary: ProfileSummary,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ValueSummary>,
}

/// Counters as GCC takes them: checked, merged over the training runs, each file with the summary
/// of the whole program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedProfile {
    /// The result directory, absolute: `profile.json`, `functions.json` and the [`tree`](Self::tree).
    pub dir: PathBuf,
    /// 16 hex digits over the content.
    pub id: String,
    /// Id of the gcov kernel that counted.
    pub gcov_kernel: String,
    /// The compiler of that kernel, as it names itself.
    pub compiler: String,
    /// Training runs merged.
    pub runs: u32,
    /// Over all files.
    pub summary: ProfileSummary,
    /// The value counters; None if arcs alone were counted.
    pub values: Option<ValueSummary>,
}

impl PreparedProfile {
    /// Loads the profile in `dir`.
    ///
    /// # Errors
    /// A missing or damaged `profile.json`, or one of another version.
    pub fn load(dir: &Path) -> Result<Self> {
        let (dir, manifest): (_, Manifest) = open(dir, "open profile", MANIFEST, SCHEMA)?;
        let Manifest { id, gcov_kernel, compiler, runs, summary, values, .. } = manifest;
        Ok(Self { dir, id, gcov_kernel, compiler, runs, summary, values })
    }

    /// The files as they belong into the build directory: `kernel/fork.gcda` is for `kernel/fork.o`.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// What the gate said of the counters; None in results of before there was one.
    pub fn quality(&self) -> Result<Option<Quality>> {
        read_quality(&self.dir)
    }

    /// Which function ran how much, by object in the order of their names.
    pub fn counts(&self) -> Result<Vec<ObjectCounts>> {
        read_json(&self.dir.join(COUNTS))
    }
}

impl Manifest {
    pub fn new(
        id: &str,
        gcov: &kerntune_kernel::KernelManifest,
        runs: u32,
        summary: ProfileSummary,
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
