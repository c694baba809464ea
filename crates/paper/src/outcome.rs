//! Tables of a paper with our figures beside them.

use crate::claim::{judge, FigureInterval, FigureKind, FigureRef, PaperClaim};
use crate::paper::improvement;
use crate::{
    BetterDirection, CallTimes, ClockRow, ClockSource, Experiment, FindingResult, Paper, PaperRow, RowSource,
    TimedFigure,
};
use kerntune_compare::{Comparison, KernelRef, Metric};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-paper/2";

/// Tables and findings of a paper, with our results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaperOutcome {
    /// Always [`SCHEMA`].
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
    /// Recipe that tuned our kernels.
    pub recipe: String,
    /// Our machine.
    pub machine: String,
    /// Front-end model of our model cycles.
    pub model: String,
    /// Tables, in the paper's order.
    pub experiments: Vec<ExperimentOutcome>,
    /// The same tables by other recipes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<RecipeOutcome>,
    /// Verdicts on the paper's claims ([`PaperOutcome::conclude`]).
    pub findings: Vec<FindingResult>,
}

/// Tables of the paper by another recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecipeOutcome {
    /// Recipe that tuned the kernels.
    pub recipe: String,
    /// Tables, in the paper's order.
    pub experiments: Vec<ExperimentOutcome>,
}

/// Table of the paper with our result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentOutcome {
    /// Title of the table.
    pub title: String,
    /// Our workload that does the same.
    pub workload: String,
    /// Differences of our experiment from the paper's; may be empty.
    pub about: String,
    /// Our figures, or the reason that there are none.
    #[serde(flatten)]
    pub state: ExperimentState,
}

/// Result of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ExperimentState {
    /// All its kernels were measured.
    Measured(Box<ExperimentResult>),
    /// The experiment failed or was left out.
    NotMade {
        /// Reason, for a reader.
        because: String,
    },
}

/// Rows of a table with our figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentResult {
    /// Base kernel, without a profile.
    pub base: KernelRef,
    /// Kernel that the recipe made.
    pub tuned: KernelRef,
    /// Kernels of the timed results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockSource>,
    /// Rows of the table, in the paper's order.
    pub rows: Vec<RowResult>,
}

/// Row of the paper with our figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowResult {
    /// Name of the row in the paper.
    pub name: String,
    /// Unit of the paper's figures.
    pub unit: String,
    /// Direction of improvement of the unit.
    pub better: BetterDirection,
    /// The paper's figure before, in `unit`.
    pub paper_base: f64,
    /// The paper's figure after, in `unit`.
    pub paper_optimized: f64,
    /// Standard deviation, if the paper has one.
    pub paper_std_dev: Option<f64>,
    /// Improvement as the paper prints it.
    pub paper_improvement: String,
    /// Improvement computed from the paper's figures, in percent.
    pub paper_improvement_percent: f64,
    /// Row of another workload that the timed result is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockRow>,
    /// Our figures; `None` if nothing corresponds to the row.
    pub ours: Option<MeasuredRow>,
    /// Reason that `ours` is `None`.
    pub because: Option<String>,
}

/// Our figures of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredRow {
    /// Operation of the workload, or function.
    pub of: String,
    /// Kernel instructions per operation, or nanoseconds per call: exact.
    pub exact: ImprovementFigure,
    /// Model cycles per operation, if the model has costs of events.
    pub model_cycles: Option<ImprovementFigure>,
    /// Kernel and user instructions per operation, if user code was counted: exact.
    pub whole_instructions: Option<ImprovementFigure>,
    /// Model cycles of kernel and user code per operation.
    pub whole_cycles: Option<ImprovementFigure>,
    /// Time from a clock ([`PaperOutcome::time`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed: Option<TimedFigure>,
}

/// Figure of the base kernel (two runs) and of the tuned kernel, with the improvement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImprovementFigure {
    /// Unit: `instructions/op`, `ns/call`, `cycles/op`.
    pub unit: String,
    /// Figure of the base kernel, in `unit`.
    pub base: f64,
    /// Figure of the base kernel's second run (A/A), which replaces the standard deviation on an
    /// exact machine.
    pub base_again: f64,
    /// Figure of the tuned kernel, in `unit`.
    pub tuned: f64,
    /// 100 · (base / tuned − 1).
    pub improvement_percent: f64,
    /// 99 % interval of the improvement from several runs of each kernel, begun at different
    /// moments; `None` for one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<[f64; 2]>,
    /// True if the change is not larger than the A/A difference: `*` in tables.
    pub within_noise: bool,
}

