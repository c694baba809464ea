//! Comparison of two kernels under one workload, with a second run of the base kernel.

use crate::{
    CodeScope, Error, Measurement, Metric, MetricDirection, ModelChanges, ModelCosts, OperationCounters,
    RandomLayouts, Result, UnequalUserCode, SAME_WORK_PERCENT, TOTAL,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Schema of a comparison as JSON, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-comparison/1";

/// Confidence of the interval of a change.
pub const CONFIDENCE: f64 = 0.99;

/// Identity of a compared kernel for people and scripts; the kernel's own manifest has the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRef {
    /// Id of the kernel in the work directory.
    pub id: String,
    /// Label of the kernel.
    pub label: String,
    /// Kernel release, `6.12.9`.
    pub version: String,
    /// Compiler of the kernel, `gcc 12.2.0`.
    pub compiler: String,
    /// Recipe that made the kernel; `None` for a plain build.
    pub recipe: Option<String>,
}

/// Names of what a comparison compares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ComparisonLabels {
    /// Name of the workload.
    pub workload: String,
    /// Name of the machine, `emulator`.
    pub machine: String,
    /// Name of the front-end model, `generic`.
    pub model: String,
    /// Costs of events in the model, if it has any; they add rows of [`Metric::ModelCycles`].
    pub costs: Option<ModelCosts>,
    /// Base kernel.
    pub base: KernelRef,
    /// Tuned kernel.
    pub tuned: KernelRef,
}

/// One metric of one operation, on both kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricRow {
    /// Operation, or [`TOTAL`].
    pub operation: String,
    /// Compared metric.
    pub metric: Metric,
    /// Unit of `base`, `base_again` and `tuned`.
    pub unit: String,
    /// True for figures of the front-end model.
    pub model: bool,
    /// Figure of the base kernel.
    pub base: f64,
    /// Figure of the base kernel's second run.
    pub base_again: f64,
    /// Figure of the tuned kernel.
    pub tuned: f64,
    /// 100 · (tuned − base) / base; 0 if both are 0, `None` if only the base is 0.
    pub change_percent: Option<f64>,
    /// A/A difference: the same with the base kernel's second run instead of the tuned kernel.
    pub aa_percent: Option<f64>,
    /// Interval of the change with confidence [`CONFIDENCE`], from several seeds or start offsets.
    /// `None` with one run, or if a run has 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<[f64; 2]>,
    pub(crate) within_noise: bool,
    /// True if the metric includes user code that ran differently on the two kernels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) other_work: bool,
}

