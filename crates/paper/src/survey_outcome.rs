//! Results of a repeated survey.

use crate::finding::{FindingResult, FindingVerdict};
use crate::survey::{RunLocation, Survey, SurveyClaim};
use crate::Paper;
use kerntune_compare::KernelRef;
use serde::Serialize;

/// Name and version of the JSON form of a survey.
pub const SURVEY_SCHEMA: &str = "kerntune-survey/1";

/// Run behind figures of a survey.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyRun {
    /// Workload, region and kernel variant of the run.
    #[serde(flatten)]
    pub place: RunLocation,
    /// Id of the recorded profile; `None` without one.
    pub profile: Option<String>,
    /// Kernel of the run.
    pub kernel: Option<KernelRef>,
    /// Reason that there is no profile.
    pub because: Option<String>,
}

/// Row of a survey's table with our figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyRowResult {
    /// Name of the row in the paper.
    pub name: String,
    /// The paper's figure, as printed.
    pub paper: String,
    /// Our figure.
    pub value: Option<f64>,
    /// Unit of our figure.
    pub unit: &'static str,
    /// Run and region of our figure.
    pub at: Option<RunLocation>,
    /// Reason that there is no figure.
    pub none: String,
}

/// Table of a survey with our figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyTableResult {
    /// Title of the table.
    pub title: String,
    /// Differences of our experiment from the paper's.
    pub about: String,
    /// Rows, in the paper's order.
    pub rows: Vec<SurveyRowResult>,
}

/// Figure of a survey: part of one of our reports, as text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyText {
    /// Title of the figure.
    pub title: String,
    /// Differences of our experiment from the paper's.
    pub about: String,
    /// Run of the figure.
    pub at: RunLocation,
    /// Text of the report, or the reason that there is none.
    pub text: String,
}

/// Tables, figures and findings of a survey, with our results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyOutcome {
    /// Always [`SURVEY_SCHEMA`].
    pub schema: &'static str,
    /// Name of the paper on the command line.
    pub name: String,
    /// Title of the paper.
    pub title: String,
    /// Authors of the paper, separated by commas.
    pub authors: String,
    /// Place and date of publication.
    pub published: String,
    /// Machine of the paper's measurements.
    pub paper_machine: String,
    /// Our machine.
    pub machine: String,
    /// Differences of our experiment from the paper's.
    pub about: String,
    /// Runs, each once.
    pub runs: Vec<SurveyRun>,
    /// Tables, in the paper's order.
    pub tables: Vec<SurveyTableResult>,
    /// Figures as text.
    pub figures: Vec<SurveyText>,
    /// Verdicts on the paper's findings.
    pub findings: Vec<FindingResult>,
}

/// Function that returns a figure of a run, or the reason that there is none.
pub type FigureLookup<'a> = dyn FnMut(&RunLocation, &crate::Measure) -> Result<Option<f64>, String> + 'a;

impl SurveyOutcome {
    /// Creates the outcome of a paper's survey. `figure` measures. Callers that can make reports
    /// add the texts of figures ([`SurveyOutcome::figures`]).
    pub fn new(
        paper: &Paper,
        survey: &Survey,
        machine: &str,
        runs: Vec<SurveyRun>,
        figure: &mut FigureLookup,
    ) -> Self {
        let mut tables = Vec::new();
        for table in &survey.tables {
            let mut rows = Vec::new();
            for row in &table.rows {
                let (mut value, mut none) = (None, row.none.clone());
                if let (Some(measure), Some(at)) = (&row.measure, &row.at) {
                    match figure(at, measure) {
                        Ok(Some(found)) => value = Some(found),
                        Ok(None) => none = "nothing of the kind happened".into(),
                        Err(because) => none = because,
                    }
                }
                let unit = row.measure.as_ref().map_or("", crate::Measure::unit);
                let (name, paper) = (row.name.clone(), row.paper.clone());
                rows.push(SurveyRowResult { name, paper, value, unit, at: row.at.clone(), none });
            }
            tables.push(SurveyTableResult { title: table.title.clone(), about: table.about.clone(), rows });
        }
        Self {
            schema: SURVEY_SCHEMA,
            name: paper.name.clone(),
            title: paper.title.clone(),
            authors: paper.authors.clone(),
            published: paper.published.clone(),
            paper_machine: paper.machine.clone(),
            machine: machine.into(),
            about: survey.about.clone(),
            runs,
            tables,
            figures: Vec::new(),
            findings: survey.findings.iter().map(|of| finding(of, figure)).collect(),
        }
    }

    /// Counts the findings with a verdict.
    pub fn count(&self, seen: FindingVerdict) -> usize {
        self.findings.iter().filter(|finding| finding.seen == seen).count()
    }
}

