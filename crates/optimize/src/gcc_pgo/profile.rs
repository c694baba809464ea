//! Prepared profile in the work directory.

use super::{ObjectCounts, ValueSummary};
use crate::stored::{read_json, PreparedResult};
use crate::Result;
use kerntune_convert::gcda::ProgramSummary;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(super) const COUNTS: &str = "functions.json";
pub(super) const TREE: &str = "gcda";

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

/// Counters for GCC: checked, merged over the training runs, each file with the summary of the
/// whole program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GccPgoProfile {
    /// Absolute result directory: `profile.json`, `functions.json` and the [`tree`](Self::tree).
    #[serde(skip)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ValueSummary>,
}

impl PreparedResult for GccPgoProfile {
    const KIND: &'static str = "gcc-pgo";
    const MANIFEST: &'static str = "profile.json";
    const SCHEMA: &'static str = "kerntune-gcc-pgo/1";
    const OPEN: &'static str = "open profile";

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn in_dir(self, dir: PathBuf) -> Result<Self> {
        Ok(Self { dir, ..self })
    }
}

impl GccPgoProfile {
    /// Returns the directory to be copied into the build directory: `kernel/fork.gcda` is for
    /// `kernel/fork.o`.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    /// Reads the executions of each function, by object in the order of names.
    pub fn counts(&self) -> Result<Vec<ObjectCounts>> {
        read_json(&self.dir.join(COUNTS))
    }
}
