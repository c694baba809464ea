//! A paper: its experiments and the figures of its tables (`papers/*.toml`).

use crate::{Claim, Error, Evidence, Result, Study, Survey};
use serde::{Deserialize, Serialize};

/// The papers that are built in: names and texts.
const PAPERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// Their names.
pub fn names() -> Vec<&'static str> {
    PAPERS.iter().map(|(name, _)| *name).collect()
}

/// A paper whose experiment can be repeated.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// What it is called on the command line.
    pub name: String,
    /// The paper's title.
    pub title: String,
    /// Its authors, separated by commas.
    pub authors: String,
    /// Where and when.
    pub published: String,
    /// What its authors measured on.
    pub machine: String,
    /// The recipe that is nearest to what they did; empty for a study.
    #[serde(default)]
    pub recipe: String,
    /// Whether they counted values besides arcs, as the recipe `gcc-pgo` can.
    #[serde(default)]
    pub values: bool,
    /// Its tables, in its order; none for a study.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
    /// What it says of them; a survey has its own.
    #[serde(rename = "finding", default)]
    pub findings: Vec<Claim>,
    /// What it changed by hand.
    pub study: Option<Study>,
    /// What it looked at.
    pub survey: Option<Survey>,
}

/// A table of the paper: one kernel was tuned for it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The table's head.
    pub title: String,
    /// Our workload that does the same.
    pub workload: String,
    /// What is different here.
    #[serde(default)]
    pub about: String,
    /// The CPU that stands for a host of its own with the base kernel, while the other CPUs' kernel is tuned.
    pub untuned_cpu: Option<u32>,
    /// The table's rows, in its order.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// Whether more or less of a unit is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better: a time.
    Lower,
    /// More is better: a throughput.
    Higher,
}

/// Which of a function's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelfOrChild {
    /// In the function itself.
    #[serde(rename = "self")]
    Itself,
    /// In what it calls.
    Child,
    /// Both.
    Total,
}

/// What of a workload answers to a row of a paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An operation's figures, or `total`.
    Operation(String),
    /// A function's time per call.
    Function {
        /// The function's name.
        name: String,
        /// Which of its times.
        part: SelfOrChild,
    },
    /// Nothing, for this reason.
    None(String),
}

/// A line of a paper's table, as it is printed there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawRow")]
pub struct Row {
    /// The row's name in the paper.
    pub name: String,
    /// Which of our figures answers to it.
    pub source: Source,
    /// The unit of `base` and `optimised`.
    pub unit: String,
    /// Whether more or less of the unit is better.
    pub better: Better,
    /// The figure before.
    pub base: f64,
    /// The figure after.
    pub optimised: f64,
    /// Of the measurements, where the paper has it.
    pub std_dev: Option<f64>,
    /// As printed; `*` where the noise was larger, empty where the paper has none.
    pub improvement: String,
}

impl Row {
    /// The improvement that follows from the paper's figures, percent.
    pub fn improvement_percent(&self) -> f64 {
        match self.better {
            Better::Lower => improvement(self.base, self.optimised),
            Better::Higher => improvement(self.optimised, self.base),
        }
    }
}

/// What a fall from `base` to `tuned` is worth as the papers count, percent.
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
    unit: String,
    better: Better,
    base: f64,
    optimised: f64,
    std_dev: Option<f64>,
    improvement: String,
}

impl TryFrom<RawRow> for Row {
    type Error = String;

    fn try_from(raw: RawRow) -> Result<Self, String> {
        let source = match (raw.operation, raw.function, raw.part, raw.none) {
            (Some(operation), None, None, None) => Source::Operation(operation),
            (None, Some(name), Some(part), None) => Source::Function { name, part },
            (None, None, None, Some(why)) => Source::None(why),
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
            unit: raw.unit,
            better: raw.better,
            base: raw.base,
            optimised: raw.optimised,
            std_dev: raw.std_dev,
            improvement: raw.improvement,
        })
    }
}

impl Paper {
    /// Whether a table that is meant has a row that is.
    fn has_row(&self, of: &Evidence) -> bool {
        let is_meant = |name: &String| of.row.as_ref().is_none_or(|row| row == name);
        let measured = self.experiments.iter().filter(|one| of.is_of(&one.workload, &one.title));
        let tables = self.study.iter().flat_map(|study| &study.tables);
        let studied = tables.filter(|one| of.is_of(&one.region, &one.title));
        measured.flat_map(|one| &one.rows).any(|one| is_meant(&one.name))
            || studied.flat_map(|one| &one.rows).any(|one| is_meant(&one.name))
    }

    /// One of [`names`].
    pub fn named(name: &str) -> Result<Self> {
        let found = PAPERS.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| Error::Unknown { name: name.into() })?;
        Self::parse(text, &format!("papers/{name}.toml"))
    }

    /// A paper's file; `origin` is what errors call it.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let paper: Self = toml::from_str(text)
            .map_err(|error| Error::Syntax { origin: origin.into(), why: error.to_string() })?;
        let said = |experiment: String, row: String, why| {
            Err(Error::Row { origin: origin.into(), experiment, row, why })
        };
        if let Some((table, row, why)) = paper.study.as_ref().and_then(Study::wrong) {
            return said(table, row, why);
        }
        if let Some((table, row, why)) = paper.survey.as_ref().and_then(Survey::wrong) {
            return said(table, row, why);
        }
        let wrong = |claim: &Claim| {
            let why = claim.wrong(paper.study.is_some(), &|of| paper.has_row(of))?;
            Some((claim.says.clone(), why))
        };
        if let Some((says, why)) = paper.findings.iter().find_map(wrong) {
            return said("findings".into(), says, why);
        }
        let looks = paper.study.is_some() != paper.survey.is_some();
        match (looks, paper.experiments.is_empty(), paper.recipe.is_empty()) {
            (false, false, false) if paper.study.is_none() => {}
            (true, true, true) => {}
            (true, ..) => {
                return said(
                    String::new(),
                    String::new(),
                    "a study or a survey has no recipe and no experiments",
                )
            }
            (false, ..) => {
                let why = "a paper has a recipe and experiments, or a study, or a survey";
                return said(String::new(), String::new(), why);
            }
        }
        for experiment in &paper.experiments {
            for row in &experiment.rows {
                let why = match row {
                    _ if !(row.base.is_finite() && row.optimised.is_finite()) => "figures must be finite",
                    _ if row.base <= 0.0 || row.optimised <= 0.0 => "figures must be greater than 0",
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

    /// What was copied from paper is checked by the papers' own arithmetic.
    #[test]
    fn the_printed_improvements_follow_from_the_printed_figures() {
        for name in names() {
            let paper = Paper::named(name).unwrap();
            assert_eq!(paper.name, name);
            for row in paper.experiments.iter().flat_map(|experiment| &experiment.rows) {
                if row.improvement == "*" {
                    // The paper's misprint: 1.18 and 0.17.
                    let is_noise =
                        row.std_dev.is_none_or(|noise| (row.base - row.optimised).abs() <= noise + 0.005);
                    assert!(is_noise || row.name == "getpid", "{name}, {}: no noise", row.name);
                    continue;
                }
                let Some(printed) = row.improvement.strip_suffix('%') else { continue };
                let printed: f64 = printed.trim().parse().unwrap();
                // The paper's misprint: its figures give -0.45 %.
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
                 optimised=1\nimprovement=''\n{row}"
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
        ] {
            let error = parse(row).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("x.toml"), "{row}: {error}");
        }
        assert!(Paper::named("hp").unwrap_err().to_string().contains("chen, hpux, mckusick, mcrae, yuan"));
    }
}
