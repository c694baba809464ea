//! The command `kerntune time`.

use super::{counters, cpu_times};
use crate::commands::counters::CounterOptions;
use crate::percent::positive_fraction;
use clap::Args;
use kerntune_command::{
    command, output_directory, show_steps, workload, CliOutput, CommandEntry, CpuOptions, DryRunOptions,
    Exit, Failure, FormatOptions, GlobalOptions, IntervalOptions, RunSubcommand, MAX_MINUTES,
};
use kerntune_kernel::Kernel;
use kerntune_stats::{BenchResults, ResultsRow, StopDecision, WidestRow};
use kerntune_tune::bench::timed::{machine, timed, StopCondition, TimedEffort, TimedRequest, KVM};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use std::path::PathBuf;
use std::time::Duration;

/// Default of `--boots`.
const BOOTS: u32 = 10;
/// Default of `--boots` with `--until-width`.
const MAX_BOOTS: u32 = 1000;

pub const COMMAND: CommandEntry = command::<TimeOptions>("time", 115, "Compare");

/// Time kernels against each other; boots them in turn
#[derive(Debug, Args)]
pub struct TimeOptions {
    /// The base kernel, which is timed twice: label, beginning of an id, or directory. Kernels
    /// built with --arch um run as processes (uml), others in a virtual machine (kvm)
    pub base: String,
    /// Kernels to compare with it
    pub others: Vec<String>,
    /// The workload: a name or a .toml file. Its steps have a region, or print
    /// times or figures
    #[arg(long, default_value = "batched", value_name = "WORKLOAD")]
    pub workload: String,
    /// Number of boots of each kernel, all kernels in turn; with --until-width, at most this many
    /// [default: 10; 1000 with --until-width]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub boots: Option<u32>,
    /// Boot until the interval of every row is at most this wide, relative to its estimate, for
    /// example 1%
    #[arg(long, value_parser = positive_fraction, value_name = "PERCENT")]
    pub until_width: Option<f64>,
    /// With --until-width: start no further round of boots after this many minutes
    #[arg(long, requires = "until_width", value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=MAX_MINUTES))]
    pub budget: Option<u64>,
    #[command(flatten)]
    pub interval: IntervalOptions,
    /// Measurements of each row per boot; for servers, runs of their load [default: 5 for batched
    /// suites, 1 for others; suites of kerntune's other programs allow only 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,
    /// Work of a row per measurement, as a multiple of its work in the emulator [default: 4 for
    /// batched suites, 10 for others, 1 for suites with fixed work]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    /// CPU of the host on which all kernels run [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    #[command(flatten)]
    pub counters: CounterOptions,
    /// Write the times into this directory: KERNEL.json for each kernel, KERNEL-again.json for the
    /// second timing of the base kernel
    #[arg(short, long, alias = "out", value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for TimeOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if let Some(scale) = self.scale.filter(|scale| !(*scale > 0.0 && *scale <= 1e6)) {
            return Err(Failure::usage(format!("--scale is above 0 and up to 1e6, not {scale}")));
        }
        if let Some(cpu) = self.cpu.filter(|cpu| !is_allowed(*cpu)) {
            return Err(Failure::usage(format!(
                "--cpu: there is no CPU {cpu} here on which kerntune may run"
            )));
        }
        if self.interval.is_asked() && self.until_width.is_none() {
            return Err(Failure::usage(
                "--interval: give --until-width as well: `kerntune time` computes intervals only to see when they are narrow",
            ));
        }
        let work = self.dry.work_to_read(global)?;
        let workload = workload(&self.workload, &CpuOptions::default())?;
        let names = std::iter::once(&self.base).chain(&self.others);
        let kernels: Vec<Kernel> =
            names.map(|name| kerntune_kernel::find(&work, name)).collect::<Result<_, _>>()?;
        let machine = machine(&kernels, self.cpu)?;
        if !self.dry.dry_run {
            output_directory("--output", &self.output)?;
        }
        let session = Session::on(kernels[0].manifest.arch, &work, output.progress())?;
        let until = self.until_width.map(|width| StopCondition {
            width,
            budget: self.budget.map(|minutes| Duration::from_secs(60 * minutes)),
            method: self.interval.method(),
        });
        let boots = self.boots.unwrap_or(if until.is_some() { MAX_BOOTS } else { BOOTS });
        let effort = TimedEffort::of(&workload, boots, self.iterations, self.scale)?;
        let counters = match machine.name() {
            KVM => self.counters.chosen(),
            _ if self.counters.are_asked() => {
                return Err(Failure::usage(
                    "--counters: User-Mode Linux has no counters; kernels for PCs have them on kvm",
                ))
            }
            _ => &[],
        };
        let effort = effort.counting(counters);
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            let count = boots.saturating_mul(u32::try_from(1 + kernels.len()).unwrap_or(u32::MAX));
            let what = format!(
                "boot {} kernels in turn on {} and time {}, at most {boots} rounds",
                1 + kernels.len(),
                machine.name(),
                workload.name
            );
            dry.timings(what, &workload, count, self.budget);
            return Ok(show_steps(dry, self.format.json, output));
        }
        let request =
            TimedRequest { kernels: &kernels, workload: &workload, effort, until, directory: &self.output };
        let on_progress = |boot, of, label: &str| match until {
            Some(_) => output.note(&format!("[{boot}] {label}")),
            None => output.note(&format!("[{boot}/{of}] {label}")),
        };
        let times = timed(&session, &*machine, &request, &on_progress, &|decision| {
            output.note(&progress_text(decision))
        })?;
        let times: Vec<BenchResults> = times.into_iter().map(|(_, results)| results).collect();
        match self.format.json {
            true => output.json(&times),
            false => print(&times, output),
        }
        output.note(&format!(
            "\nmedians of all boots, with {} iterations in each; every time is in {}",
            effort.iterations,
            self.output.display()
        ));
        Ok(Exit::Ok)
    }
}