impl MeasuredRow {
    fn gain(&self, figure: FigureKind) -> Option<FigureInterval> {
        let of = |figure: &ImprovementFigure| {
            let value = figure.improvement_percent;
            let [low, high] = figure.interval_percent.unwrap_or([value; 2]);
            FigureInterval { value, low, high }
        };
        let by_clock = |timed: &TimedFigure| FigureInterval {
            value: timed.improvement_percent,
            low: timed.low_percent,
            high: timed.high_percent.unwrap_or(f64::INFINITY),
        };
        match figure {
            FigureKind::Exact => Some(of(&self.exact)),
            FigureKind::Cycles => self.model_cycles.as_ref().map(of),
            FigureKind::Whole => self.whole_instructions.as_ref().map(of),
            FigureKind::WholeCycles => self.whole_cycles.as_ref().map(of),
            FigureKind::Timed => self.timed.as_ref().map(by_clock),
            FigureKind::Change | FigureKind::Figure => None,
        }
    }
}

impl ImprovementFigure {
    fn new(unit: &str, [base, base_again, tuned]: [f64; 3]) -> Self {
        let within_noise = (tuned - base).abs() <= (base_again - base).abs();
        let improvement_percent = improvement(base, tuned);
        Self {
            unit: unit.into(),
            base,
            base_again,
            tuned,
            improvement_percent,
            interval_percent: None,
            within_noise,
        }
    }

    fn of(comparison: &Comparison, operation: &str, metric: Metric) -> Option<Self> {
        let row = comparison.row(operation, metric)?;
        let figures = [row.base, row.base_again, row.tuned];
        let gain = |change: f64| improvement(100.0, 100.0 + change);
        let interval_percent = row.interval_percent.filter(|[low, _]| *low > -100.0);
        Some(Self {
            within_noise: row.within_noise(),
            interval_percent: interval_percent.map(|[low, high]| [gain(high), gain(low)]),
            ..Self::new(&row.unit, figures)
        })
    }
}

/// Counts of a paper's rows by result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutcomeSummary {
    /// Rows whose ranking figure ([`RowResult::ranked`]) improved.
    pub better: usize,
    /// Rows that became worse.
    pub worse: usize,
    /// Rows within the A/A difference.
    pub same: usize,
    /// Rows without figures of ours.
    pub without: usize,
    /// True if rows are ranked by figures of a model.
    pub by_model: bool,
    /// Row that improved the most: experiment, row, percent.
    pub max: Option<(String, String, f64)>,
    /// Row that improved the least: experiment, row, percent.
    pub min: Option<(String, String, f64)>,
}

