//! A paper's tables with our figures beside them.

use crate::claim::{judge, Claim, Evidence, Gain, Span};
use crate::paper::improvement;
use crate::{Better, Calls, Experiment, Paper, Row, Source, SurveyFinding, Timed};
use kerntune_compare::{Comparison, KernelRef, Metric};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-paper/1";

/// All of a paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
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
    /// What tuned our kernels.
    pub recipe: String,
    /// Our machine.
    pub machine: String,
    /// The front-end model of our model cycles.
    pub model: String,
    /// Its tables, in its order.
    pub experiments: Vec<Part>,
    /// What becomes of what it says ([`Outcome::conclude`]).
    pub findings: Vec<SurveyFinding>,
}

/// A table of the paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The table's head.
    pub title: String,
    /// Our workload that does the same.
    pub workload: String,
    /// What is different here; may be empty.
    pub about: String,
    /// What came of it, and the figures.
    #[serde(flatten)]
    pub state: State,
}

/// What came of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// All its kernels were measured.
    Measured(Box<Measured>),
    /// There are no figures of ours.
    NotMade {
        /// Why.
        because: String,
    },
}

/// A table with our figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The kernel without a profile.
    pub base: KernelRef,
    /// The kernel that the recipe made.
    pub tuned: KernelRef,
    /// The table's rows, in the paper's order.
    pub rows: Vec<Line>,
}

/// A row of the paper and what ours is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The row's name in the paper.
    pub name: String,
    /// The unit of the paper's figures.
    pub unit: String,
    /// Whether more or less of the unit is better.
    pub better: Better,
    /// The paper's figure before, in `unit`.
    pub paper_base: f64,
    /// The paper's figure after, in `unit`.
    pub paper_optimised: f64,
    /// The standard deviation that the paper gives, if it does.
    pub paper_std_dev: Option<f64>,
    /// As printed.
    pub paper_improvement: String,
    /// As it follows from the paper's figures, percent.
    pub paper_improvement_percent: f64,
    /// Ours; None where there is nothing to compare.
    pub ours: Option<Ours>,
    /// Why there is nothing.
    pub because: Option<String>,
}

/// Our figures of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ours {
    /// The operation, or the function.
    pub of: String,
    /// Kernel instructions per operation, or nanoseconds per call: exact.
    pub exact: Figure,
    /// Model cycles per operation, if the model says what events cost.
    pub model_cycles: Option<Figure>,
    /// Kernel and user instructions per operation, if user code was counted: exact.
    pub whole_instructions: Option<Figure>,
    /// Model cycles of kernel and user code per operation.
    pub whole_cycles: Option<Figure>,
    /// By a clock ([`Outcome::time`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed: Option<Timed>,
}

/// Three runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// `instructions/op`, `ns/call`, `cycles/op`.
    pub unit: String,
    /// The base kernel's figure, in `unit`.
    pub base: f64,
    /// The base kernel's second run (A/A): what takes the standard deviation's place on an exact machine.
    pub base_again: f64,
    /// The tuned kernel's figure, in `unit`.
    pub tuned: f64,
    /// 100 · (base / tuned − 1).
    pub improvement_percent: f64,
    /// Of several runs of each kernel, begun at as many moments: the improvement lies between these (99 %).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<[f64; 2]>,
    /// Not larger than the A/A difference: `*` in tables.
    pub within_noise: bool,
}

impl Ours {
    fn gain(&self, figure: Gain) -> Option<Span> {
        let of = |figure: &Figure| {
            let value = figure.improvement_percent;
            let [low, high] = figure.interval_percent.unwrap_or([value; 2]);
            Span { value, low, high }
        };
        let by_clock = |timed: &Timed| Span {
            value: timed.improvement_percent,
            low: timed.low_percent,
            high: timed.high_percent.unwrap_or(f64::INFINITY),
        };
        match figure {
            Gain::Exact => Some(of(&self.exact)),
            Gain::Cycles => self.model_cycles.as_ref().map(of),
            Gain::Whole => self.whole_instructions.as_ref().map(of),
            Gain::WholeCycles => self.whole_cycles.as_ref().map(of),
            Gain::Timed => self.timed.as_ref().map(by_clock),
            Gain::Change | Gain::Figure => None,
        }
    }
}