/// Returns true if this process may run on the given CPU of the host.
fn is_allowed(cpu: u32) -> bool {
    let cpu = cpu as usize;
    let allowed = rustix::thread::sched_getaffinity(None);
    allowed.map_or(true, |set| cpu < rustix::thread::CpuSet::MAX_CPU && set.is_set(cpu))
}

/// Describes the current interval widths and the number of boots still needed.
pub(super) fn progress_text(decision: StopDecision) -> String {
    let widest = |WidestRow { width, units, .. }: WidestRow| {
        format!("after {units} boots the widest interval is {:.2} % from end to end", 100.0 * width)
    };
    match decision {
        StopDecision::Continue(look) => format!("{}; about {} boots are needed", widest(look), look.needed),
        StopDecision::Narrow(look) => format!("{}: narrow enough", widest(look)),
        StopDecision::OutOfBudget(look) => {
            format!("{}; the time is up, about {} boots would be needed", widest(look), look.needed)
        }
    }
}

fn print(times: &[BenchResults], output: &CliOutput) {
    let Some((base, others)) = times.split_first() else { return };
    let heads: Vec<String> = times.iter().map(|results| format!("#{}", label(results))).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let lines = base.rows.iter().filter_map(|row| {
        let [median, ..] = row.spread()?;
        let change = |other: &BenchResults| {
            let beside = other.rows.iter().find(|r| r.row == row.row).and_then(ResultsRow::spread);
            beside.map_or("-".into(), |[other, ..]| format!("{:+.2} %", (other / median - 1.0) * 100.0))
        };
        let mut line = vec![row.row.clone(), row.unit.clone(), format!("{median:.1}")];
        line.extend(others.iter().map(change));
        Some(line)
    });
    output.table(&["ROW", "UNIT"].into_iter().chain(heads.iter().copied()).collect::<Vec<_>>(), lines);
    counters::changes(times, &heads, output);
    cpu_times::table(times, output);
}

fn label(results: &BenchResults) -> &str {
    results.label.as_deref().unwrap_or_default()
}