impl PaperOutcome {
    /// Creates an outcome without experiments.
    pub fn new(paper: &Paper, recipe: &str, machine: &str, model: &str) -> Self {
        Self {
            schema: SCHEMA,
            name: paper.name.clone(),
            title: paper.title.clone(),
            authors: paper.authors.clone(),
            published: paper.published.clone(),
            paper_machine: paper.machine.clone(),
            recipe: recipe.into(),
            machine: machine.into(),
            model: model.into(),
            experiments: Vec::new(),
            beside: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Adds the tables of another recipe.
    pub fn add_beside(&mut self, other: Self) {
        self.beside.push(RecipeOutcome { recipe: other.recipe, experiments: other.experiments });
    }

    /// Adds timed results to the rows. Returns the results that match no row, as `suite/row`.
    pub fn time(&mut self, comparisons: &[kerntune_stats::TimedComparison]) -> Vec<String> {
        let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
        let mut unused: Vec<String> = rows.map(|row| format!("{}/{}", row.suite, row.row)).collect();
        for part in &mut self.experiments {
            let ExperimentState::Measured(measured) = &mut part.state else { continue };
            for line in &mut measured.rows {
                let Some(ours) = &mut line.ours else { continue };
                let own = ClockRow { workload: part.workload.clone(), row: ours.of.clone() };
                for of in [Some(&own), line.clock.as_ref()].into_iter().flatten() {
                    let Some((comparison, timed)) = TimedFigure::find(comparisons, of) else { continue };
                    ours.timed = Some(timed);
                    let source = ClockSource::of(comparison, &of.workload);
                    if !measured.clocks.contains(&source) {
                        measured.clocks.push(source);
                    }
                    let name = of.to_string();
                    unused.retain(|row| *row != name);
                    break;
                }
            }
        }
        unused
    }

    /// Checks the paper's claims against the figures so far.
    pub fn conclude(&mut self, claims: &[PaperClaim]) {
        self.findings = judge(claims, &|of| self.gain(of));
    }

    /// Returns the improvement of a row in percent; without a row the smallest of all.
    fn gain(&self, of: &FigureRef) -> Result<FigureInterval, String> {
        let mut gains = Vec::new();
        let experiments = match &of.recipe {
            Some(recipe) if *recipe != self.recipe => {
                let other = self.beside.iter().find(|other| other.recipe == *recipe);
                &other.ok_or_else(|| format!("give --beside {recipe} as well"))?.experiments
            }
            _ => &self.experiments,
        };
        let parts = experiments.iter().filter(|part| of.is_of(&part.workload, &part.title));
        for part in parts {
            let measured = match &part.state {
                ExperimentState::Measured(measured) => measured,
                ExperimentState::NotMade { because } => return Err(format!("{}: {because}", part.title)),
            };
            for line in
                measured.rows.iter().filter(|line| of.row.as_ref().is_none_or(|name| *name == line.name))
            {
                let Some(ours) = &line.ours else { continue };
                gains.push(
                    ours.gain(of.figure).ok_or_else(|| format!("{}: {}", line.name, of.figure.missing()))?,
                );
            }
        }
        let min =
            gains.into_iter().min_by(|a: &FigureInterval, b: &FigureInterval| a.value.total_cmp(&b.value));
        min.ok_or_else(|| "there is no figure of ours in this table".into())
    }

    /// Adds the result of the next table.
    pub fn add(&mut self, experiment: &Experiment, state: ExperimentState) {
        self.experiments.push(ExperimentOutcome {
            title: experiment.title.clone(),
            workload: experiment.workload.clone(),
            about: experiment.about.clone(),
            state,
        });
    }

    /// Counts the rows by result.
    pub fn summary(&self) -> OutcomeSummary {
        let mut sum = OutcomeSummary::default();
        for part in &self.experiments {
            let ExperimentState::Measured(measured) = &part.state else { continue };
            for line in &measured.rows {
                let Some(figure) = line.ranked() else {
                    sum.without += 1;
                    continue;
                };
                let gain = figure.improvement_percent;
                sum.by_model |= line.ours.as_ref().is_some_and(|ours| ours.model_cycles.is_some());
                match figure {
                    _ if figure.within_noise => sum.same += 1,
                    _ if gain > 0.0 => sum.better += 1,
                    _ => sum.worse += 1,
                }
                let this = || Some((part.title.clone(), line.name.clone(), gain));
                if sum.max.as_ref().is_none_or(|(.., max)| gain > *max) {
                    sum.max = this();
                }
                if sum.min.as_ref().is_none_or(|(.., min)| gain < *min) {
                    sum.min = this();
                }
            }
        }
        sum
    }
}

impl ExperimentResult {
    /// Computes our figures for the rows of `experiment`. `calls` returns a function's calls in the
    /// base kernel's run, its second run, and the tuned kernel's run.
    pub fn new(
        experiment: &Experiment,
        comparison: &Comparison,
        calls: &dyn Fn(&str) -> Option<[CallTimes; 3]>,
    ) -> Self {
        let rows = experiment.rows.iter().map(|row| line(row, comparison, calls)).collect();
        Self { base: comparison.base.clone(), tuned: comparison.tuned.clone(), clocks: Vec::new(), rows }
    }
}

impl RowResult {
    /// Checks whether the paper itself calls its improvement noise.
    pub fn is_noise(&self) -> bool {
        self.paper_improvement.trim() == "*"
    }

    /// Returns the figure that ranks the row: model cycles, or else the exact figure.
    pub fn ranked(&self) -> Option<&ImprovementFigure> {
        self.ours.as_ref().map(|ours| ours.model_cycles.as_ref().unwrap_or(&ours.exact))
    }
}

fn line(
    row: &PaperRow,
    comparison: &Comparison,
    calls: &dyn Fn(&str) -> Option<[CallTimes; 3]>,
) -> RowResult {
    let (ours, because) = match &row.source {
        RowSource::None(why) => (None, Some(why.clone())),
        RowSource::Operation(operation) => {
            let ours = operation_figures(comparison, operation);
            let because = ours.is_none().then(|| {
                format!("workload {} has no operation {operation} in all its runs", comparison.workload)
            });
            (ours, because)
        }
        RowSource::Function { name, part } => {
            let ours = calls(name).map(|runs| MeasuredRow {
                of: name.clone(),
                exact: ImprovementFigure::new("ns/call", runs.map(|calls| calls.per_call(*part))),
                model_cycles: None,
                whole_instructions: None,
                whole_cycles: None,
                timed: None,
            });
            let because = ours.is_none().then(|| format!("no call of {name} ended in one of the runs"));
            (ours, because)
        }
    };
    RowResult {
        name: row.name.clone(),
        unit: row.unit.clone(),
        better: row.better,
        paper_base: row.base,
        paper_optimized: row.optimized,
        paper_std_dev: row.std_dev,
        paper_improvement: row.improvement.clone(),
        paper_improvement_percent: row.improvement_percent(),
        clock: row.clock.clone(),
        ours,
        because,
    }
}

fn operation_figures(comparison: &Comparison, operation: &str) -> Option<MeasuredRow> {
    Some(MeasuredRow {
        of: operation.into(),
        exact: ImprovementFigure::of(comparison, operation, Metric::PathLength)?,
        model_cycles: ImprovementFigure::of(comparison, operation, Metric::ModelCycles),
        whole_instructions: ImprovementFigure::of(comparison, operation, Metric::WholeInstructions),
        whole_cycles: ImprovementFigure::of(comparison, operation, Metric::WholeCycles),
        timed: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_compare::{ComparisonLabels, Measurement, ModelCosts, RegionFigures};

    fn run(instructions: u64) -> Measurement {
        let region = |name, kernel_instructions| RegionFigures {
            name,
            depth: 0,
            closed: true,
            operations: 10,
            counts: Metric::COUNTED.into_iter().zip([kernel_instructions, 100, 50, 1]).collect(),
            events: Default::default(),
            whole_events: Default::default(),
        };
        Measurement::from_regions([region("a", instructions), region("b", 1_000)]).unwrap()
    }

    fn paper() -> Paper {
        let row = |name: &str, source: &str| {
            format!(
                "[[experiment.row]]\nname='{name}'\n{source}\nunit='s'\nbetter='lower'\nbase=2\noptimized=1\n\
                 improvement=''\n"
            )
        };
        let text = [
            "name='x'\ntitle=''\nauthors=''\npublished=''\nmachine=''\nrecipe='gcc-pgo'\n[[experiment]]\ntitle='t'\n\
             workload='rr'\n"
                .to_string(),
            row("falls", "operation='a'"),
            row("stays", "operation='b'"),
            row("is not there", "operation='c'"),
            row("cannot be", "none='for a reason'"),
            row("function", "function='f'\npart='child'"),
        ];
        Paper::parse(&text.concat(), "x").unwrap()
    }

    #[test]
    fn every_row_has_figures_or_says_why_not() {
        let costs = ModelCosts {
            path_length: 1.0,
            taken_branches: 0.0,
            l1i_misses: 0.0,
            itlb_misses: 0.0,
            ..ModelCosts::default()
        };
        let labels =
            ComparisonLabels { workload: "rr".into(), costs: Some(costs), ..ComparisonLabels::default() };
        let comparison = Comparison::new(&run(4_000), &run(4_001), &run(2_000), labels).unwrap();
        let of = |ns| CallTimes { calls: 2, self_ns: 10, child_ns: ns };
        let calls = |name: &str| (name == "f").then(|| [of(40), of(40), of(80)]);
        let paper = paper();
        let measured = ExperimentResult::new(&paper.experiments[0], &comparison, &calls);
        let ours = |at: usize| measured.rows[at].ours.as_ref();
        assert_eq!(ours(0).unwrap().exact.improvement_percent, 100.0);
        assert_eq!((ours(0).unwrap().exact.base, ours(0).unwrap().exact.tuned), (400.0, 200.0));
        assert!(ours(1).unwrap().exact.within_noise);
        assert!(ours(2).is_none() && measured.rows[2].because.as_ref().unwrap().contains("no operation c"));
        assert_eq!(measured.rows[3].because.as_deref(), Some("for a reason"));
        let function = &ours(4).unwrap().exact;
        assert_eq!((function.base, function.tuned, function.improvement_percent), (20.0, 40.0, -50.0));

        let mut outcome = PaperOutcome::new(&paper, "gcc-pgo", "emulator", "generic");
        outcome.add(&paper.experiments[0], ExperimentState::Measured(Box::new(measured)));
        outcome.add(&paper.experiments[0], ExperimentState::NotMade { because: "the time was up".into() });
        let summary = outcome.summary();
        assert_eq!((summary.better, summary.worse, summary.same, summary.without), (1, 1, 1, 2));
        assert_eq!(summary.max.unwrap().1, "falls");
        assert_eq!(summary.min.unwrap().1, "function");
    }
}
