//! Suites: workloads whose rows are known before anything runs.
//!
//! A row is a region of the measured run: one that a program of ours marks (its rows are in `guest/NAME.rows`), or
//! one that init marks around a step, such as a server under load.

use crate::disk::Disk;
use crate::programs::{self, Program};
use crate::workload::{Better, Command, Step, Workload};

/// The row that is the sum of all others of its program.
pub const AGGREGATE: &str = "aggregate";

/// A workload with its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// What runs them.
    pub workload: Workload,
    /// In the order of the workload's steps, and of the programs' own tables.
    pub rows: Vec<SuiteRow>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteRow {
    /// The region's name, unique in the suite.
    pub name: String,
    /// Of its figure on a machine that times.
    pub unit: Unit,
    /// Kernel options that it needs besides what every guest needs: `CONFIG_VETH`.
    pub needs: Vec<String>,
    /// Which of the measured run's steps has it.
    step: usize,
}

/// What a row's time is told in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// `ns/op`.
    Time,
    /// `MB/s`, a megabyte of a million bytes, where an operation moves this many bytes.
    Megabytes(u64),
    /// Operations in a second by the name that users give them: `transactions/s`.
    Rate(String),
    /// What a metric of the workload says.
    Metric {
        /// The metric's unit.
        unit: String,
        /// Which way the metric should go.
        better: Better,
    },
}

impl Unit {
    /// As `--list` says it, the third field of a line; nothing there means a time.
    fn parse(text: Option<&str>) -> Self {
        match text {
            None | Some("ns/op") => Unit::Time,
            Some(text) => match text.strip_prefix("MB/s:").and_then(|bytes| bytes.parse().ok()) {
                Some(bytes) => Unit::Megabytes(bytes),
                None => Unit::Rate(text.into()),
            },
        }
    }

    /// `ns/op`, `MB/s`, `transactions/s`.
    pub fn name(&self) -> &str {
        match self {
            Unit::Time => "ns/op",
            Unit::Megabytes(_) => "MB/s",
            Unit::Rate(unit) | Unit::Metric { unit, .. } => unit,
        }
    }

    /// Which values are good.
    pub fn better(&self) -> Better {
        match self {
            Unit::Time => Better::Lower,
            Unit::Megabytes(_) | Unit::Rate(_) => Better::Higher,
            Unit::Metric { better, .. } => *better,
        }
    }

    /// The figure of so many operations in so much time; none of a metric, which is no matter of either.
    pub fn value(&self, operations: u64, nanoseconds: u64) -> Option<f64> {
        let (operations, nanoseconds) = (operations as f64, nanoseconds as f64);
        match self {
            Unit::Time => Some(nanoseconds / operations),
            Unit::Megabytes(bytes) => Some(operations * *bytes as f64 * 1e3 / nanoseconds),
            Unit::Rate(_) => Some(operations * 1e9 / nanoseconds),
            Unit::Metric { .. } => None,
        }
    }
}

impl Suite {
    /// The workload as a suite; none if it has steps of programs whose rows nobody knows and no others.
    pub fn of(workload: Workload) -> Option<Self> {
        let mut rows: Vec<SuiteRow> = Vec::new();
        for (at, step) in workload.measured.steps.iter().enumerate() {
            for mut row in rows_of(step, at) {
                row.needs.extend(workload.disk.iter().flat_map(Disk::needs).map(str::to_owned));
                if rows.iter().all(|known| known.name != row.name) {
                    rows.push(row);
                }
            }
        }
        (!rows.is_empty()).then_some(Self { workload, rows })
    }