fn finding(of: &SurveyClaim, figure: &mut FigureLookup) -> FindingResult {
    let mut found = FindingResult {
        says: of.says.clone(),
        seen: FindingVerdict::CannotBeSeen,
        value: None,
        interval: None,
        unit: String::new(),
        bounds: [of.at_least, of.at_most],
        here: if of.cannot.is_empty() { of.here.clone() } else { of.cannot.clone() },
        at: of.at.clone(),
    };
    let (Some(measure), Some(at)) = (&of.measure, &of.at) else { return found };
    found.unit = measure.unit().into();
    let mut value = || -> Result<Option<f64>, String> {
        let Some(one) = figure(at, measure)? else { return Ok(None) };
        let Some(than) = &of.than else { return Ok(Some(one)) };
        let other = figure(than, of.than_measure.as_ref().unwrap_or(measure))?;
        Ok(other.filter(|other| *other != 0.0).map(|other| 100.0 * one / other))
    };
    match value() {
        Err(because) => (found.seen, found.here) = (FindingVerdict::NotMade, because),
        Ok(value) => {
            // An event that never happens has a figure of 0.
            let figure = value.unwrap_or(0.0);
            let holds =
                of.at_least.is_none_or(|min| figure >= min) && of.at_most.is_none_or(|max| figure <= max);
            found.seen = if holds { FindingVerdict::Reproduced } else { FindingVerdict::Contradicted };
            found.value = Some(figure);
            if of.than.is_some() {
                found.unit = "%".into();
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = "name='x'\ntitle='t'\nauthors='a'\npublished='p'\nmachine='m'\n[survey]\n\
        [[survey.table]]\ntitle='T'\n[[survey.table.row]]\nname='fault'\npaper='410 us'\n\
        measure={per-call=['handle_mm_fault']}\nat={workload='rr',region='fork'}\n\
        [[survey.table.row]]\nname='spl0'\npaper='25 us'\nnone='there is none'\n";

    fn parse(findings: &str) -> Result<Paper, String> {
        Paper::parse(&format!("{PAPER}{findings}"), "x.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn findings_are_held_against_figures() {
        let paper = parse(
            "[[survey.finding]]\nsays='a'\nmeasure='idle-percent'\nat={workload='rr'}\nat_most=10\n\
             [[survey.finding]]\nsays='b'\nmeasure='path-length'\nat={workload='rr',region='x'}\n\
             than={workload='rr',region='y'}\nat_most=50\n\
             [[survey.finding]]\nsays='c'\ncannot='no bus'\n\
             [[survey.finding]]\nsays='d'\nmeasure='switches'\nat={workload='gone'}\nat_least=1\n",
        )
        .unwrap();
        let survey = paper.survey.as_ref().unwrap();
        let places: Vec<_> = survey.places().iter().map(|place| place.workload.as_str()).collect();
        assert_eq!(places, ["gone", "rr", "rr", "rr", "rr"]);
        let mut figure = |place: &RunLocation, _: &crate::Measure| match (
            place.workload.as_str(),
            place.region.as_deref(),
        ) {
            ("gone", _) => Err("no such package".to_string()),
            (_, Some("x")) => Ok(Some(60.0)),
            (_, Some("y")) => Ok(Some(100.0)),
            (_, Some("fork")) => Ok(Some(900.0)),
            _ => Ok(Some(3.0)),
        };
        let outcome = SurveyOutcome::new(&paper, survey, "emulator", Vec::new(), &mut figure);
        let seen: Vec<_> = outcome.findings.iter().map(|finding| (finding.seen, finding.value)).collect();
        let expected = [
            (FindingVerdict::Reproduced, Some(3.0)),
            (FindingVerdict::Contradicted, Some(60.0)),
            (FindingVerdict::CannotBeSeen, None),
            (FindingVerdict::NotMade, None),
        ];
        assert_eq!(seen, expected);
        assert_eq!(
            (outcome.findings[1].unit.as_str(), outcome.findings[3].here.as_str()),
            ("%", "no such package")
        );
        let rows = &outcome.tables[0].rows;
        assert_eq!(
            (rows[0].value, rows[0].unit, rows[1].none.as_str()),
            (Some(900.0), "instructions/call", "there is none")
        );
        assert_eq!(outcome.count(FindingVerdict::Reproduced), 1);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let with_change = |name: &str| {
            format!(
                "[[survey.finding]]\nsays='a'\nmeasure='path-length'\nat={{workload='rr',changes=['{name}']}}\n\
                 at_least=1\n"
            )
        };
        for (findings, words) in [
            ("[[survey.finding]]\nsays='a'\n", "`cannot` with the reason"),
            ("[[survey.finding]]\nsays='a'\nmeasure='path-length'\nat={workload='rr'}\n", "at_least"),
            ("[[survey.finding]]\nsays='a'\nmeasure='speed'\n", "unknown variant"),
            ("[[survey.table]]\ntitle='t'\n[[survey.table.row]]\nname='r'\n", "`none` with the reason"),
            (&with_change("no-such-change"), "no rule with a change has this name"),
            // A rule without a change.
            (&with_change("lock-contention"), "no rule with a change has this name"),
            ("[[survey.change]]\nname='a'\nrecipe='layout'\n", "it has patches or a recipe"),
        ] {
            let error = parse(findings).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_change_is_the_papers_own_or_a_rules() {
        let paper = parse("[[survey.change]]\nname='own'\ncommand_line='no5lvl'\n").unwrap();
        let survey = paper.survey.unwrap();
        assert_eq!(survey.change("own").unwrap().command_line, "no5lvl");
        let rule = survey.change("tcp-timestamps").unwrap();
        assert_eq!(
            (rule.name.as_str(), rule.sysctl["net.ipv4.tcp_timestamps"].as_str()),
            ("tcp-timestamps", "0")
        );
        assert!(survey.change("lock-contention").is_none());
    }

    #[test]
    fn the_papers_that_are_built_in_are_well_formed() {
        for name in ["mcrae", "chen"] {
            let paper = Paper::named(name).unwrap();
            let survey = paper.survey.as_ref().unwrap();
            assert!(
                survey.findings.len() >= 8 && !survey.tables.is_empty() && !survey.places().is_empty(),
                "{name}"
            );
        }
    }
}
