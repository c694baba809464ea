//! The paper's tables with ours beside them.

use crate::claim::{judge, Evidence, Gain, Span};
use crate::study::{change_percent, Cost, Quantity, Study, StudyRow, Table, Variant};
use crate::{Paper, SurveyFinding};
use kerntune_compare::KernelRef;
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-study/1";

/// All of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyOutcome {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// The paper's name on the command line.
    pub name: String,
    /// The paper's title.
    pub title: String,
    /// Its authors, separated by commas.
    pub authors: String,
    /// Where and when it appeared.
    pub published: String,
    /// What its authors measured on.
    pub paper_machine: String,
    /// Our machine.
    pub machine: String,
    /// Our workload.
    pub workload: String,
    /// What is different here.
    pub about: String,
    /// What is looked at, and which functions it is.
    pub abstraction: String,
    /// Its functions.
    pub functions: Vec<String>,
    /// The kernels, in the paper's order.
    pub kernels: Vec<StudyKernel>,
    /// The tables, in the paper's order.
    pub tables: Vec<StudyTable>,
    /// What becomes of what the paper says.
    pub findings: Vec<SurveyFinding>,
}

/// A kernel of the study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyKernel {
    /// What it is called here.
    pub name: String,
    /// What the paper had in its place.
    pub paper: String,
    /// Our patches that make it, if any.
    pub patches: Option<String>,
    /// The kernel.
    pub kernel: KernelRef,
    /// The recording's id.
    pub profile: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyTable {
    /// Its head.
    pub title: String,
    /// The region of the workload.
    pub region: String,
    /// What is different here; may be empty.
    pub about: String,
    /// Its rows.
    pub rows: Vec<StudyLine>,
}

/// A quantity of each kernel; in every list the kernels' order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyLine {
    /// The row's name.
    pub name: String,
    /// What is counted.
    pub what: Quantity,
    /// The unit of the paper's figures.
    pub paper_unit: String,
    /// The paper's figures; empty if it has none.
    pub paper: Vec<f64>,
    /// How much more than the first, per cent.
    pub paper_change_percent: Vec<Option<f64>>,
    /// The unit of ours.
    pub unit: &'static str,
    /// Our figures.
    pub ours: Vec<Option<f64>>,
    /// How much more than the first, per cent: by the same formula.
    pub change_percent: Vec<Option<f64>>,
}

impl StudyOutcome {
    /// Of a paper that has a study: the kernels with their recordings' ids, and what each cost for each table.
    pub fn new(
        paper: &Paper,
        study: &Study,
        machine: &str,
        kernels: Vec<(&Variant, KernelRef, String)>,
        costs: &[Vec<Cost>],
    ) -> Self {
        let kernel = |(variant, kernel, profile): (&Variant, KernelRef, String)| StudyKernel {
            name: variant.name.clone(),
            paper: variant.paper.clone(),
            patches: variant.patches.clone(),
            kernel,
            profile,
        };
        let mut outcome = Self {
            schema: SCHEMA,
            name: paper.name.clone(),
            title: paper.title.clone(),
            authors: paper.authors.clone(),
            published: paper.published.clone(),
            paper_machine: paper.machine.clone(),
            machine: machine.into(),
            workload: study.workload.clone(),
            about: study.about.clone(),
            abstraction: study.abstraction.name.clone(),
            functions: study.abstraction.functions.clone(),
            kernels: kernels.into_iter().map(kernel).collect(),
            tables: study
                .tables
                .iter()
                .zip(costs)
                .map(|(table, costs)| StudyTable::new(table, costs))
                .collect(),
            findings: Vec::new(),
        };
        outcome.findings = judge(&paper.findings, &|of| outcome.figure(of));
        outcome
    }

    fn figure(&self, of: &Evidence) -> Result<Span, String> {
        let tables = self.tables.iter().filter(|table| of.is_of(&table.region, &table.title));
        let mut rows = tables.flat_map(|table| &table.rows);
        let row = rows.find(|row| of.row.as_ref() == Some(&row.name)).ok_or("there is no such row")?;
        let figures = if of.figure == Gain::Figure { &row.ours } else { &row.change_percent };
        let at = of.kernel.unwrap_or(figures.len()).checked_sub(1);
        let figure = at.and_then(|at| figures.get(at).copied().flatten());
        figure.map(Span::exact).ok_or_else(|| format!("{}: there is no figure of this kernel", row.name))
    }
}

impl StudyTable {
    fn new(table: &Table, costs: &[Cost]) -> Self {
        Self {
            title: table.title.clone(),
            region: table.region.clone(),
            about: table.about.clone(),
            rows: table.rows.iter().map(|row| StudyLine::new(row, costs)).collect(),
        }
    }
}

impl StudyLine {
    fn new(row: &StudyRow, costs: &[Cost]) -> Self {
        let ours: Vec<Option<f64>> = costs.iter().map(|cost| cost.figure(row.what)).collect();
        let paper: Vec<Option<f64>> = row.paper.iter().map(|figure| Some(*figure)).collect();
        Self {
            name: row.name.clone(),
            what: row.what,
            paper_unit: row.unit.clone(),
            paper: row.paper.clone(),
            paper_change_percent: changes(&paper, row.what),
            unit: row.what.unit(),
            change_percent: changes(&ours, row.what),
            ours,
        }
    }
}

/// Of each figure against the first; none for the first itself.
fn changes(figures: &[Option<f64>], what: Quantity) -> Vec<Option<f64>> {
    let first = figures.first().copied().flatten().filter(|_| what.has_change());
    let change = |(at, figure): (usize, &Option<f64>)| {
        if at == 0 {
            return None;
        }
        change_percent(first?, (*figure)?)
    };
    figures.iter().enumerate().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_and_we_count_alike() {
        let paper = Paper::named("mckusick").unwrap();
        let study = paper.study.as_ref().unwrap();
        let cost = |self_ns, child_ns| Cost { uses: 10, self_ns, child_ns, kernel_ns: 1_000, lookups: None };
        let costs = vec![vec![cost(143, 99), cost(110, 106), cost(95, 61)]; study.tables.len()];
        let outcome = StudyOutcome::new(&paper, study, "emulator", Vec::new(), &costs);
        let row = |what| outcome.tables[0].rows.iter().find(|row| row.what == what).unwrap();
        // The same numbers a tenth of a millisecond each: the same changes.
        for what in [Quantity::Itself, Quantity::Child, Quantity::Total] {
            assert_eq!(
                row(what).paper.iter().map(|ms| Some(*ms)).collect::<Vec<_>>(),
                row(what).ours,
                "{what:?}"
            );
            assert_eq!(row(what).paper_change_percent, row(what).change_percent, "{what:?}");
        }
        let total = &row(Quantity::Total).change_percent;
        // "Reduce the average cost of translating a pathname to an inode by 35%."
        assert!((total[2].unwrap() + 35.5).abs() < 0.1 && total[0].is_none(), "{total:?}");
        assert!(row(Quantity::SelfPercent).change_percent.iter().all(Option::is_none));
    }
}
