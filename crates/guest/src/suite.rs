//! Suites: workloads whose rows are known before anything runs.
//!
//! A row is a region of the measured run: one that a guest program marks (`embedded/guest/NAME.rows` lists
//! them), or one that init marks around a step, such as a server under load.

use crate::disk::Disk;
use crate::programs::{self, GuestProgram};
use crate::workload::{CommandLine, MetricDirection, Workload, WorkloadStep};

/// Name of the row that sums all others of its program.
pub const AGGREGATE: &str = "aggregate";

/// A workload with its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Workload that runs the rows.
    pub workload: Workload,
    /// Rows in the order of the workload's steps and of the programs' own tables.
    pub rows: Vec<SuiteRow>,
}

/// A row of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteRow {
    /// Name of the row's region, unique in the suite.
    pub name: String,
    /// Unit of its figure on a machine that times.
    pub unit: RowUnit,
    /// Kernel options that it needs besides what every guest needs: `CONFIG_VETH`.
    pub needs: Vec<String>,
    /// Index of its step in the measured run.
    step: usize,
}

/// Unit of a row's timed figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowUnit {
    /// `ns/op`.
    Time,
    /// `MB/s` (a megabyte is a million bytes), for operations that move this many bytes.
    Megabytes(u64),
    /// Operations per second, under their usual name: `transactions/s`.
    Rate(String),
    /// A metric that the workload prints.
    Metric {
        /// Unit of the metric.
        unit: String,
        /// Direction of better values.
        better: MetricDirection,
    },
}

impl RowUnit {
    /// Parses the third field of a line of `--list`; a missing one means a time.
    fn parse(text: Option<&str>) -> Self {
        match text {
            None | Some("ns/op") => RowUnit::Time,
            Some(text) => match text.strip_prefix("MB/s:").and_then(|bytes| bytes.parse().ok()) {
                Some(bytes) => RowUnit::Megabytes(bytes),
                None => RowUnit::Rate(text.into()),
            },
        }
    }

    /// Returns the unit's name: `ns/op`, `MB/s`, `transactions/s`.
    pub fn name(&self) -> &str {
        match self {
            RowUnit::Time => "ns/op",
            RowUnit::Megabytes(_) => "MB/s",
            RowUnit::Rate(unit) | RowUnit::Metric { unit, .. } => unit,
        }
    }

    /// Returns the direction of better values.
    pub fn better(&self) -> MetricDirection {
        match self {
            RowUnit::Time => MetricDirection::Lower,
            RowUnit::Megabytes(_) | RowUnit::Rate(_) => MetricDirection::Higher,
            RowUnit::Metric { better, .. } => *better,
        }
    }

    /// Returns the figure of so many operations in so much time; `None` for a metric.
    pub fn value(&self, operations: u64, nanoseconds: u64) -> Option<f64> {
        let (operations, nanoseconds) = (operations as f64, nanoseconds as f64);
        match self {
            RowUnit::Time => Some(nanoseconds / operations),
            RowUnit::Megabytes(bytes) => Some(operations * *bytes as f64 * 1e3 / nanoseconds),
            RowUnit::Rate(_) => Some(operations * 1e9 / nanoseconds),
            RowUnit::Metric { .. } => None,
        }
    }
}

impl Suite {
    /// Returns the workload as a suite; `None` if its only steps are programs with unknown rows.
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

