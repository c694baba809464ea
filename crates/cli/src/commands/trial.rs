//! The command `kerntune ablate`.

use clap::Args;
use kerntune_command::{
    build_request, check_input, command, show_steps, workload, BuildOptions, CliOutput, CommandEntry,
    CpuOptions, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, ModelOptions, RunSubcommand,
    MAX_MINUTES,
};
use kerntune_compare::number::figure;
use kerntune_compare::{Metric, TOTAL};
use kerntune_guest::read_text;
use kerntune_kernel::Compiler;
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::trial::{
    self, keep, parse, trial, TrialChange, TrialRequest, TrialResult, TriedSet, PROBE_RUNS,
};
use kerntune_tune::{Session, MAX_RUNS};
use kerntune_work::take_directory;
use std::path::PathBuf;
use std::time::Duration;

/// Label of a base kernel that is built with non-default options.
const CHANGED: &str = "try-base";

pub const COMMAND: CommandEntry = command::<AblateOptions>("ablate", 135, "Tune");

/// Measure changes alone, together, and all but one: configuration, patches, command line,
/// sysctl, recipes (docs/ablate.md)
#[derive(Debug, Args)]
#[command(alias = "try")]
pub struct AblateOptions {
    /// The changes: a .toml file (docs/ablate.md)
    #[arg(value_name = "CHANGES")]
    pub changes: PathBuf,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub build: BuildOptions,
    /// Figure by which changes are judged: path-length, taken-branches, l1i-misses, itlb-misses or
    /// model-cycles
    #[arg(long, default_value = "path-length", value_name = "METRIC", value_parser = metric)]
    pub by: Metric,
    /// Judge by this operation of the workload [default: all together]
    #[arg(long, default_value = TOTAL, hide_default_value = true, value_name = "OPERATION")]
    pub operation: String,
    /// Number of runs of each set of changes, if the figure depends on the start of a run;
    /// otherwise there is one run
    #[arg(long, default_value_t = 8, value_name = "N",
          value_parser = clap::value_parser!(u32).range(i64::from(PROBE_RUNS)..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    /// Try each change alone, then the helpful ones together; skip the trials of all changes and of
    /// all but one
    #[arg(long)]
    pub alone: bool,
    /// Start nothing new after this many minutes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    /// Write the accepted changes into this directory: changes.toml, config fragment, command line,
    /// sysctl.conf, patches
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Parses the name of a metric that `ablate` can judge by.
fn metric(name: &str) -> Result<Metric, String> {
    let named = |metric: &&Metric| metric.title().to_lowercase().replace(' ', "-") == name;
    Metric::all().iter().find(named).copied().ok_or_else(|| {
        let known: Vec<_> =
            Metric::all().iter().map(|metric| metric.title().to_lowercase().replace(' ', "-")).collect();
        format!("not a metric; give one of {}", known.join(", "))
    })
}

impl RunSubcommand<GlobalOptions> for AblateOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        check_input("CHANGES", &self.changes)?;
        let changes = parse(&read_text("read", &self.changes)?, &self.changes)?;
        let workload = workload(&self.workload, &self.cpus)?;
        workload.require_run("measured")?;
        if let Some(directory) = self.output.as_ref().filter(|_| !self.dry.dry_run) {
            take_directory(directory, "ablate", &[])
                .map_err(|error| Failure::usage(format!("--output: {error}")))?;
        }
        // The usual label stays with the default base kernel.
        let label = if self.build.is_default() { LABEL } else { CHANGED };
        let build = with_needs(build_request(&self.build, label, Compiler::default())?, [&workload]);
        let model = self.model.find(false)?;
        let work = self.dry.work(global)?;
        let session = Session::new(&work, output.progress())?.with_jobs(self.build.jobs);
        let request = TrialRequest {
            build: &build,
            workload: &workload,
            changes: &changes,
            model: &model,
            metric: self.by,
            operation: &self.operation,
            runs: self.runs,
            alone: self.alone,
            budget: self.budget.map(|minutes| Duration::from_secs(minutes * 60)),
        };
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            trial::dry_run(&mut dry, &request)?;
            return Ok(show_steps(dry, self.format.json, output));
        }
        let found = trial(&session, &request, &|names| output.note(&format!("trying {}", names.join(", "))))?;
        if let Some(directory) = &self.output {
            let kept = |change: &&TrialChange| found.kept.contains(&change.name);
            keep(directory, &changes.iter().filter(kept).collect::<Vec<_>>())?;
        }
        match self.format.json {
            true => output.json(&found),
            false => print(&found, self, output),
        }
        Ok(Exit::Ok)
    }
}

/// Formats a difference in percent of the base figure.
fn percent(found: &TrialResult, difference: Option<f64>) -> String {
    match difference {
        None => "-".into(),
        Some(_) if found.base_figure == 0.0 => "-".into(),
        Some(by) => format!("{:+.3}", 100.0 * by / found.base_figure),
    }
}

/// Formats a figure in percent of the base figure.
fn share(found: &TrialResult, value: f64) -> String {
    if found.base_figure == 0.0 {
        return "-".into();
    }
    format!("{:.3}", 100.0 * value / found.base_figure)
}

