//! Paper files (`data/papers/*.toml`): experiments and figures of the papers' tables.

use crate::{Error, FigureRef, PaperClaim, Result, Study, Survey};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names and texts of the built-in papers.
const PAPERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/data/papers.rs"));

/// Returns the names of the built-in papers.
pub fn names() -> Vec<&'static str> {
    PAPERS.iter().map(|(name, _)| *name).collect()
}

/// Paper whose experiments kerntune can repeat.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name on the command line.
    pub name: String,
    /// Title of the paper.
    pub title: String,
    /// Authors, separated by commas.
    pub authors: String,
    /// Place and date of publication.
    pub published: String,
    /// Machine of the authors' measurements.
    pub machine: String,
    /// Recipe closest to the authors' method; empty for a study or survey.
    #[serde(default)]
    pub recipe: String,
    /// True if the authors counted values besides arcs, as the recipe `gcc-pgo` can.
    #[serde(default)]
    pub values: bool,
    /// Tables, in the paper's order; empty for a study or survey.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
    /// Claims about the tables; a survey has its own.
    #[serde(rename = "finding", default)]
    pub findings: Vec<PaperClaim>,
    /// Changes by hand to a kernel, and their costs.
    pub study: Option<Study>,
    /// Examination of a kernel.
    pub survey: Option<Survey>,
}

/// Table of the paper, for which one kernel was tuned.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Title of the table.
    pub title: String,
    /// Our workload that does the same.
    pub workload: String,
    /// Differences of our experiment from the paper's.
    #[serde(default)]
    pub about: String,
    /// CPU that keeps the base kernel and plays a second host, while the kernel of the other CPUs
    /// is tuned.
    pub untuned_cpu: Option<u32>,
    /// Rows of the table, in the paper's order.
    #[serde(rename = "row")]
    pub rows: Vec<PaperRow>,
}

/// Direction of improvement of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BetterDirection {
    /// Less is better: a time.
    Lower,
    /// More is better: a throughput.
    Higher,
}

/// Part of a function's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelfOrChild {
    /// Self time.
    #[serde(rename = "self")]
    Itself,
    /// Time in callees.
    Child,
    /// Total time: self and callees.
    Total,
}

/// Figure of a workload that corresponds to a paper's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSource {
    /// Figures of an operation, or of `total`.
    Operation(String),
    /// Time per call of a function.
    Function {
        /// Name of the function.
        name: String,
        /// Part of the function's time.
        part: SelfOrChild,
    },
    /// No figure, for this reason.
    None(String),
}

/// Row of a timed workload: `WORKLOAD/ROW` in files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClockRow {
    /// Name of the workload.
    pub workload: String,
    /// Name of its row.
    pub row: String,
}

impl TryFrom<String> for ClockRow {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once('/') {
            Some((workload, row)) if !workload.is_empty() && !row.is_empty() => {
                Ok(Self { workload: workload.into(), row: row.into() })
            }
            _ => Err(format!("clock = \"{text}\": give WORKLOAD/ROW")),
        }
    }
}

impl From<ClockRow> for String {
    fn from(of: ClockRow) -> Self {
        of.to_string()
    }
}

impl fmt::Display for ClockRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.workload, self.row)
    }
}

/// Row of a paper's table, as printed there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawRow")]
pub struct PaperRow {
    /// Name of the row in the paper.
    pub name: String,
    /// Our figure for the row.
    pub source: RowSource,
    /// Row of a timed workload that does the same, if the row's own workload has no clock.
    pub clock: Option<ClockRow>,
    /// Unit of `base` and `optimized`.
    pub unit: String,
    /// Direction of improvement of the unit.
    pub better: BetterDirection,
    /// Figure before the optimization.
    pub base: f64,
    /// Figure after the optimization.
    pub optimized: f64,
    /// Standard deviation, if the paper has one.
    pub std_dev: Option<f64>,
    /// Improvement as printed; `*` where the noise was larger, empty where the paper has none.
    pub improvement: String,
}

impl PaperRow {
    /// Returns the improvement computed from the paper's figures, in percent.
    pub fn improvement_percent(&self) -> f64 {
        match self.better {
            BetterDirection::Lower => improvement(self.base, self.optimized),
            BetterDirection::Higher => improvement(self.optimized, self.base),
        }
    }
}

