//! Two kernels, one workload, and the base kernel once more.

use crate::{
    Better, Costs, Error, Layouts, Measurement, Metric, Models, OperationCounters, Result, UnequalUserCode,
    Whose, SAME_WORK_PERCENT, TOTAL,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-comparison/1";

/// How sure the interval of a change is.
pub const CONFIDENCE: f64 = 0.99;

/// Which kernel, as people and scripts need it; the kernel's own record has the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRef {
    /// Its id in the work directory.
    pub id: String,
    /// Its short name.
    pub label: String,
    /// Release, `6.12.9`.
    pub version: String,
    /// What compiled it, `gcc 12.2.0`.
    pub compiler: String,
    /// The recipe that made it; none for a plain build.
    pub recipe: Option<String>,
}

/// What a comparison is of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Labels {
    /// The workload's name.
    pub workload: String,
    /// The machine's name, `emulator`.
    pub machine: String,
    /// The front-end model's name, `generic`.
    pub model: String,
    /// What its events cost, if it says: with them there are rows of [`Metric::ModelCycles`].
    pub costs: Option<Costs>,
    /// The kernel compared with.
    pub base: KernelRef,
    /// The kernel in question.
    pub tuned: KernelRef,
}

/// One metric of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Operation, or [`TOTAL`].
    pub operation: String,
    /// What was counted.
    pub metric: Metric,
    /// Unit of `base`, `base_again` and `tuned`.
    pub unit: String,
    /// Whether it is a front-end model's figure.
    pub model: bool,
    /// Of the base kernel.
    pub base: f64,
    /// Of the base kernel in its second run.
    pub base_again: f64,
    /// Of the tuned kernel.
    pub tuned: f64,
    /// 100 · (tuned − base) / base; 0 where both are 0; none where only the base is 0.
    pub change_percent: Option<f64>,
    /// The same with the base's second run in the place of the tuned kernel.
    pub aa_percent: Option<f64>,
    /// Of several runs of each kernel, with as many seeds or begun at as many moments: the change lies between these with a
    /// confidence of [`CONFIDENCE`]. None of one run, or where a run has nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<[f64; 2]>,
    pub(crate) within_noise: bool,
    /// User code is in it, and ran differently on the two kernels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) other_work: bool,
}

impl Row {
    /// The rows of an operation; `counters` are of the base, the second base and the tuned run.
    fn all<'a>(
        counters: [&'a OperationCounters; 3],
        costs: Option<&'a Costs>,
    ) -> impl Iterator<Item = Self> + 'a {
        Metric::all().iter().filter_map(move |&metric| {
            if let [Some(base), Some(again), Some(tuned)] = counters.map(|of| metric.count(of)) {
                // Of the same number of operations the sums say it without rounding.
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

    /// `exact` says of equal numbers of operations whether the change is within the noise, if that can be said
    /// better than by `sums`.
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

    /// Whether the change is not larger than the A/A difference, or of several runs not told from nothing: `*` in tables. Two
    /// equal figures are.
    pub fn within_noise(&self) -> bool {
        self.within_noise
    }

    /// Whether user code is in it that ran differently on the two kernels, so that the change is not the kernel's: `~` in tables.
    pub fn is_of_other_work(&self) -> bool {
        self.other_work
    }

    /// Lower and beyond the A/A difference.
    pub fn is_lower(&self) -> bool {
        !self.within_noise && self.tuned < self.base
    }

    /// Higher and beyond the A/A difference.
    pub fn is_higher(&self) -> bool {
        !self.within_noise && self.tuned > self.base
    }

    /// Changed for the better beyond the A/A difference, by the same work.
    pub fn is_better(&self) -> bool {
        let is_better = match self.metric.better() {
            Better::Lower => self.is_lower(),
            Better::Higher => self.is_higher(),
        };
        is_better && !self.other_work
    }

    /// Changed for the worse beyond the A/A difference, by the same work.
    pub fn is_worse(&self) -> bool {
        let is_worse = match self.metric.better() {
            Better::Lower => self.is_higher(),
            Better::Higher => self.is_lower(),
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

/// One of the three runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Run {
    /// The base kernel.
    Base,
    /// The base kernel once more.
    BaseAgain,
    /// The tuned kernel.
    Tuned,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Run::Base => "base",
            Run::BaseAgain => "second base",
            Run::Tuned => "tuned",
        })
    }
}

/// An operation that was not done in every run and so has no rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The operation.
    pub operation: String,
    /// The runs in which it was not done.
    pub runs: Vec<Run>,
}

/// An operation that was done in every run, but not equally often: its figures per operation
/// can be compared, totals cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnequalWork {
    /// The operation.
    pub operation: String,
    /// How often in the base run.
    pub base: u64,
    /// How often in the second base run.
    pub base_again: u64,
    /// How often in the tuned run.
    pub tuned: u64,
}

