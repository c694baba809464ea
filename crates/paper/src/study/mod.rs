//! A paper that changes a kernel by hand, step by step, and shows after each step what one abstraction costs: McKusick's
//! study of `namei`. What is the paper's and what is ours go through the same arithmetic ([`change_percent`]).

mod abstraction;

pub use abstraction::{Abstraction, Cost, CostError};

use serde::{Deserialize, Serialize};

/// The kernels, the tables, and what they are about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Our workload that does the same.
    pub workload: String,
    /// What is different here.
    #[serde(default)]
    pub about: String,
    /// What is looked at.
    pub abstraction: Abstraction,
    /// The kernels, in the paper's order; figures are held against the first.
    #[serde(rename = "kernel")]
    pub kernels: Vec<Variant>,
    /// The paper's tables.
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
}

/// A kernel of the study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it is called here.
    pub name: String,
    /// What the paper had in its place.
    pub paper: String,
    /// Which of our patches make it; none for the kernel as it is.
    pub patches: Option<String>,
    /// Functions whose calls are lookups in its cache.
    #[serde(default)]
    pub looked: Vec<String>,
    /// Functions whose calls are lookups that found nothing.
    #[serde(default)]
    pub missed: Vec<String>,
}

/// A table: one workload, some quantities of each kernel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its head.
    pub title: String,
    /// The region of the workload that it is of.
    pub region: String,
    /// What is different here.
    #[serde(default)]
    pub about: String,
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<StudyRow>,
}

/// A quantity of each kernel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyRow {
    /// The row's name.
    pub name: String,
    /// What is counted.
    pub what: Quantity,
    /// The unit of the paper's figures; empty if it has none.
    #[serde(default)]
    pub unit: String,
    /// The paper's figure for each kernel, in their order; empty if it has none.
    #[serde(default)]
    pub paper: Vec<f64>,
}

/// What can be counted of an abstraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// In the abstraction's own functions, per use.
    #[serde(rename = "self")]
    Itself,
    /// In what they call, per use.
    Child,
    /// Both.
    Total,
    /// Own functions, per cent of the kernel's time.
    SelfPercent,
    /// What they call, per cent of the kernel's time.
    ChildPercent,
    /// Both.
    TotalPercent,
    /// Lookups that the cache answered, per cent.
    HitPercent,
    /// How often it was used.
    Uses,
    /// All of the kernel.
    Kernel,
}

impl Quantity {
    /// The unit of our figure.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Itself | Self::Child | Self::Total => "instructions/use",
            Self::SelfPercent | Self::ChildPercent | Self::TotalPercent => "% of kernel",
            Self::HitPercent => "%",
            Self::Uses => "uses",
            Self::Kernel => "instructions",
        }
    }

    /// Whether a change of it says anything: a share of what has become smaller itself does not.
    pub fn has_change(self) -> bool {
        matches!(self, Self::Itself | Self::Child | Self::Total | Self::Kernel)
    }
}

/// How much more a figure is than the first, in per cent; less is negative. The paper's "35%" is -35.5 by this.
pub fn change_percent(first: f64, figure: f64) -> Option<f64> {
    (first > 0.0).then(|| 100.0 * (figure / first - 1.0))
}

impl Study {
    /// What is wrong with its numbers, and in which row.
    pub(crate) fn wrong(&self) -> Option<(String, String, &'static str)> {
        let said = |place: &str, row: &str, why| Some((place.to_owned(), row.to_owned(), why));
        if self.kernels.is_empty() {
            return said("study", "", "there is no kernel");
        }
        if self.kernels.iter().any(|kernel| kernel.looked.is_empty() != kernel.missed.is_empty()) {
            return said("study", "", "a kernel needs both looked and missed, or neither");
        }
        if self.abstraction.functions.is_empty() {
            return said("study", "", "the abstraction has no functions");
        }
        for table in &self.tables {
            for row in &table.rows {
                if !row.paper.is_empty() && row.paper.len() != self.kernels.len() {
                    return said(
                        &table.title,
                        &row.name,
                        "the paper's figures are not as many as the kernels",
                    );
                }
                if row.paper.iter().any(|figure| !figure.is_finite() || *figure < 0.0) {
                    return said(&table.title, &row.name, "figures must be finite and not below 0");
                }
            }
        }
        None
    }
}