    /// A row by name.
    pub fn row(&self, name: &str) -> Option<&SuiteRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Why the running system cannot run it, if it is for guests only.
    pub fn guest_only(&self) -> Option<&'static str> {
        if !self.workload.append.is_empty() {
            Some("it wants more on the kernel's command line (`append`)")
        } else if self.workload.disk.is_some() {
            Some("it wants a disk of its own (`disk`), which only guests have")
        } else {
            self.untimed()
        }
    }

    /// Whether it is nothing but programs of ours, which run anywhere; all else needs the guest's init and image.
    pub fn is_bare(&self) -> bool {
        let workload = &self.workload;
        let ours = |step: &Step| step.region.is_none() && program(step).is_some_and(|p| p.rows.is_some());
        workload.services.is_empty()
            && workload.setup.is_empty()
            && workload.packages.is_empty()
            && workload.files.is_empty()
            && workload.texts.is_empty()
            && workload.measured.steps.iter().all(ours)
    }

    /// Why a guest that is timed and not recorded gives no figures for it.
    pub fn untimed(&self) -> Option<&'static str> {
        let silent = |step: &Step| step.region.is_some() && step.metrics.is_empty();
        if self.workload.network_cards > 0 {
            Some("it takes network cards, which only guests in the emulator have")
        } else if self.workload.measured.steps.iter().any(silent) {
            Some("what it runs between init's marks says no figure (`metrics`), and init has no clock")
        } else {
            None
        }
    }

    /// What tells which rows cannot run: prints their names with the reasons, one a line, by a tab.
    pub fn checks(&self) -> Vec<Command> {
        let steps = self.workload.measured.steps.iter();
        let checked = steps.filter(|step| program(step).is_some_and(|p| p.options.contains(&"--check")));
        checked.map(|step| vec![step.command[0].clone(), "--check".into()]).collect()
    }

    /// Whether all of its programs do more, or less, of the same work if asked to.
    pub fn is_scalable(&self) -> bool {
        self.all_take("--scale")
    }

    /// Whether its rows are many operations in one system call, each done several times in one boot: what is worth
    /// timing where entering the kernel is dear (`kerntune time`).
    pub fn is_batched(&self) -> bool {
        self.all_take("--iterations")
    }

    /// Whether it is load generators alone, each a step that says a figure of its own. They do the same work each time, and
    /// can do it several times in one boot.
    pub fn is_load(&self) -> bool {
        self.workload.measured.steps.iter().all(|step| step.region.is_some() && !step.metrics.is_empty())
    }

    fn all_take(&self, option: &str) -> bool {
        let takes =
            |step: &Step| step.region.is_none() && program(step).is_some_and(|p| p.options.contains(&option));
        self.workload.measured.steps.iter().all(takes)
    }

    /// The workload with as little besides these rows as its programs allow, and each so many times its usual work.
    /// With all rows and scale 1 it is the workload as it stands, so that its recordings are found again. The scale
    /// is of [`Suite::is_scalable`] suites.
    pub fn restricted(&self, rows: &[&SuiteRow], scale: f64) -> Workload {
        let mut workload = self.workload.clone();
        let steps = std::mem::take(&mut workload.measured.steps);
        let whole = self.rows.iter().all(|row| rows.contains(&row));
        for (at, mut step) in steps.into_iter().enumerate() {
            let of_step = rows.iter().filter(|row| row.step == at);
            let names: Vec<&str> = of_step.map(|row| row.name.as_str()).collect();
            if names.is_empty() && !whole {
                continue;
            }
            let can = step.region.is_none() && program(&step).is_some_and(|p| p.options.contains(&"--only"));
            if can && !whole && !names.contains(&AGGREGATE) {
                set(&mut step.command, "--only", &names.join(","));
            }
            if scale != 1.0 {
                set(&mut step.command, "--scale", &scale.to_string());
            }
            workload.measured.steps.push(step);
        }
        workload
    }
}

impl SuiteRow {
    /// Whether it is the sum of its program's other rows, and so needs them all.
    pub fn is_aggregate(&self) -> bool {
        self.name == AGGREGATE
    }
}

fn program(step: &Step) -> Option<&'static Program> {
    programs::named(step.command.first()?)
}

fn rows_of(step: &Step, at: usize) -> Vec<SuiteRow> {
    if let Some(region) = &step.region {
        let unit = step
            .metrics
            .first()
            .map_or(Unit::Time, |metric| Unit::Metric { unit: metric.unit.clone(), better: metric.better });
        return vec![SuiteRow { name: region.clone(), unit, needs: Vec::new(), step: at }];
    }
    let only = step.command.iter().position(|word| word == "--only").and_then(|at| step.command.get(at + 1));
    let asked = |name: &str| only.is_none_or(|only| only.split(',').any(|word| word == name));
    let lines = program(step).and_then(|program| program.rows).unwrap_or_default().lines();
    let rows = lines.map(|line| {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default().to_owned();
        let unit = Unit::parse(fields.nth(1));
        let needs =
            fields.next().filter(|needs| *needs != "-").map(|needs| needs.split(',').map(str::to_owned));
        SuiteRow { name, unit, needs: needs.into_iter().flatten().collect(), step: at }
    });
    rows.filter(|row| asked(&row.name)).collect()
}

/// Gives an option its value, whether it is there or not.
fn set(command: &mut Command, option: &str, value: &str) {
    match command.iter().position(|word| word == option) {
        Some(at) if at + 1 < command.len() => value.clone_into(&mut command[at + 1]),
        _ => command.extend([option.to_owned(), value.to_owned()]),
    }
}

#[cfg(test)]
mod tests;