/// The comparison of two kernels; its JSON form is a contract (`docs/json.md`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    schema: Schema,
    /// The workload's name.
    pub workload: String,
    /// The machine's name.
    pub machine: String,
    /// The front-end model's name.
    #[serde(default)]
    pub model: String,
    /// The kernel compared with.
    pub base: KernelRef,
    /// The kernel in question.
    pub tuned: KernelRef,
    /// Runs of each kernel, begun at as many moments: figures are means if there are several.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub runs: usize,
    /// Seeds of the workload, with so many [`runs`](Self::runs) each: figures are means if there are several.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub seeds: usize,
    /// Per operation in the order of the base run, then [`TOTAL`]; each with the same metrics.
    pub rows: Vec<Row>,
    /// Operations that are not in every run.
    #[serde(default)]
    pub missing: Vec<Missing>,
    /// Operations that were not done equally often.
    #[serde(default)]
    pub unequal_work: Vec<UnequalWork>,
    /// Operations, and [`TOTAL`], whose user code ran differently on the two kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unequal_user_code: Vec<UnequalUserCode>,
    /// The same work on the base kernel with its functions in random orders, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<Layouts>,
    /// The change under several front-end models, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Models>,
}

impl Comparison {
    /// Compares one run of each kernel; `base_again` is a second run of the base kernel.
    pub fn new(
        base: &Measurement,
        base_again: &Measurement,
        tuned: &Measurement,
        labels: Labels,
    ) -> Result<Self> {
        let costs = labels.costs.as_ref();
        let runs = [(Run::Base, base), (Run::BaseAgain, base_again), (Run::Tuned, tuned)];
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
                    rows.extend(Row::all([base, again, tuned], costs));
                }
                _ => {
                    let absent = runs.iter().filter(|(_, run)| run.operation(name).is_none());
                    let runs = absent.map(|(run, _)| *run).collect();
                    missing.push(Missing { operation: name.into(), runs });
                }
            }
        }
        if rows.is_empty() {
            let list = |run: &Measurement| {
                run.operations.iter().map(|o| o.operation.as_str()).collect::<Vec<_>>().join(", ")
            };
            return Err(Error::NothingInCommon { base: list(base), tuned: list(tuned) });
        }
        rows.extend(Row::all([&base.total, &base_again.total, &tuned.total], costs));
        let Labels { workload, machine, model, base, tuned, .. } = labels;
        Ok(Self {
            schema: Schema,
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

    /// The row of an operation (or [`TOTAL`]) and a metric.
    pub fn row(&self, operation: &str, metric: Metric) -> Option<&Row> {
        self.rows.iter().find(|row| row.operation == operation && row.metric == metric)
    }

    /// The metrics that there are rows of, in order.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        Metric::all().iter().copied().filter(|metric| self.rows.iter().any(|row| row.metric == *metric))
    }

    /// The operations that have rows, in order, without [`TOTAL`].
    pub fn operations(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        let names = self.rows.iter().map(|row| row.operation.as_str()).filter(|name| *name != TOTAL);
        names.filter(move |name| last.replace(*name) != Some(*name))
    }

    /// The contract's JSON, for people to read too, with a newline at its end.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists of them: nothing in it can fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads what [`Comparison::to_json`] wrote; text of another schema is refused.
    pub fn from_json(text: &str) -> Result<Self> {
        Ok(serde_json::from_str(text)?)
    }
}

impl UnequalUserCode {
    /// Every operation whose user code differs by more than its own spread, as far as that is known; the total is last. Rows that
    /// have such code are marked.
    pub(crate) fn mark(rows: &mut [Row]) -> Vec<Self> {
        let found = Self::all(rows);
        for row in rows {
            let is_of_one = found.iter().any(|of| of.operation == row.operation);
            row.other_work = row.metric.whose() != Whose::Kernel && is_of_one;
        }
        found
    }

    fn all(rows: &[Row]) -> Vec<Self> {
        let find = |operation: &str, metric: Metric| {
            rows.iter().find(|row| row.operation == operation && row.metric == metric)
        };
        let user = rows.iter().filter(|row| row.metric == Metric::UserInstructions);
        user.filter(|row| is_other_work(row))
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

/// Whether that is more than the same work may differ. What several runs do not tell from chance is their own spread.
fn is_other_work(row: &Row) -> bool {
    let is_small = row.change_percent.is_some_and(|change| change.abs() <= SAME_WORK_PERCENT);
    let is_spread = row.interval_percent.is_some() && row.within_noise();
    row.tuned != row.base && !is_small && !is_spread
}

impl Comparison {
    /// What is known of an operation's user code, or of [`TOTAL`]'s, if it ran differently: its whole path is no measure of a
    /// kernel then.
    pub fn unequal_user_code(&self, operation: &str) -> Option<&UnequalUserCode> {
        self.unequal_user_code.iter().find(|of| of.operation == operation)
    }

    /// Whether runs at several moments would say more: user code differs, and there is one run of each kernel.
    pub fn needs_moments(&self) -> bool {
        self.runs * self.seeds == 1 && self.unequal_user_code(TOTAL).is_some()
    }
}

fn one() -> usize {
    1
}

/// Whether the field is left out: a comparison of one run is written without it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(runs: &usize) -> bool {
    *runs == 1
}

/// [`SCHEMA`] when written, and nothing else when read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Schema;

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(SCHEMA)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = String::deserialize(deserializer)?;
        if found == SCHEMA {
            Ok(Schema)
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
