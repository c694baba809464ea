//! The option `--dry-run`, and the table of steps that it prints.

use crate::exit::{Exit, Failure};
use crate::global::{work, work_for_dry_run, work_to_read, GlobalOptions};
use crate::output::CliOutput;
use clap::Args;
use kerntune_table::number::{figure, grouped};
use kerntune_tune::dry_run::{DryRun, PlannedStep, StepEstimate, TotalEstimate, SCHEMA};
use kerntune_work::WorkDir;
use serde::Serialize;

// Not a doc comment: it would replace the help of the command that flattens this struct.
#[derive(Debug, Clone, Copy, Args)]
#[allow(missing_docs)]
pub struct DryRunOptions {
    /// Show the steps: which of them are done, and estimates of objects, time, memory and disk for the
    /// others; make nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl DryRunOptions {
    /// Opens the work directory, and creates it if needed; for a dry run, creates nothing.
    ///
    /// # Errors
    /// Those of [`work`].
    pub fn work(self, global: &GlobalOptions) -> Result<WorkDir, Failure> {
        if self.dry_run {
            return work_for_dry_run(global);
        }
        work(global)
    }

    /// Opens the work directory for a command that starts from results in it.
    ///
    /// # Errors
    /// Those of [`work_to_read`].
    pub fn work_to_read(self, global: &GlobalOptions) -> Result<WorkDir, Failure> {
        if self.dry_run {
            return work_for_dry_run(global);
        }
        work_to_read(global)
    }
}

/// The steps in the output of `--json`.
#[derive(Serialize)]
struct StepsJson<'a> {
    schema: &'static str,
    steps: &'a [PlannedStep],
    total: TotalEstimate,
}

/// Prints the steps of a dry run as a table or as JSON.
pub fn show_steps(dry: DryRun, json: bool, output: &CliOutput) -> Exit {
    let steps = &dry.into_steps()[..];
    let total = TotalEstimate::of(steps);
    if json {
        output.json(&StepsJson { schema: SCHEMA, steps, total });
        return Exit::Ok;
    }
    output.table(
        &["#STEP", "WHAT", "STATE"],
        steps.iter().enumerate().map(|(at, step)| {
            let state = match (&step.result, &step.estimate) {
                (Some(path), _) => format!("done: {}", path.display()),
                (None, Some(estimate)) => format!("to do: {}", words(estimate)),
                (None, None) => "to do".into(),
            };
            vec![(at + 1).to_string(), step.what.clone(), state]
        }),
    );
    let mut bases: Vec<&str> = Vec::new();
    let to_do = steps.iter().filter(|step| step.result.is_none());
    for basis in to_do.filter_map(|step| Some(step.estimate.as_ref()?.rests_on.as_str())) {
        if !bases.contains(&basis) {
            bases.push(basis);
        }
    }
    if bases.is_empty() {
        return Exit::Ok;
    }
    output.print(&format!(
        "\nto do: {} of {} steps: {}\n\nEstimates rest on {}. Other work on this machine makes it longer, objects from a \
         cache shorter; a build directory goes when its kernel is made.",
        total.steps,
        steps.len(),
        sum(&total),
        bases.join("; ")
    ));
    Exit::Ok
}

/// Formats a step's estimate: `~1,079 objects, ~4.10 min, ~514.5 MiB, ~1.0 GiB of memory`.
fn words(of: &StepEstimate) -> String {
    let mut words = Vec::new();
    words.extend(of.objects.map(|objects| format!("~{} objects", grouped(objects))));
    words.extend(of.runs.map(runs));
    words.push(of.minutes.map_or("time not known".into(), |minutes| format!("~{} min", figure(minutes))));
    words.extend(of.disk_bytes.map(|disk| format!("~{}", bytes(disk))));
    words.extend(of.memory_bytes.map(|memory| format!("~{} of memory", bytes(memory))));
    words.join(", ")
}

fn sum(total: &TotalEstimate) -> String {
    let mut words = Vec::new();
    if total.objects > 0 {
        words.push(format!("~{} objects", grouped(total.objects)));
    }
    if total.runs > 0 {
        words.push(runs(total.runs));
    }
    let more = if total.more { " and the steps of unknown time" } else { "" };
    words.push(format!("~{} min{more}", figure(total.minutes)));
    words.push(format!("at most ~{} of memory", bytes(total.memory_bytes)));
    words.push(format!("~{} of disk", bytes(total.disk_bytes)));
    words.join(", ")
}

fn runs(count: u32) -> String {
    format!("{count} run{}", if count == 1 { "" } else { "s" })
}

/// Formats a number of bytes with a binary unit.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_024 => format!("{count} B"),
        1_024..1_048_576 => format!("{:.1} KiB", count as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", count as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", count as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said() {
        let build = StepEstimate {
            objects: Some(1079),
            minutes: Some(4.1),
            disk_bytes: Some(539_500_000),
            memory_bytes: Some(1 << 30),
            ..StepEstimate::default()
        };
        assert_eq!(words(&build), "~1,079 objects, ~4.10 min, ~514.5 MiB, ~1.0 GiB of memory");
        let guest = StepEstimate { runs: Some(3), memory_bytes: Some(3 << 30), ..StepEstimate::default() };
        assert_eq!(words(&guest), "3 runs, time not known, ~3.0 GiB of memory");
        let step = |estimate: &StepEstimate| PlannedStep {
            step: "x",
            what: String::new(),
            result: None,
            estimate: Some(estimate.clone()),
        };
        let done = PlannedStep { result: Some("/kept".into()), ..step(&build) };
        let total = TotalEstimate::of(&[step(&build), done, step(&guest), step(&build)]);
        assert_eq!((total.steps, total.objects, total.runs, total.more), (3, 2158, 3, true));
        assert_eq!(
            sum(&total),
            "~2,158 objects, 3 runs, ~8.20 min and the steps of unknown time, at most ~3.0 GiB of memory, ~514.5 MiB of disk"
        );
    }
}
