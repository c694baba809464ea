//! Tables of a study with our figures beside them.

use crate::claim::{judge, FigureInterval, FigureKind, FigureRef};
use crate::study::{
    change_percent, AbstractionCost, Study, StudyQuantity, StudyRow, StudyTable, StudyVariant,
};
use crate::{FindingResult, Paper};
use kerntune_compare::KernelRef;
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-study/1";

/// Kernels, tables and findings of a study, with our results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyOutcome {
    /// Always `kerntune-study/1`.
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
    /// Our workload.
    pub workload: String,
    /// Differences of our experiment from the paper's.
    pub about: String,
    /// Name of the examined abstraction.
    pub abstraction: String,
    /// Functions of the abstraction.
    pub functions: Vec<String>,
    /// Kernels, in the paper's order.
    pub kernels: Vec<StudyKernel>,
    /// Tables, in the paper's order.
    pub tables: Vec<StudyTableResult>,
    /// Verdicts on the paper's claims.
    pub findings: Vec<FindingResult>,
}

/// Kernel of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyKernel {
    /// Name of the kernel here.
    pub name: String,
    /// Kernel of the paper that this one replaces.
    pub paper: String,
    /// Set of our patches; `None` for the unpatched kernel.
    pub patches: Option<String>,
    /// Built kernel.
    pub kernel: KernelRef,
    /// Id of the recorded profile.
    pub profile: String,
}

/// Table of a study with our figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyTableResult {
    /// Title of the table.
    pub title: String,
    /// Region of the workload.
    pub region: String,
    /// Differences of our experiment from the paper's; may be empty.
    pub about: String,
    /// Rows, in the paper's order.
    pub rows: Vec<StudyRowResult>,
}

/// Quantity of each kernel; every list is in the kernels' order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyRowResult {
    /// Name of the row.
    pub name: String,
    /// Quantity of the row.
    pub what: StudyQuantity,
    /// Unit of the paper's figures.
    pub paper_unit: String,
    /// The paper's figures; empty if it has none.
    pub paper: Vec<f64>,
    /// Change of the paper's figures against the first kernel, in percent.
    pub paper_change_percent: Vec<Option<f64>>,
    /// Unit of our figures.
    pub unit: &'static str,
    /// Our figures.
    pub ours: Vec<Option<f64>>,
    /// Change of our figures against the first kernel, in percent, by the same formula.
    pub change_percent: Vec<Option<f64>>,
}

impl StudyOutcome {
    /// Creates the outcome of a paper's study from the kernels with their profiles' ids, and from
    /// the costs of each kernel for each table.
    pub fn new(
        paper: &Paper,
        study: &Study,
        machine: &str,
        kernels: Vec<(&StudyVariant, KernelRef, String)>,
        costs: &[Vec<AbstractionCost>],
    ) -> Self {
        let kernel = |(variant, kernel, profile): (&StudyVariant, KernelRef, String)| StudyKernel {
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
                .map(|(table, costs)| StudyTableResult::new(table, costs))
                .collect(),
            findings: Vec::new(),
        };
        outcome.findings = judge(&paper.findings, &|of| outcome.figure(of));
        outcome
    }

    fn figure(&self, of: &FigureRef) -> Result<FigureInterval, String> {
        let tables = self.tables.iter().filter(|table| of.is_of(&table.region, &table.title));
        let mut rows = tables.flat_map(|table| &table.rows);
        let row = rows.find(|row| of.row.as_ref() == Some(&row.name)).ok_or("there is no such row")?;
        let figures = if of.figure == FigureKind::Figure { &row.ours } else { &row.change_percent };
        let at = of.kernel.unwrap_or(figures.len()).checked_sub(1);
        let figure = at.and_then(|at| figures.get(at).copied().flatten());
        figure
            .map(FigureInterval::exact)
            .ok_or_else(|| format!("{}: there is no figure of this kernel", row.name))
    }
}

impl StudyTableResult {
    fn new(table: &StudyTable, costs: &[AbstractionCost]) -> Self {
        Self {
            title: table.title.clone(),
            region: table.region.clone(),
            about: table.about.clone(),
            rows: table.rows.iter().map(|row| StudyRowResult::new(row, costs)).collect(),
        }
    }
}

impl StudyRowResult {
    fn new(row: &StudyRow, costs: &[AbstractionCost]) -> Self {
        let ours: Vec<Option<f64>> = costs.iter().map(|cost| cost.figure(row.what, &row.cache)).collect();
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

/// Returns the change of each figure against the first; `None` for the first itself.
fn changes(figures: &[Option<f64>], what: StudyQuantity) -> Vec<Option<f64>> {
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
        let cost = |self_ns, child_ns| AbstractionCost {
            uses: 10,
            self_ns,
            child_ns,
            kernel_ns: 1_000,
            ..AbstractionCost::default()
        };
        let costs = [cost(143, 99), cost(110, 106), cost(95, 61)];
        let costs = vec![costs.to_vec(); study.tables.len()];
        let outcome = StudyOutcome::new(&paper, study, "emulator", Vec::new(), &costs);
        let row = |what| outcome.tables[0].rows.iter().find(|row| row.what == what).unwrap();
        // The same numbers in tenths of a millisecond give the same changes.
        for what in [StudyQuantity::Itself, StudyQuantity::Child, StudyQuantity::Total] {
            assert_eq!(
                row(what).paper.iter().map(|ms| Some(*ms)).collect::<Vec<_>>(),
                row(what).ours,
                "{what:?}"
            );
            assert_eq!(row(what).paper_change_percent, row(what).change_percent, "{what:?}");
        }
        let total = &row(StudyQuantity::Total).change_percent;
        // "Reduce the average cost of translating a pathname to an inode by 35%."
        assert!((total[2].unwrap() + 35.5).abs() < 0.1 && total[0].is_none(), "{total:?}");
        assert!(row(StudyQuantity::SelfPercent).change_percent.iter().all(Option::is_none));
    }
}