fn signed(difference: Option<f64>) -> String {
    match difference {
        None => "-".into(),
        Some(by) if by < 0.0 => format!("-{}", figure(-by)),
        Some(by) => format!("+{}", figure(by)),
    }
}

/// Returns the result of trying one change alone.
fn alone<'a>(found: &'a TrialResult, change: &str) -> Option<&'a TriedSet> {
    found.tried.iter().find(|tried| tried.changes == [change])
}

fn print(found: &TrialResult, options: &AblateOptions, output: &CliOutput) {
    let of = match found.operation.as_str() {
        TOTAL => format!("all of {}", found.workload),
        operation => format!("{operation} of {}", found.workload),
    };
    let model = if found.metric.is_model() { " (model)" } else { "" };
    output.print(&match &found.kept[..] {
        [] => format!(
            "Of {} changes none is worth keeping, by {}{model} of {of}.\n",
            found.judged.len(),
            found.metric.title()
        ),
        kept => format!(
            "Keep {}: {} % of the {}{model} of {of}.\n",
            kept.join(", "),
            percent(found, found.kept_difference),
            found.metric.title()
        ),
    });
    let noise =
        format!("differences below {} ({} %) are noise", figure(found.noise), share(found, found.noise));
    output.print(&format!(
        "base      {} {} ({}); A/A {}; {}\n",
        figure(found.base_figure),
        found.unit,
        found.base,
        signed(Some(found.aa)),
        match found.runs {
            1 => noise,
            runs => format!(
                "the figure depends on when a run begins (standard deviation {} %):\n          means of {runs} runs, {noise}",
                share(found, found.spread)
            ),
        }
    ));
    let others: Vec<Metric> =
        [Metric::PathLength, Metric::TakenBranches, Metric::L1iMisses, Metric::ModelCycles]
            .into_iter()
            .filter(|metric| *metric != found.metric)
            .collect();
    let mut heads = vec!["CHANGE", "#ALONE", "#ALONE %"];
    if !options.alone {
        heads.extend(["#LAST %", "#INTERPLAY %"]);
    }
    let titles: Vec<String> = others
        .iter()
        .map(|metric| {
            format!("#{}{} %", metric.title().to_uppercase(), if metric.is_model() { " (MODEL)" } else { "" })
        })
        .collect();
    heads.extend(titles.iter().map(String::as_str));
    heads.push("VERDICT");
    output.table(
        &heads,
        found.judged.iter().map(|line| {
            let mut cells = vec![line.change.clone(), signed(line.alone), percent(found, line.alone)];
            if !options.alone {
                cells.push(percent(found, line.last));
                cells.push(line.interplay.map_or(String::new(), |by| percent(found, Some(by))));
            }
            let set = alone(found, &line.change);
            cells.extend(others.iter().map(|metric| {
                let of = set.and_then(|set| set.figures.iter().find(|figure| figure.metric == *metric));
                of.and_then(|of| of.change_percent).map_or("-".into(), |change| format!("{change:+.2}"))
            }));
            cells.push(line.verdict.to_string());
            cells
        }),
    );
    if let (Some(sum), Some(joint)) = (found.sum, found.joint) {
        let by = joint - sum;
        let said = match by {
            _ if by.abs() <= found.noise => "they add up".into(),
            _ if by > 0.0 => format!("together they bring {} less than each alone", figure(by)),
            _ => format!("together they bring {} more than each alone", figure(-by)),
        };
        output.print(&format!(
            "\nall together  {} ({} %); sum of each alone {} ({} %): {said}",
            signed(Some(joint)),
            percent(found, Some(joint)),
            signed(Some(sum)),
            percent(found, Some(sum)),
        ));
    }
    for pair in &found.pairs {
        output.print(&format!(
            "{} and {} do not add up: {} together, {} each alone",
            pair.changes[0],
            pair.changes[1],
            signed(Some(pair.joint)),
            signed(Some(pair.sum)),
        ));
    }
    for tried in &found.tried {
        let names = tried.changes.join(", ");
        if let Some(because) = &tried.because {
            output.print(&format!("not usable  {names}: {because}"));
        }
        for (operation, change) in &tried.harmed {
            if tried.changes.len() == 1 || tried.changes == found.kept {
                output.print(&format!("longer      {operation} with {names}: {change:+.2} %"));
            }
        }
    }
    output.print(match options.alone {
        true => "\nalone  against the base kernel. Path length and taken branches are exact; a model \
                 computes columns marked (MODEL).",
        false => {
            "\nalone  against the base kernel; last: with all changes against all others; interplay: last minus alone, where that is\n       \
             more than the noise. Path length and taken branches are exact; a model computes columns marked (MODEL)."
        }
    });
    if let Some(directory) = &options.output {
        output.print(&format!("\nwritten to {}", directory.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_names_of_the_help() {
        let names = ["path-length", "taken-branches", "l1i-misses", "itlb-misses", "model-cycles"];
        assert_eq!(names.map(|name| metric(name).is_ok()), [true; 5]);
        assert!(metric("speed").unwrap_err().contains("path-length"));
    }
}