impl MetricRow {
    /// Returns the rows of an operation; `counters` are of the base, the second base and the tuned
    /// run.
    fn all<'a>(
        counters: [&'a OperationCounters; 3],
        costs: Option<&'a ModelCosts>,
    ) -> impl Iterator<Item = Self> + 'a {
        Metric::all().iter().filter_map(move |&metric| {
            if let [Some(base), Some(again), Some(tuned)] = counters.map(|of| metric.count(of)) {
                // With equal numbers of operations the sums decide without rounding.
                let exact = tuned.abs_diff(base) <= again.abs_diff(base);
                let sums = [base, again, tuned].map(|sum| sum as f64);
                return Some(Self::new(metric, counters, sums, Some(exact)));
            }
            match counters.map(|of| metric.computed(of, costs?)) {
                [Some(base), Some(again), Some(tuned)] => {
                    Some(Self::new(metric, counters, [base, again, tuned], None))
                }
                _ => None,
            }
        })
    }

    /// Creates a row. `exact` tells, for equal numbers of operations, whether the change is within
    /// the noise; otherwise `sums` decide.
    fn new(metric: Metric, counters: [&OperationCounters; 3], sums: [f64; 3], exact: Option<bool>) -> Self {
        let operation = &counters[0].operation;
        let total = operation == TOTAL;
        let per = counters.map(|of| if total { 1 } else { of.operations });
        let [base, base_again, tuned] = [0, 1, 2].map(|run| sums[run] / per[run] as f64);
        let within_noise = match exact {
            Some(exact) if per[0] == per[1] && per[0] == per[2] => exact,
            _ => (tuned - base).abs() <= (base_again - base).abs(),
        };
        Self {
            operation: operation.clone(),
            metric,
            unit: if total { metric.unit() } else { metric.unit_per_operation() }.into(),
            model: metric.is_model(),
            base,
            base_again,
            tuned,
            change_percent: percent(base, tuned),
            aa_percent: percent(base, base_again),
            interval_percent: None,
            within_noise,
            other_work: false,
        }
    }

    /// Checks whether the change is not larger than the A/A difference or, with several runs, not
    /// significant: `*` in tables. Equal figures are within the noise.
    pub fn within_noise(&self) -> bool {
        self.within_noise
    }

    /// Checks whether the metric includes user code that ran differently on the two kernels, so
    /// that the change is not the kernel's: `~` in tables.
    pub fn has_unequal_user_code(&self) -> bool {
        self.other_work
    }

    /// Checks whether the figure is lower, beyond the A/A difference.
    pub fn is_lower(&self) -> bool {
        !self.within_noise && self.tuned < self.base
    }

    /// Checks whether the figure is higher, beyond the A/A difference.
    pub fn is_higher(&self) -> bool {
        !self.within_noise && self.tuned > self.base
    }

    /// Checks whether the change is an improvement beyond the A/A difference, with equal user code.
    pub fn is_better(&self) -> bool {
        let is_better = match self.metric.better() {
            MetricDirection::Lower => self.is_lower(),
            MetricDirection::Higher => self.is_higher(),
        };
        is_better && !self.other_work
    }

    /// Checks whether the change is a regression beyond the A/A difference, with equal user code.
    pub fn is_worse(&self) -> bool {
        let is_worse = match self.metric.better() {
            MetricDirection::Lower => self.is_higher(),
            MetricDirection::Higher => self.is_lower(),
        };
        is_worse && !self.other_work
    }
}

pub(crate) fn percent(base: f64, other: f64) -> Option<f64> {
    if base == other {
        Some(0.0)
    } else if base == 0.0 {
        None
    } else {
        Some(100.0 * (other - base) / base)
    }
}

/// One of the three runs of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparedRun {
    /// First run of the base kernel.
    Base,
    /// Second run of the base kernel.
    BaseAgain,
    /// Run of the tuned kernel.
    Tuned,
}

impl fmt::Display for ComparedRun {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            ComparedRun::Base => "base",
            ComparedRun::BaseAgain => "second base",
            ComparedRun::Tuned => "tuned",
        })
    }
}

/// Operation that is missing in some run and therefore has no rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingOperation {
    /// Name of the operation.
    pub operation: String,
    /// Runs without the operation.
    pub runs: Vec<ComparedRun>,
}

/// Operation that the runs did different numbers of times: its figures per operation can be
/// compared, its totals cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnequalWork {
    /// Name of the operation.
    pub operation: String,
    /// Count in the base run.
    pub base: u64,
    /// Count in the second base run.
    pub base_again: u64,
    /// Count in the tuned run.
    pub tuned: u64,
}

