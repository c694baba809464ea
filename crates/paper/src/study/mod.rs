//! Studies: papers that change a kernel by hand, step by step, and show after each step the cost of
//! one abstraction (McKusick's study of `namei`). The paper's figures and ours use the same
//! arithmetic ([`change_percent`]).

mod abstraction;

pub use abstraction::{Abstraction, AbstractionCost, CostError};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kernels and tables of a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Our workload that does the same.
    pub workload: String,
    /// Differences of our experiment from the paper's.
    #[serde(default)]
    pub about: String,
    /// Examined abstraction.
    pub abstraction: Abstraction,
    /// Kernels, in the paper's order; figures are compared with those of the first.
    #[serde(rename = "kernel")]
    pub kernels: Vec<StudyVariant>,
    /// Tables of the paper.
    #[serde(rename = "table")]
    pub tables: Vec<StudyTable>,
}

/// Kernel of a study: our patches that correspond to the paper's change.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyVariant {
    /// Name of the kernel here.
    pub name: String,
    /// Kernel of the paper that this one replaces.
    pub paper: String,
    /// Set of our patches; `None` for the unpatched kernel.
    pub patches: Option<String>,
    /// Caches of this kernel by name, as [`StudyRow::cache`] refers to them.
    #[serde(default)]
    pub caches: BTreeMap<String, CacheFunctions>,
}

/// Functions whose calls tell how often a cache answers. With `found`, answers are the calls of
/// these; otherwise the lookups less the calls of `missed`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheFunctions {
    /// Functions whose calls are lookups.
    pub looked: Vec<String>,
    /// Functions whose calls are lookups that were answered.
    #[serde(default)]
    pub found: Vec<String>,
    /// Functions whose calls are lookups that were not.
    #[serde(default)]
    pub missed: Vec<String>,
}

/// Table of a study: some quantities of each kernel under one workload.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyTable {
    /// Title of the table.
    pub title: String,
    /// Region of the workload.
    pub region: String,
    /// Differences of our experiment from the paper's.
    #[serde(default)]
    pub about: String,
    /// Rows, in the paper's order.
    #[serde(rename = "row")]
    pub rows: Vec<StudyRow>,
}

/// Quantity of each kernel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyRow {
    /// Name of the row.
    pub name: String,
    /// Quantity of the row.
    pub what: StudyQuantity,
    /// Unit of the paper's figures; empty if it has none.
    #[serde(default)]
    pub unit: String,
    /// The paper's figures of the first kernels, in their order; empty if it has none.
    #[serde(default)]
    pub paper: Vec<f64>,
    /// Cache of a row with [`StudyQuantity::HitPercent`].
    #[serde(default)]
    pub cache: String,
}

/// Countable quantity of an abstraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyQuantity {
    /// Time in the abstraction's own functions, per use.
    #[serde(rename = "self")]
    Itself,
    /// Time in their callees, per use.
    Child,
    /// Sum of `Itself` and `Child`.
    Total,
    /// Time in own functions, in percent of the kernel's time.
    SelfPercent,
    /// Time in their callees, in percent of the kernel's time.
    ChildPercent,
    /// Sum of `SelfPercent` and `ChildPercent`.
    TotalPercent,
    /// Total, in percent of the time of system calls.
    SystemCallPercent,
    /// Total, in percent of the time of kernel and user code.
    CyclesPercent,
    /// Time of the kernel, in percent of that of kernel and user code.
    SystemPercent,
    /// Lookups that a cache answered, in percent.
    HitPercent,
    /// Number of uses.
    Uses,
    /// Time of the whole kernel.
    Kernel,
    /// Time of user code.
    User,
}

impl StudyQuantity {
    /// Returns the unit of our figure.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Itself | Self::Child | Self::Total => "instructions/use",
            Self::SelfPercent | Self::ChildPercent | Self::TotalPercent => "% of kernel",
            Self::SystemCallPercent => "% of system calls",
            Self::CyclesPercent | Self::SystemPercent => "% of all",
            Self::HitPercent => "%",
            Self::Uses => "uses",
            Self::Kernel | Self::User => "instructions",
        }
    }

    /// Checks whether a change of the quantity is meaningful. A share of a total that shrinks
    /// itself is not.
    pub fn has_change(self) -> bool {
        matches!(self, Self::Itself | Self::Child | Self::Total | Self::Kernel | Self::User)
    }
}

/// Returns the change of a figure against the first, in percent; negative if smaller. The paper's
/// "35%" is -35.5 by this.
pub fn change_percent(first: f64, figure: f64) -> Option<f64> {
    (first > 0.0).then(|| 100.0 * (figure / first - 1.0))
}

impl Study {
    /// Returns the first error in the numbers: table, row and reason.
    pub(crate) fn first_error(&self) -> Option<(String, String, &'static str)> {
        let row_error = |place: &str, row: &str, why| Some((place.to_owned(), row.to_owned(), why));
        if self.kernels.is_empty() {
            return row_error("study", "", "there is no kernel");
        }
        let mut caches = self.kernels.iter().flat_map(|kernel| kernel.caches.values());
        if caches.any(|cache| cache.looked.is_empty() || cache.found.is_empty() == cache.missed.is_empty()) {
            return row_error("study", "", "a cache needs looked, and one of found and missed");
        }
        if self.abstraction.functions.is_empty() {
            return row_error("study", "", "the abstraction has no functions");
        }
        for table in &self.tables {
            for row in &table.rows {
                if row.paper.len() > self.kernels.len() {
                    return row_error(&table.title, &row.name, "the paper has more figures than kernels");
                }
                let is_known = self.kernels.iter().any(|kernel| kernel.caches.contains_key(&row.cache));
                if is_known != (row.what == StudyQuantity::HitPercent) {
                    let why = "hit_percent, and nothing else, needs the cache of a kernel";
                    return row_error(&table.title, &row.name, why);
                }
                if row.paper.iter().any(|figure| !figure.is_finite() || *figure < 0.0) {
                    return row_error(&table.title, &row.name, "figures must be finite and not below 0");
                }
            }
        }
        None
    }
}