    /// Finds a row by its name.
    pub fn row(&self, name: &str) -> Option<&SuiteRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns the reason why the suite runs only in guests; `None` if the running system can run
    /// it.
    pub fn guest_only(&self) -> Option<&'static str> {
        if !self.workload.append.is_empty() {
            Some("it wants more on the kernel's command line (`append`)")
        } else if !self.workload.modules.is_empty() {
            Some("it wants kernel modules (`modules`)")
        } else if !self.workload.kernel_config.is_empty() {
            Some("it wants options of its kernel (`kernel_config`)")
        } else if self.workload.disk.is_some() {
            Some("it wants a disk of its own (`disk`), which only guests have")
        } else {
            self.untimed()
        }
    }

    /// Checks whether the suite has only kerntune's own programs, which run anywhere; all else
    /// needs the guest's init and image.
    pub fn is_bare(&self) -> bool {
        let workload = &self.workload;
        let ours =
            |step: &WorkloadStep| step.region.is_none() && program(step).is_some_and(|p| p.rows.is_some());
        workload.services.is_empty()
            && workload.setup.is_empty()
            && workload.packages.is_empty()
            && workload.files.is_empty()
            && workload.texts.is_empty()
            && workload.copies.is_empty()
            && workload.measured.steps.iter().all(ours)
    }

    /// Returns the reason why a timed guest gives no figures for the suite; `None` if it does.
    pub fn untimed(&self) -> Option<&'static str> {
        if self.workload.network_cards > 0 {
            Some("it takes network cards, which only guests in the emulator have")
        } else if self.workload.nodes > 1 {
            Some("it takes NUMA nodes (`nodes`), which only guests in the emulator have")
        } else {
            None
        }
    }

    /// Returns the commands that print rows which cannot run here: name, tab and reason, one row a
    /// line.
    pub fn checks(&self) -> Vec<CommandLine> {
        let steps = self.workload.measured.steps.iter();
        let checked = steps.filter(|step| program(step).is_some_and(|p| p.options.contains(&"--check")));
        checked.map(|step| vec![step.command[0].clone(), "--check".into()]).collect()
    }

    /// Checks whether all of its programs can do more or less of the same work.
    pub fn is_scalable(&self) -> bool {
        self.all_take("--scale")
    }

    /// Checks whether the rows do many operations in one system call, several times per boot. Such
    /// rows can be timed where entering the kernel is expensive (`kerntune time`).
    pub fn is_batched(&self) -> bool {
        self.all_take("--iterations")
    }

    /// Checks whether each row is a step of its own, such as a load generator or any command. They
    /// always do the same work, and can run several times per boot.
    pub fn is_steps(&self) -> bool {
        self.workload.measured.steps.iter().all(|step| step.region.is_some())
    }

    fn all_take(&self, option: &str) -> bool {
        let takes = |step: &WorkloadStep| {
            step.region.is_none() && program(step).is_some_and(|p| p.options.contains(&option))
        };
        self.workload.measured.steps.iter().all(takes)
    }

    /// Restricts the workload to these rows, as far as its programs allow, and scales their work.
    ///
    /// With all rows and scale 1 the workload stays as it is, so that its recordings are found
    /// again. Only suites that satisfy [`Suite::is_scalable`] take a scale.
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
    /// Checks whether the row sums the other rows of its program, and so needs them all.
    pub fn is_aggregate(&self) -> bool {
        self.name == AGGREGATE
    }
}

fn program(step: &WorkloadStep) -> Option<&'static GuestProgram> {
    programs::named(step.command.first()?)
}

fn rows_of(step: &WorkloadStep, at: usize) -> Vec<SuiteRow> {
    if let Some(region) = &step.region {
        let unit = step.metrics.first().map_or(RowUnit::Time, |metric| RowUnit::Metric {
            unit: metric.unit.clone(),
            better: metric.better,
        });
        return vec![SuiteRow { name: region.clone(), unit, needs: Vec::new(), step: at }];
    }
    let only = step.command.iter().position(|word| word == "--only").and_then(|at| step.command.get(at + 1));
    let asked = |name: &str| only.is_none_or(|only| only.split(',').any(|word| word == name));
    let lines = program(step).and_then(|program| program.rows).unwrap_or_default().lines();
    let rows = lines.map(|line| {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default().to_owned();
        let unit = RowUnit::parse(fields.nth(1));
        let needs =
            fields.next().filter(|needs| *needs != "-").map(|needs| needs.split(',').map(str::to_owned));
        SuiteRow { name, unit, needs: needs.into_iter().flatten().collect(), step: at }
    });
    rows.filter(|row| asked(&row.name)).collect()
}

/// Sets the value of an option, whether it is there or not.
fn set(command: &mut CommandLine, option: &str, value: &str) {
    match command.iter().position(|word| word == option) {
        Some(at) if at + 1 < command.len() => value.clone_into(&mut command[at + 1]),
        _ => command.extend([option.to_owned(), value.to_owned()]),
    }
}

#[cfg(test)]
mod tests;