/// Comparison of two kernels. Its JSON form is a contract (`docs/json.md`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    schema: SchemaName,
    /// Name of the workload.
    pub workload: String,
    /// Name of the machine.
    pub machine: String,
    /// Name of the front-end model.
    #[serde(default)]
    pub model: String,
    /// Base kernel.
    pub base: KernelRef,
    /// Tuned kernel.
    pub tuned: KernelRef,
    /// Runs of each kernel and seed, each with its own start offset; figures are means over
    /// several.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub runs: usize,
    /// Seeds of the workload, with [`runs`](Self::runs) each; figures are means over several.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub seeds: usize,
    /// Rows by operation in the order of the base run, then [`TOTAL`]; each operation has the same
    /// metrics.
    pub rows: Vec<MetricRow>,
    /// Operations that are missing in some run.
    #[serde(default)]
    pub missing: Vec<MissingOperation>,
    /// Operations that the runs did different numbers of times.
    #[serde(default)]
    pub unequal_work: Vec<UnequalWork>,
    /// Operations, and [`TOTAL`], whose user code ran differently on the two kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unequal_user_code: Vec<UnequalUserCode>,
    /// Base kernel with its functions in random orders, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<RandomLayouts>,
    /// Change under several front-end models, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelChanges>,
}

impl Comparison {
    /// Compares one run of each kernel; `base_again` is a second run of the base kernel.
    pub fn new(
        base: &Measurement,
        base_again: &Measurement,
        tuned: &Measurement,
        labels: ComparisonLabels,
    ) -> Result<Self> {
        let costs = labels.costs.as_ref();
        let runs =
            [(ComparedRun::Base, base), (ComparedRun::BaseAgain, base_again), (ComparedRun::Tuned, tuned)];
        for (run, measurement) in runs {
            let [instructions, branches] = [Metric::PathLength, Metric::TakenBranches]
                .map(|metric| metric.count(&measurement.total).unwrap_or_default());
            if instructions > 0 && branches == 0 {
                return Err(Error::NotCaptured { run, instructions });
            }
        }
        let mut names: Vec<&str> = Vec::new();
        for name in runs.iter().flat_map(|(_, run)| &run.operations).map(|o| o.operation.as_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let (mut rows, mut missing, mut unequal_work) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            match runs.map(|(_, run)| run.operation(name)) {
                [Some(base), Some(again), Some(tuned)] => {
                    if base.operations != again.operations || base.operations != tuned.operations {
                        unequal_work.push(UnequalWork {
                            operation: name.into(),
                            base: base.operations,
                            base_again: again.operations,
                            tuned: tuned.operations,
                        });
                    }
                    rows.extend(MetricRow::all([base, again, tuned], costs));
                }
                _ => {
                    let absent = runs.iter().filter(|(_, run)| run.operation(name).is_none());
                    let runs = absent.map(|(run, _)| *run).collect();
                    missing.push(MissingOperation { operation: name.into(), runs });
                }
            }
        }
        if rows.is_empty() {
            let list = |run: &Measurement| {
                run.operations.iter().map(|o| o.operation.as_str()).collect::<Vec<_>>().join(", ")
            };
            return Err(Error::NothingInCommon { base: list(base), tuned: list(tuned) });
        }
        rows.extend(MetricRow::all([&base.total, &base_again.total, &tuned.total], costs));
        let ComparisonLabels { workload, machine, model, base, tuned, .. } = labels;
        Ok(Self {
            schema: SchemaName,
            workload,
            machine,
            model,
            base,
            tuned,
            runs: 1,
            seeds: 1,
            unequal_user_code: UnequalUserCode::mark(&mut rows),
            rows,
            missing,
            unequal_work,
            layouts: None,
            models: None,
        })
    }

    /// Returns the row of an operation (or [`TOTAL`]) and a metric.
    pub fn row(&self, operation: &str, metric: Metric) -> Option<&MetricRow> {
        self.rows.iter().find(|row| row.operation == operation && row.metric == metric)
    }

