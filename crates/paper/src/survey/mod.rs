//! Surveys: papers that examine a kernel, and whose measurements and findings are repeated on
//! today's.

mod measure;

pub use measure::{BoundaryPath, Measure, PathCount};

use kerntune_report::advise;
use kerntune_tune::trial::TrialChange;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Measurements and findings of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// Differences of our experiment from the paper's.
    #[serde(default)]
    pub about: String,
    /// Tables of the paper.
    #[serde(rename = "table", default)]
    pub tables: Vec<SurveyTable>,
    /// Figures of the paper for one run, repeated for ours.
    #[serde(rename = "figure", default)]
    pub figures: Vec<SurveyFigure>,
    /// Changes that places name, besides those of the rules of advice.
    #[serde(rename = "change", default)]
    pub changes: Vec<TrialChange>,
    /// Findings of the paper.
    #[serde(rename = "finding", default)]
    pub findings: Vec<SurveyClaim>,
}

/// Run and region of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunLocation {
    /// Our workload.
    pub workload: String,
    /// Name of the regions; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Number of CPUs; `None` for the workload's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Set of our patches to the kernel; `None` for the unpatched kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<String>,
    /// Source of the kernel (`debian:6.1`); `None` for the one that the command names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Changes to kernel and workload, in this order: names of [`Survey::changes`] or of rules of
    /// advice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// True if data accesses are recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data: bool,
}

/// Table of a survey.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyTable {
    /// Title of the table.
    pub title: String,
    /// Differences of our experiment from the paper's.
    #[serde(default)]
    pub about: String,
    /// Rows, in the paper's order.
    #[serde(rename = "row")]
    pub rows: Vec<SurveyRow>,
}

/// Row of a survey's table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyRow {
    /// Name of the row in the paper.
    pub name: String,
    /// The paper's figure, as printed; may be empty.
    #[serde(default)]
    pub paper: String,
    /// Our figure for the row; `None` with the reason in `none`.
    pub measure: Option<Measure>,
    /// Run and region of our figure.
    pub at: Option<RunLocation>,
    /// Reason that there is no figure.
    #[serde(default)]
    pub none: String,
}

/// Part of one of our reports in the layout of a paper's figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyFigure {
    /// Title of the figure.
    pub title: String,
    /// Differences of our experiment from the paper's.
    #[serde(default)]
    pub about: String,
    /// Run of the figure.
    pub at: RunLocation,
    /// Report that the figure shows.
    pub shows: FigureReport,
    /// Number of functions or lines.
    pub top: usize,
}

/// Report of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureReport {
    /// Functions by self time.
    Functions,
    /// A call of this function with the median duration, call by call.
    Path(String),
}

/// Finding of a survey, with the measure and the bounds that it must keep.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyClaim {
    /// Statement in the paper's words, shortened.
    pub says: String,
    /// Description of our figure, for a reader.
    #[serde(default)]
    pub here: String,
    /// Measured quantity; `None` with the reason in `cannot`.
    pub measure: Option<Measure>,
    /// Run and region of the measurement.
    pub at: Option<RunLocation>,
    /// Run to compare with: the figure is then in percent of the same measure there, or of
    /// `than_measure`.
    pub than: Option<RunLocation>,
    /// Measure of `than`, if it differs.
    pub than_measure: Option<Measure>,
    /// Smallest figure with which the finding holds.
    pub at_least: Option<f64>,
    /// Largest figure with which the finding holds.
    pub at_most: Option<f64>,
    /// Reason that the finding cannot be checked here.
    #[serde(default)]
    pub cannot: String,
}

impl Survey {
    /// Returns the first error: table, row or finding, and reason.
    pub(crate) fn first_error(&self) -> Option<(String, String, &'static str)> {
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
        let of_built = |change: &&TrialChange| !change.patches.is_empty() || change.recipe.is_some();
        if let Some(change) = self.changes.iter().find(of_built) {
            return Some((
                "changes".into(),
                change.name.clone(),
                "it has patches or a recipe: places name `patches`",
            ));
        }
        let unknown = |name: &&String| self.change(name).is_none();
        let missing = self.places().into_iter().flat_map(|place| &place.changes).find(unknown);
        missing.map(|name| {
            ("changes".into(), name.clone(), "no [[survey.change]] and no rule with a change has this name")
        })
    }

    /// Returns the change of this name: the survey's own, or that of a rule of advice.
    pub fn change(&self, name: &str) -> Option<TrialChange> {
        let own = self.changes.iter().find(|change| change.name == name).cloned();
        own.or_else(|| {
            let rule = advise::built_in().into_iter().find(|rule| rule.name() == name)?;
            let mut change: Table = Some(rule.change()).filter(|change| !change.is_empty())?.clone();
            change.insert("name".into(), name.into());
            Value::Table(change).try_into().ok()
        })
    }

    /// Returns every run and region of a measurement, each once.
    pub fn places(&self) -> Vec<&RunLocation> {
        let rows = self.tables.iter().flat_map(|table| &table.rows).filter_map(|row| row.at.as_ref());
        let figures = self.figures.iter().map(|figure| &figure.at);
        let findings = self.findings.iter().flat_map(|finding| finding.at.iter().chain(&finding.than));
        let mut places: Vec<&RunLocation> = rows.chain(figures).chain(findings).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