/// Returns the improvement of a fall from `base` to `tuned` by the papers' formula, in percent.
pub(crate) fn improvement(base: f64, tuned: f64) -> f64 {
    if base == tuned {
        0.0
    } else {
        100.0 * (base / tuned - 1.0)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    name: String,
    operation: Option<String>,
    function: Option<String>,
    part: Option<SelfOrChild>,
    none: Option<String>,
    clock: Option<ClockRow>,
    unit: String,
    better: BetterDirection,
    base: f64,
    optimized: f64,
    std_dev: Option<f64>,
    improvement: String,
}

impl TryFrom<RawRow> for PaperRow {
    type Error = String;

    fn try_from(raw: RawRow) -> Result<Self, String> {
        let source = match (raw.operation, raw.function, raw.part, raw.none) {
            (Some(operation), None, None, None) => RowSource::Operation(operation),
            (None, Some(name), Some(part), None) => RowSource::Function { name, part },
            (None, None, None, Some(why)) => RowSource::None(why),
            _ => {
                return Err(format!(
                "row \"{}\" needs one of operation, none, or function with part, and nothing of the others",
                raw.name
            ))
            }
        };
        Ok(Self {
            name: raw.name,
            source,
            clock: raw.clock,
            unit: raw.unit,
            better: raw.better,
            base: raw.base,
            optimized: raw.optimized,
            std_dev: raw.std_dev,
            improvement: raw.improvement,
        })
    }
}

impl Paper {
    /// Checks whether a table and row exist for this reference.
    fn has_row(&self, of: &FigureRef) -> bool {
        let is_meant = |name: &String| of.row.as_ref().is_none_or(|row| row == name);
        let measured = self.experiments.iter().filter(|one| of.is_of(&one.workload, &one.title));
        let tables = self.study.iter().flat_map(|study| &study.tables);
        let studied = tables.filter(|one| of.is_of(&one.region, &one.title));
        measured.flat_map(|one| &one.rows).any(|one| is_meant(&one.name))
            || studied.flat_map(|one| &one.rows).any(|one| is_meant(&one.name))
    }

    /// Returns a built-in paper, one of [`names`].
    pub fn named(name: &str) -> Result<Self> {
        let found = PAPERS.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| Error::Unknown { name: name.into() })?;
        Self::parse(text, &format!("data/papers/{name}.toml"))
    }

    /// Parses a paper's file; errors name it `origin`.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let paper: Self = toml::from_str(text)
            .map_err(|error| Error::Syntax { origin: origin.into(), why: error.to_string() })?;
        let row_error = |experiment: String, row: String, why| {
            Err(Error::Row { origin: origin.into(), experiment, row, why })
        };
        if let Some((table, row, why)) = paper.study.as_ref().and_then(Study::first_error) {
            return row_error(table, row, why);
        }
        if let Some((table, row, why)) = paper.survey.as_ref().and_then(Survey::first_error) {
            return row_error(table, row, why);
        }
        let first_error = |claim: &PaperClaim| {
            let why = claim.first_error(paper.study.is_some(), &|of| paper.has_row(of))?;
            Some((claim.says.clone(), why))
        };
        if let Some((says, why)) = paper.findings.iter().find_map(first_error) {
            return row_error("findings".into(), says, why);
        }
        let looks = paper.study.is_some() != paper.survey.is_some();
        match (looks, paper.experiments.is_empty(), paper.recipe.is_empty()) {
            (false, false, false) if paper.study.is_none() => {}
            (true, true, true) => {}
            (true, ..) => {
                return row_error(
                    String::new(),
                    String::new(),
                    "a study or a survey has no recipe and no experiments",
                )
            }
            (false, ..) => {
                let why = "a paper has a recipe and experiments, or a study, or a survey";
                return row_error(String::new(), String::new(), why);
            }
        }
        for experiment in &paper.experiments {
            for row in &experiment.rows {
                let why = match row {
                    _ if !(row.base.is_finite() && row.optimized.is_finite()) => "figures must be finite",
                    _ if row.base <= 0.0 || row.optimized <= 0.0 => "figures must be greater than 0",
                    _ => continue,
                };
                let (experiment, row) = (experiment.title.clone(), row.name.clone());
                return Err(Error::Row { origin: origin.into(), experiment, row, why });
            }
        }
        Ok(paper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The papers' own arithmetic checks the figures that were copied by hand.
    #[test]
    fn the_printed_improvements_follow_from_the_printed_figures() {
        for name in names() {
            let paper = Paper::named(name).unwrap();
            assert_eq!(paper.name, name);
            for row in paper.experiments.iter().flat_map(|experiment| &experiment.rows) {
                if row.improvement == "*" {
                    // Misprint in the paper: 1.18 and 0.17.
                    let is_noise =
                        row.std_dev.is_none_or(|noise| (row.base - row.optimized).abs() <= noise + 0.005);
                    assert!(is_noise || row.name == "getpid", "{name}, {}: no noise", row.name);
                    continue;
                }
                let Some(printed) = row.improvement.strip_suffix('%') else { continue };
                let printed: f64 = printed.trim().parse().unwrap();
                // Misprint in the paper: its figures give -0.45 %.
                if row.name == "read(fd_file, 1024) from cache" {
                    continue;
                }
                let ours = row.improvement_percent();
                assert!((ours - printed).abs() <= 0.55, "{name}, {}: {printed} and {ours:.2}", row.name);
            }
        }
    }

    #[test]
    fn a_row_says_what_it_is_compared_with() {
        let text = |row: &str| {
            format!(
                "name='x'\ntitle=''\nauthors=''\npublished=''\nmachine=''\nrecipe='gcc-pgo'\n[[experiment]]\n\
                 title='t'\nworkload='rr'\n[[experiment.row]]\nname='r'\nunit='s'\nbetter='lower'\n\
                 optimized=1\nimprovement=''\n{row}"
            )
        };
        let parse = |row: &str| Paper::parse(&text(row), "x.toml");
        assert_eq!(
            parse("base=2\noperation='total'").unwrap().experiments[0].rows[0].improvement_percent(),
            100.0
        );
        for (row, words) in [
            ("base=2", "needs one of operation"),
            ("base=2\noperation='a'\nnone='b'", "needs one of operation"),
            ("base=2\nfunction='a'", "needs one of operation"),
            ("base=0\nnone='b'", "greater than 0"),
            ("base=nan\nnone='b'", "finite"),
            ("base=2\nnone='b'\nother=1", "unknown field"),
            ("base=2\noperation='a'\nclock='batched'", "give WORKLOAD/ROW"),
        ] {
            let error = parse(row).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("x.toml"), "{row}: {error}");
        }
        assert!(Paper::named("hp").unwrap_err().to_string().contains("chen, hpux, mckusick, mcrae, yuan"));
    }
}