impl Figure {
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

/// The rows of a paper, counted by what came of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Rows whose figure by which they are ranked ([`Line::ranked`]) improved.
    pub better: usize,
    /// Those that became worse.
    pub worse: usize,
    /// Those within the A/A difference.
    pub same: usize,
    /// Rows without figures of ours.
    pub without: usize,
    /// Whether rows are ranked by a model's figures.
    pub by_model: bool,
    /// The one that gained the most: experiment, row, percent.
    pub most: Option<(String, String, f64)>,
    /// The one that gained the least, or lost the most.
    pub least: Option<(String, String, f64)>,
}

impl Outcome {
    /// Nothing of it is there yet.
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
            findings: Vec::new(),
        }
    }

    /// Adds what a clock says of the rows; of which there was none is returned as `suite/row`.
    pub fn time(&mut self, comparisons: &[kerntune_stats::Comparison]) -> Vec<String> {
        let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
        let mut unused: Vec<String> = rows.map(|row| format!("{}/{}", row.suite, row.row)).collect();
        for part in &mut self.experiments {
            let State::Measured(measured) = &mut part.state else { continue };
            for ours in measured.rows.iter_mut().filter_map(|line| line.ours.as_mut()) {
                ours.timed = Timed::find(comparisons, &part.workload, &ours.of);
                let name = format!("{}/{}", part.workload, ours.of);
                unused.retain(|row| *row != name);
            }
        }
        unused
    }

    /// Holds what the paper says against the figures that are there.
    pub fn conclude(&mut self, claims: &[Claim]) {
        self.findings = judge(claims, &|of| self.gain(of));
    }

    /// How much a row improved, per cent; without a row the least of all.
    fn gain(&self, of: &Evidence) -> Result<Span, String> {
        let mut gains = Vec::new();
        let parts = self.experiments.iter().filter(|part| of.is_of(&part.workload, &part.title));
        for part in parts {
            let measured = match &part.state {
                State::Measured(measured) => measured,
                State::NotMade { because } => return Err(format!("{}: {because}", part.title)),
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
        let least = gains.into_iter().min_by(|a: &Span, b: &Span| a.value.total_cmp(&b.value));
        least.ok_or_else(|| "there is no figure of ours in this table".into())
    }

    /// The next table.
    pub fn add(&mut self, experiment: &Experiment, state: State) {
        self.experiments.push(Part {
            title: experiment.title.clone(),
            workload: experiment.workload.clone(),
            about: experiment.about.clone(),
            state,
        });
    }

    /// Its rows, counted.
    pub fn summary(&self) -> Summary {
        let mut sum = Summary::default();
        for part in &self.experiments {
            let State::Measured(measured) = &part.state else { continue };
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
                if sum.most.as_ref().is_none_or(|(.., most)| gain > *most) {
                    sum.most = this();
                }
                if sum.least.as_ref().is_none_or(|(.., least)| gain < *least) {
                    sum.least = this();
                }
            }
        }
        sum
    }
}

impl Measured {
    /// Our figures for the rows of `experiment`. `calls` says what a function's calls cost in the run of the base
    /// kernel, in its second run and in that of the tuned kernel.
    pub fn new(
        experiment: &Experiment,
        comparison: &Comparison,
        calls: &dyn Fn(&str) -> Option<[Calls; 3]>,
    ) -> Self {
        let rows = experiment.rows.iter().map(|row| line(row, comparison, calls)).collect();
        Self { base: comparison.base.clone(), tuned: comparison.tuned.clone(), rows }
    }
}

impl Line {
    /// Whether the paper itself calls its improvement noise.
    pub fn is_noise(&self) -> bool {
        self.paper_improvement.trim() == "*"
    }

