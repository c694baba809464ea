//! A paper that looks at a kernel: what it measured and what it found, to be looked at again on today's.

mod measure;

pub use measure::{Before, Counted, Measure};

use serde::{Deserialize, Serialize};

/// What a paper measured and found.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// What is different here.
    #[serde(default)]
    pub about: String,
    /// Figures of the paper, ours beside them.
    #[serde(rename = "table", default)]
    pub tables: Vec<SurveyTable>,
    /// What the paper shows of one run, shown of ours.
    #[serde(rename = "figure", default)]
    pub figures: Vec<SurveyFigure>,
    /// What the paper says.
    #[serde(rename = "finding", default)]
    pub findings: Vec<Finding>,
}

/// Where something is measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Place {
    /// Our workload.
    pub workload: String,
    /// The regions of this name; all if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// On so many CPUs; the workload's own number if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// On a kernel with this set of our patches; as it is if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<String>,
    /// Whether accesses to data are followed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyTable {
    /// Its head.
    pub title: String,
    /// What is different here.
    #[serde(default)]
    pub about: String,
    /// Its rows, in the paper's order.
    #[serde(rename = "row")]
    pub rows: Vec<SurveyRow>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyRow {
    /// Its name in the paper.
    pub name: String,
    /// The paper's figure, as it is printed there; may be empty.
    #[serde(default)]
    pub paper: String,
    /// What of a run of ours answers to it; none with the reason in `none`.
    pub measure: Option<Measure>,
    /// Where.
    pub at: Option<Place>,
    /// Why nothing answers to it.
    #[serde(default)]
    pub none: String,
}

/// A part of a report of ours in the paper's layout.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyFigure {
    /// Its head.
    pub title: String,
    /// What is different here.
    #[serde(default)]
    pub about: String,
    /// Of what run.
    pub at: Place,
    /// Which report.
    pub shows: Shows,
    /// So many functions, or lines.
    pub top: usize,
}

/// A report that a figure is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// Functions by their own time.
    Functions,
    /// A call of this function that took as long as the median, call by call.
    Path(String),
}

/// Something that a paper says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// In its words, shortened.
    pub says: String,
    /// What is looked at here for it, in words.
    #[serde(default)]
    pub here: String,
    /// What is measured; none with the reason in `cannot`.
    pub measure: Option<Measure>,
    /// Where.
    pub at: Option<Place>,
    /// Held against the same, or `than_measure`, there: the figure is then so many per cent of that one.
    pub than: Option<Place>,
    /// Another measure of the place that it is held against.
    pub than_measure: Option<Measure>,
    /// It holds if the figure is this or more.
    pub at_least: Option<f64>,
    /// It holds if the figure is this or less.
    pub at_most: Option<f64>,
    /// Why it cannot be seen here.
    #[serde(default)]
    pub cannot: String,
}

impl Survey {
    /// The first thing that is wrong with it: table, row or finding, and why.
    pub(crate) fn wrong(&self) -> Option<(String, String, &'static str)> {
        for table in &self.tables {
            for row in &table.rows {
                let why = match (&row.measure, &row.at, row.none.is_empty()) {
                    (Some(_), Some(_), true) | (None, None, false) => continue,
                    _ => "a row has `measure` and `at`, or `none` with the reason",
                };
                return Some((table.title.clone(), row.name.clone(), why));
            }
        }
        for finding in &self.findings {
            let bounds = finding.at_least.or(finding.at_most).is_some();
            let other = finding.than.is_some() || finding.than_measure.is_none();
            let why = match (&finding.measure, &finding.at, finding.cannot.is_empty()) {
                (Some(_), Some(_), true) if bounds && other => continue,
                (None, None, false) if !bounds && finding.than.is_none() => continue,
                (Some(_), Some(_), true) => "it needs `at_least` or `at_most`, and `than` for `than_measure`",
                _ => "a finding has `measure` and `at`, or `cannot` with the reason",
            };
            return Some(("findings".into(), finding.says.clone(), why));
        }
        None
    }

    /// Every place at which something is measured, each once.
    pub fn places(&self) -> Vec<&Place> {
        let rows = self.tables.iter().flat_map(|table| &table.rows).filter_map(|row| row.at.as_ref());
        let figures = self.figures.iter().map(|figure| &figure.at);
        let findings = self.findings.iter().flat_map(|finding| finding.at.iter().chain(&finding.than));
        let mut places: Vec<&Place> = rows.chain(figures).chain(findings).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
