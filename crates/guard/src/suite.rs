//! Results of checks as suites of cases, for the formats of CI systems (pure).

use crate::check::{CheckReport, CheckedCell, CheckedRow};
use crate::finding::FindingRule;
use crate::judge::RowVerdict;
use crate::program::{CheckedFigure, CheckedProgramRow, ProgramChange, ProgramCheck, SourcePlace};
use std::fmt::Write;

/// A workload of a check, on one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSuite {
    /// Name: `rr.hz-100.gcc`.
    pub name: String,
    /// Cases, in the order of the tables.
    pub cases: Vec<CheckCase>,
    /// Further text for the log; `None` without any.
    pub note: Option<String>,
}

/// A row, a figure of a row, or a sum that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckCase {
    /// Name within the suite.
    pub name: String,
    /// Finding; `None` if there is none.
    pub finding: Option<CheckFinding>,
}

/// A finding of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFinding {
    /// Kind of finding.
    pub rule: FindingRule,
    /// One sentence.
    pub message: String,
    /// Functions, calls and paths that explain it, one line each.
    pub details: String,
    /// Source line that explains most of it; `None` if it is not known.
    pub place: Option<SourcePlace>,
}

impl CheckReport {
    /// Returns the result as suites: a case for each row, and one for what is put off.
    pub fn suites(&self) -> Vec<CheckSuite> {
        self.cells.iter().map(of_cell).collect()
    }
}

fn missing(row: &str) -> CheckCase {
    let finding = CheckFinding {
        rule: FindingRule::MissingRow,
        message: "missing: only one of the two has this row".into(),
        details: String::new(),
        place: None,
    };
    CheckCase { name: row.to_owned(), finding: Some(finding) }
}

fn of_cell(cell: &CheckedCell) -> CheckSuite {
    let names = [&cell.workload, &cell.configuration, &cell.compiler];
    let name: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect();
    let mut cases: Vec<CheckCase> = cell.rows.iter().map(of_row).collect();
    cases.extend(cell.missing.iter().map(|row| missing(row)));
    let deferred = cell.deferred.longer.then(|| {
        let [before, after] = cell.deferred.sum;
        let classes = cell.deferred.classes.iter();
        CheckFinding {
            rule: FindingRule::Deferred,
            message: format!("{before} to {after} instructions are put off"),
            details: classes.map(|(class, [a, b])| format!("{class}: {a} to {b}\n")).collect(),
            place: None,
        }
    });
    cases.push(CheckCase { name: "[put off]".into(), finding: deferred });
    CheckSuite { name: name.join("."), cases, note: cell.remeasured.clone() }
}

fn of_row(row: &CheckedRow) -> CheckCase {
    let finding = row.verdict.is_finding().then(|| {
        let [before, after] = row.path;
        let (rule, message) = match row.verdict {
            RowVerdict::Compensated => (
                FindingRule::Compensated,
                format!("{:.1} instructions/op are made up for elsewhere in {before:.1}", row.compensated),
            ),
            _ => (
                FindingRule::LongerPath,
                format!(
                    "{before:.1} to {after:.1} instructions/op ({:+.3} %)",
                    row.change_percent.unwrap_or(f64::INFINITY)
                ),
            ),
        };
        let functions = || row.explained.iter().flat_map(|explained| &explained.functions);
        let mut details = String::new();
        for function in functions() {
            let place = function.source.as_ref().map(|at| format!(" {}:{}", at.file, at.line));
            let _ = writeln!(
                details,
                "{:+} {}{}: {}",
                function.change(),
                function.function,
                place.unwrap_or_default(),
                function.path.join(" > ")
            );
        }
        let first = functions().find_map(|function| function.source.as_ref());
        let place = first.map(|at| SourcePlace {
            file: at.file.clone(),
            line: at.added.first().map_or(at.line, |line| line.line).try_into().unwrap_or(u32::MAX),
        });
        CheckFinding { rule, message, details, place }
    });
    CheckCase { name: row.row.clone(), finding }
}

impl ProgramCheck {
    /// Returns the result as suites: a case for each figure of each row.
    pub fn suites(&self) -> Vec<CheckSuite> {
        let of = |cell: &crate::program::ProgramCheckCell| {
            let figures = cell.rows.iter().flat_map(|row| row.figures.iter().map(move |of| (row, of)));
            let judged = figures.filter(|(_, figure)| figure.metric.rule().is_some());
            let mut cases: Vec<CheckCase> = judged.map(|(row, figure)| of_figure(row, figure)).collect();
            cases.extend(cell.missing.iter().map(|row| missing(row)));
            CheckSuite { name: cell.workload.clone(), cases, note: None }
        };
        self.cells.iter().map(of).collect()
    }
}

fn of_figure(row: &CheckedProgramRow, figure: &CheckedFigure) -> CheckCase {
    let changes = || row.changes.iter().filter(|change| change.metric == figure.metric);
    let finding = figure.metric.rule().filter(|_| figure.grew).map(|rule| {
        let [before, after] = figure.values;
        let unit = figure.metric.unit();
        let first = changes().next().map_or(String::new(), |change| format!(": {}", change_text(change)));
        CheckFinding {
            rule,
            message: format!("{}: {before:.3} to {after:.3} {unit}/op{first}", figure.metric.name()),
            details: changes().map(|change| change_text(change) + "\n").collect(),
            place: changes().find_map(|change| change.place.clone()),
        }
    });
    CheckCase { name: format!("{} ({})", row.row, figure.metric.name()), finding }
}

fn change_text(change: &ProgramChange) -> String {
    let by = change.caller.as_ref().map_or(String::new(), |caller| format!(" by {caller}"));
    format!("{}{by} {:+.3}", change.name, change.values[1] - change.values[0])
}