    /// What tells best how much faster the row became: model cycles where there are any.
    pub fn ranked(&self) -> Option<&Figure> {
        self.ours.as_ref().map(|ours| ours.model_cycles.as_ref().unwrap_or(&ours.exact))
    }
}

fn line(row: &Row, comparison: &Comparison, calls: &dyn Fn(&str) -> Option<[Calls; 3]>) -> Line {
    let (ours, because) = match &row.source {
        Source::None(why) => (None, Some(why.clone())),
        Source::Operation(operation) => {
            let ours = operation_figures(comparison, operation);
            let because = ours.is_none().then(|| {
                format!("workload {} has no operation {operation} in all its runs", comparison.workload)
            });
            (ours, because)
        }
        Source::Function { name, part } => {
            let ours = calls(name).map(|runs| Ours {
                of: name.clone(),
                exact: Figure::new("ns/call", runs.map(|calls| calls.per_call(*part))),
                model_cycles: None,
                whole_instructions: None,
                whole_cycles: None,
                timed: None,
            });
            let because = ours.is_none().then(|| format!("no call of {name} ended in one of the runs"));
            (ours, because)
        }
    };
    Line {
        name: row.name.clone(),
        unit: row.unit.clone(),
        better: row.better,
        paper_base: row.base,
        paper_optimised: row.optimised,
        paper_std_dev: row.std_dev,
        paper_improvement: row.improvement.clone(),
        paper_improvement_percent: row.improvement_percent(),
        ours,
        because,
    }
}

fn operation_figures(comparison: &Comparison, operation: &str) -> Option<Ours> {
    Some(Ours {
        of: operation.into(),
        exact: Figure::of(comparison, operation, Metric::PathLength)?,
        model_cycles: Figure::of(comparison, operation, Metric::ModelCycles),
        whole_instructions: Figure::of(comparison, operation, Metric::WholeInstructions),
        whole_cycles: Figure::of(comparison, operation, Metric::WholeCycles),
        timed: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_compare::{Costs, Labels, Measurement, RegionFigures};

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
                "[[experiment.row]]\nname='{name}'\n{source}\nunit='s'\nbetter='lower'\nbase=2\noptimised=1\n\
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
        let costs = Costs {
            path_length: 1.0,
            taken_branches: 0.0,
            l1i_misses: 0.0,
            itlb_misses: 0.0,
            ..Costs::default()
        };
        let labels = Labels { workload: "rr".into(), costs: Some(costs), ..Labels::default() };
        let comparison = Comparison::new(&run(4_000), &run(4_001), &run(2_000), labels).unwrap();
        let of = |ns| Calls { calls: 2, self_ns: 10, child_ns: ns };
        let calls = |name: &str| (name == "f").then(|| [of(40), of(40), of(80)]);
        let paper = paper();
        let measured = Measured::new(&paper.experiments[0], &comparison, &calls);
        let ours = |at: usize| measured.rows[at].ours.as_ref();
        assert_eq!(ours(0).unwrap().exact.improvement_percent, 100.0);
        assert_eq!((ours(0).unwrap().exact.base, ours(0).unwrap().exact.tuned), (400.0, 200.0));
        assert!(ours(1).unwrap().exact.within_noise);
        assert!(ours(2).is_none() && measured.rows[2].because.as_ref().unwrap().contains("no operation c"));
        assert_eq!(measured.rows[3].because.as_deref(), Some("for a reason"));
        let function = &ours(4).unwrap().exact;
        assert_eq!((function.base, function.tuned, function.improvement_percent), (20.0, 40.0, -50.0));

        let mut outcome = Outcome::new(&paper, "gcc-pgo", "emulator", "generic");
        outcome.add(&paper.experiments[0], State::Measured(Box::new(measured)));
        outcome.add(&paper.experiments[0], State::NotMade { because: "the time was up".into() });
        let summary = outcome.summary();
        assert_eq!((summary.better, summary.worse, summary.same, summary.without), (1, 1, 1, 2));
        assert_eq!(summary.most.unwrap().1, "falls");
        assert_eq!(summary.least.unwrap().1, "function");
    }
}
