//! What came of looking again.

use crate::finding::{Seen, SurveyFinding};
use crate::survey::{Finding, Place, Survey};
use crate::Paper;
use kerntune_compare::KernelRef;
use serde::Serialize;

/// Format and version of a survey in JSON.
pub const SURVEY_SCHEMA: &str = "kerntune-survey/1";

/// A run that figures are of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyRun {
    /// What ran, and where in it.
    #[serde(flatten)]
    pub place: Place,
    /// The recording's id; none if there is none.
    pub profile: Option<String>,
    /// The kernel.
    pub kernel: Option<KernelRef>,
    /// Why there is none.
    pub because: Option<String>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyLine {
    /// Its name in the paper.
    pub name: String,
    /// The paper's figure.
    pub paper: String,
    /// Ours.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// Where it was measured.
    pub at: Option<Place>,
    /// Why there is none.
    pub none: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyPart {
    /// Its head.
    pub title: String,
    /// What is different here.
    pub about: String,
    /// Its rows.
    pub rows: Vec<SurveyLine>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyText {
    /// Its head.
    pub title: String,
    /// What is different here.
    pub about: String,
    /// Where.
    pub at: Place,
    /// The report; why there is none.
    pub text: String,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurveyOutcome {
    /// [`SURVEY_SCHEMA`].
    pub schema: &'static str,
    /// The paper's name here.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Where and when.
    pub published: String,
    /// What its authors measured on.
    pub paper_machine: String,
    /// What we did.
    pub machine: String,
    /// What is different here.
    pub about: String,
    /// The runs.
    pub runs: Vec<SurveyRun>,
    /// The tables.
    pub tables: Vec<SurveyPart>,
    /// The figures, as text.
    pub figures: Vec<SurveyText>,
    /// What became of the findings.
    pub findings: Vec<SurveyFinding>,
}

/// Figures of places; an error says why there is none.
pub type Figures<'a> = dyn FnMut(&Place, &crate::Measure) -> Result<Option<f64>, String> + 'a;

impl SurveyOutcome {
    /// Of a paper that has a survey. `figure` measures; figures' texts are for who can make reports ([`SurveyOutcome::figures`]).
    pub fn new(
        paper: &Paper,
        survey: &Survey,
        machine: &str,
        runs: Vec<SurveyRun>,
        figure: &mut Figures,
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
                rows.push(SurveyLine { name, paper, value, unit, at: row.at.clone(), none });
            }
            tables.push(SurveyPart { title: table.title.clone(), about: table.about.clone(), rows });
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

    /// How many findings became of it so.
    pub fn count(&self, seen: Seen) -> usize {
        self.findings.iter().filter(|finding| finding.seen == seen).count()
    }
}

fn finding(of: &Finding, figure: &mut Figures) -> SurveyFinding {
    let mut found = SurveyFinding {
        says: of.says.clone(),
        seen: Seen::CannotBeSeen,
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
        Err(because) => (found.seen, found.here) = (Seen::NotMade, because),
        Ok(value) => {
            // What never happens is 0 of it.
            let figure = value.unwrap_or(0.0);
            let holds = of.at_least.is_none_or(|least| figure >= least)
                && of.at_most.is_none_or(|most| figure <= most);
            found.seen = if holds { Seen::Reproduced } else { Seen::Contradicted };
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
        let mut figure =
            |place: &Place, _: &crate::Measure| match (place.workload.as_str(), place.region.as_deref()) {
                ("gone", _) => Err("no such package".to_string()),
                (_, Some("x")) => Ok(Some(60.0)),
                (_, Some("y")) => Ok(Some(100.0)),
                (_, Some("fork")) => Ok(Some(900.0)),
                _ => Ok(Some(3.0)),
            };
        let outcome = SurveyOutcome::new(&paper, survey, "emulator", Vec::new(), &mut figure);
        let seen: Vec<_> = outcome.findings.iter().map(|finding| (finding.seen, finding.value)).collect();
        let expected = [
            (Seen::Reproduced, Some(3.0)),
            (Seen::Contradicted, Some(60.0)),
            (Seen::CannotBeSeen, None),
            (Seen::NotMade, None),
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
        assert_eq!(outcome.count(Seen::Reproduced), 1);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        for (findings, words) in [
            ("[[survey.finding]]\nsays='a'\n", "`cannot` with the reason"),
            ("[[survey.finding]]\nsays='a'\nmeasure='path-length'\nat={workload='rr'}\n", "at_least"),
            ("[[survey.finding]]\nsays='a'\nmeasure='speed'\n", "unknown variant"),
            ("[[survey.table]]\ntitle='t'\n[[survey.table.row]]\nname='r'\n", "`none` with the reason"),
        ] {
            let error = parse(findings).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
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