    /// Returns the metrics that have rows, in order.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        Metric::all().iter().copied().filter(|metric| self.rows.iter().any(|row| row.metric == *metric))
    }

    /// Returns the operations that have rows, in order, without [`TOTAL`].
    pub fn operations(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        let names = self.rows.iter().map(|row| row.operation.as_str()).filter(|name| *name != TOTAL);
        names.filter(move |name| last.replace(*name) != Some(*name))
    }

    /// Returns the row of the operation whose `metric` grew most, or shrank least; the first of
    /// equal ones. `None` if no operation has a change in percent.
    pub fn largest_growth(&self, metric: Metric) -> Option<&MetricRow> {
        let of_metric = |row: &&MetricRow| row.metric == metric && row.operation != TOTAL;
        let rows = self.rows.iter().filter(of_metric).filter(|row| row.change_percent.is_some());
        rows.reduce(|worst, row| if row.change_percent > worst.change_percent { row } else { worst })
    }

    /// Serializes the comparison as indented JSON with a final newline; a contract
    /// (`docs/json.md`).
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists of them: serialization cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Parses the JSON of [`Comparison::to_json`]; refuses another schema.
    pub fn from_json(text: &str) -> Result<Self> {
        Ok(serde_json::from_str(text)?)
    }
}

impl UnequalUserCode {
    /// Returns the operations whose user code differs by more than its own spread, [`TOTAL`] last.
    /// Marks the rows that include such code.
    pub(crate) fn mark(rows: &mut [MetricRow]) -> Vec<Self> {
        let found = Self::all(rows);
        for row in rows {
            let is_of_one = found.iter().any(|of| of.operation == row.operation);
            row.other_work = row.metric.code_scope() != CodeScope::Kernel && is_of_one;
        }
        found
    }

    fn all(rows: &[MetricRow]) -> Vec<Self> {
        let find = |operation: &str, metric: Metric| {
            rows.iter().find(|row| row.operation == operation && row.metric == metric)
        };
        let user = rows.iter().filter(|row| row.metric == Metric::UserInstructions);
        user.filter(|row| differs_beyond_spread(row))
            .map(|row| {
                let kernel = find(&row.operation, Metric::PathLength);
                let whole = find(&row.operation, Metric::WholeInstructions).map(|row| row.base);
                let share = kernel.zip(whole.filter(|whole| *whole > 0.0));
                Self {
                    operation: row.operation.clone(),
                    base: row.base,
                    tuned: row.tuned,
                    change_percent: row.change_percent,
                    interval_percent: row.interval_percent,
                    kernel_share_percent: share.map(|(row, whole)| 100.0 * (row.tuned - row.base) / whole),
                }
            })
            .collect()
    }
}

/// Checks whether user instructions differ by more than equal work may. A change that several runs
/// do not show to be significant is their own spread.
fn differs_beyond_spread(row: &MetricRow) -> bool {
    let is_small = row.change_percent.is_some_and(|change| change.abs() <= SAME_WORK_PERCENT);
    let is_spread = row.interval_percent.is_some() && row.within_noise();
    row.tuned != row.base && !is_small && !is_spread
}

impl Comparison {
    /// Returns the user code of an operation, or of [`TOTAL`], if it ran differently. The whole
    /// path is then no measure of a kernel.
    pub fn unequal_user_code(&self, operation: &str) -> Option<&UnequalUserCode> {
        self.unequal_user_code.iter().find(|of| of.operation == operation)
    }

    /// Checks whether runs with several start offsets would help: user code differs, and there is
    /// only one run of each kernel.
    pub fn needs_start_offsets(&self) -> bool {
        self.runs * self.seeds == 1 && self.unequal_user_code(TOTAL).is_some()
    }
}

fn one() -> usize {
    1
}

/// Checks whether serde skips the field: a comparison of one run is written without it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(runs: &usize) -> bool {
    *runs == 1
}

/// Field that serializes as [`SCHEMA`] and accepts only that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SchemaName;

impl Serialize for SchemaName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(SCHEMA)
    }
}

impl<'de> Deserialize<'de> for SchemaName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = String::deserialize(deserializer)?;
        if found == SCHEMA {
            Ok(SchemaName)
        } else {
            Err(serde::de::Error::custom(format!("its schema is \"{found}\", {SCHEMA} is read")))
        }
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "user_code_tests.rs"]
mod user_code_tests;
