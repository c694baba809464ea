//! The command `kerntune bench run`.

use crate::commands::counters::CounterOptions;
use crate::commands::{counters, cpu_times};
use clap::{Args, ValueEnum};
use kerntune_command::{
    base_request, kernel_for, show_steps, workload, CliOutput, CpuOptions, DryRunOptions, Exit, Failure,
    FormatOptions, GlobalOptions, ModelOptions, OutputFile,
};
use kerntune_compare::number::figure;
use kerntune_guest::{Suite, Workload};
use kerntune_kernel::{Arch, Kernel};
use kerntune_stats::{BenchResults, Interval, SkippedRow};
use kerntune_tune::bench::{self, emulator, host, timed, SelectedRows};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::{Session, MAX_RUNS};
use kerntune_work::WorkDir;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct BenchRunOptions {
    /// Suites: workloads by name or .toml file, as listed by `bench list`
    #[arg(required = true, value_name = "SUITE")]
    pub suites: Vec<String>,
    /// The machine: emulator (exact, per operation), kvm (timed, in a virtual machine), uml (timed,
    /// the kernel is a process), or host (timed, on the running kernel)
    #[arg(long, value_enum, default_value_t = BenchMachine::Emulator, value_name = "MACHINE")]
    pub machine: BenchMachine,
    /// Run only this row: ROW for every suite, or SUITE/ROW; may be repeated
    #[arg(long, value_name = "ROW")]
    pub row: Vec<String>,
    /// The guest's kernel: label, beginning of an id, or directory [default: the suites' base kernel, built if it is missing;
    /// none on uml]
    #[arg(long)]
    pub kernel: Option<String>,
    /// Number of boots of the guest [default: 5 on kvm and uml; 1 on the emulator, where more boots
    /// only show that figures repeat]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub boots: Option<u32>,
    /// On the host: number of runs of each suite [default: 5]. On the emulator: number of runs per
    /// boot, each with another start offset [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// On kvm and uml: measurements of each row per boot; for servers, runs of their load [default:
    /// 5 for the suite batched, 1 for servers; other suites allow only 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,
    /// Work of each row, as a multiple of its usual work [default: 1 on the emulator, 10 elsewhere;
    /// 4 for batched in a guest]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub counters: CounterOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    /// Also write the results to this file (docs/json.md)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchMachine {
    Emulator,
    Kvm,
    Uml,
    Host,
}

/// Default number of runs of each suite on the host.
const RUNS: u32 = 5;
/// Confidence of intervals.
const CONFIDENCE: f64 = 0.95;
/// Default number of boots of a kernel that is timed.
const BOOTS: u32 = 5;

pub fn run(global: &GlobalOptions, options: &BenchRunOptions, output: &CliOutput) -> Result<Exit, Failure> {
    if options.scale.is_some_and(|scale| !(scale > 0.0 && scale <= 1e6)) {
        return Err(Failure::usage("--scale is above 0 and up to 1e6"));
    }
    let file = options.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
    let suites = options.suites.iter().map(|name| suite(name, &options.cpus)).collect::<Result<_, _>>()?;
    let selection = bench::select(suites, &options.row).map_err(kerntune_tune::Error::from)?;
    let work = options.dry.work(global)?;
    if options.dry.dry_run {
        return dry_run(&work, options, selection, output);
    }
    let results = match options.machine {
        BenchMachine::Emulator => on_emulator(&work, options, selection, output)?,
        BenchMachine::Kvm | BenchMachine::Uml => in_guest(&work, options, selection, output)?,
        BenchMachine::Host => on_host(&work, options, selection, output)?,
    };
    if let Some(file) = &file {
        file.write_json(&results)?;
    }
    match (options.format.json, options.machine) {
        (true, _) => output.json(&results),
        (false, BenchMachine::Emulator) => exact(&results, output),
        (false, BenchMachine::Kvm | BenchMachine::Uml | BenchMachine::Host) => table(&results, output),
    }
    Ok(Exit::Ok)
}

fn suite(name: &str, cpus: &CpuOptions) -> Result<Suite, Failure> {
    let workload = workload(name, cpus)?;
    let name = workload.name.clone();
    Suite::of(workload).ok_or_else(|| {
        Failure::usage(format!(
            "workload {name} has no rows: its programs mark regions that are not known before they run; \
             `kerntune bench list` shows the workloads with rows"
        ))
    })
}

fn kernel(
    work: &WorkDir,
    options: &BenchRunOptions,
    selection: &[SelectedRows],
    output: &CliOutput,
) -> Result<Kernel, Failure> {
    if options.kernel.is_none() && options.machine == BenchMachine::Uml {
        return Err(unnamed_kernel());
    }
    let workloads = selection.iter().map(|selected| &selected.suite.workload);
    kernel_for(work, options.kernel.as_deref(), workloads, output)
}

fn unnamed_kernel() -> Failure {
    Failure::usage("name a kernel with --kernel; `kerntune kernel list` shows them")
}

/// Rejects options that do not apply to this machine.
fn only(options: &BenchRunOptions, machine: BenchMachine) -> Result<(), Failure> {
    let (on_host, timed) =
        (machine == BenchMachine::Host, matches!(machine, BenchMachine::Kvm | BenchMachine::Uml));
    let refused = [
        (
            options.runs.is_some() && timed,
            "--runs is for the host and the emulator; on kvm and uml a boot is one run, and --boots says how many",
        ),
        (
            options.boots.is_some() && on_host,
            "--boots is for guests; the host stays booted as it is, and --runs says how often",
        ),
        (
            options.kernel.is_some() && on_host,
            "--kernel is for guests; the host runs the kernel that is booted",
        ),
        (
            options.iterations.is_some() && !timed,
            "--iterations is for kvm and uml; elsewhere a row is timed once in each run",
        ),
        (
            options.model.is_asked() && machine != BenchMachine::Emulator,
            "--model is for the emulator; other machines have caches of their own",
        ),
        (
            options.counters.are_asked() && !matches!(machine, BenchMachine::Kvm | BenchMachine::Host),
            "--counters is for kvm and host; the emulator counts by itself, and User-Mode Linux has no counters",
        ),
    ];
    match refused.iter().find(|(is, _)| *is) {
        Some((_, why)) => Err(Failure::usage(*why)),
        None => Ok(()),
    }
}

/// Reports rows that cannot run here; called before anything runs.
fn say(skipped: &[SkippedRow], machine: &str, output: &CliOutput) {
    for row in skipped {
        output.note(&format!("not on {machine}: {row}"));
    }
}

fn on_emulator(
    work: &WorkDir,
    options: &BenchRunOptions,
    selection: Vec<SelectedRows>,
    output: &CliOutput,
) -> Result<BenchResults, Failure> {
    only(options, BenchMachine::Emulator)?;
    let kernel = kernel(work, options, &selection, output)?;
    let model = options.model.find(false)?;
    let checked = emulator::check(&kernel, selection)?;
    say(&checked.1, kerntune_tune::record::MACHINE, output);
    let session = Session::new(work, output.progress())?;
    let (boots, runs, scale) = exact_effort(options)?;
    let request = emulator::ExactRequest { kernel: &kernel, model: &model, boots, runs, scale };
    Ok(emulator::run(&session, checked, &request)?)
}

/// Returns the boots, the runs of each boot and the scale on the emulator.
fn exact_effort(options: &BenchRunOptions) -> Result<(u32, u32, f64), Failure> {
    let runs = options.runs.unwrap_or(1);
    if runs > MAX_RUNS {
        return Err(Failure::usage(format!("--runs: at most {MAX_RUNS} on the emulator")));
    }
    Ok((options.boots.unwrap_or(1), runs, options.scale.unwrap_or(1.0)))
}

/// Shows the steps of a run.
fn dry_run(
    work: &WorkDir,
    options: &BenchRunOptions,
    selection: Vec<SelectedRows>,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    only(options, options.machine)?;
    let session = Session::new(work, output.progress())?;
    let mut dry = DryRun::new(&session);
    let kernel = match (&options.kernel, options.machine) {
        (_, BenchMachine::Host) => None,
        (Some(name), _) => Some(kerntune_kernel::find(work, name)?),
        (None, BenchMachine::Uml) => return Err(unnamed_kernel()),
        (None, BenchMachine::Emulator | BenchMachine::Kvm) => {
            let request = base_request(selection.iter().map(|selected| &selected.suite.workload))?;
            dry.kernel(format!("build the kernel {}", request.label), &request)?
        }
    };
    let count = match options.machine {
        BenchMachine::Emulator => {
            let model = options.model.find(false)?;
            let (boots, runs, scale) = exact_effort(options)?;
            let selection = match &kernel {
                Some(kernel) => emulator::check(kernel, selection)?.0,
                None => selection,
            };
            emulator::dry_run(&mut dry, &selection, kernel.as_ref(), (&model, scale), (boots, runs))?;
            return Ok(show_steps(dry, options.format.json, output));
        }
        BenchMachine::Host => options.runs.unwrap_or(RUNS),
        BenchMachine::Kvm | BenchMachine::Uml => options.boots.unwrap_or(BOOTS),
    };
    for SelectedRows { suite, .. } in &selection {
        dry.timings(format!("time {}", suite.workload.name), &suite.workload, count, None);
    }
    Ok(show_steps(dry, options.format.json, output))
}

fn in_guest(
    work: &WorkDir,
    options: &BenchRunOptions,
    selection: Vec<SelectedRows>,
    output: &CliOutput,
) -> Result<BenchResults, Failure> {
    only(options, options.machine)?;
    let kernel = kernel(work, options, &selection, output)?;
    let is_um = kernel.manifest.arch == Arch::Um;
    if is_um != (options.machine == BenchMachine::Uml) {
        let name = &kernel.manifest.label;
        let machine = if is_um { timed::UML } else { timed::KVM };
        return Err(Failure::usage(format!(
            "kernel {name} is timed on {machine}: give `--machine {machine}`"
        )));
    }
    let machine = timed::machine(std::slice::from_ref(&kernel), None)?;
    let checked = timed::check(&kernel, selection)?;
    say(&checked.1, machine.name(), output);
    let session = Session::on(kernel.manifest.arch, work, output.progress())?;
    let effort = |workload: &Workload| {
        let boots = options.boots.unwrap_or(BOOTS);
        let effort = timed::TimedEffort::of(workload, boots, options.iterations, options.scale)?;
        Ok(effort.counting(if is_um { &[] } else { options.counters.chosen() }))
    };
    Ok(timed::run(&session, &*machine, checked, &kernel, effort)?)
}

fn on_host(
    work: &WorkDir,
    options: &BenchRunOptions,
    selection: Vec<SelectedRows>,
    output: &CliOutput,
) -> Result<BenchResults, Failure> {
    only(options, BenchMachine::Host)?;
    let checked = host::check(work, selection)?;
    say(&checked.1, host::MACHINE, output);
    let effort = host::HostEffort {
        runs: options.runs.unwrap_or(RUNS),
        scale: options.scale,
        counters: options.counters.chosen(),
    };
    Ok(host::run(work, checked, effort, output.progress())?)
}

/// Prints the figures of the first boot. All boots should agree; the JSON form has all of them.
fn exact(results: &BenchResults, output: &CliOutput) {
    let heads = [
        "SUITE",
        "ROW",
        "#PATH LENGTH",
        "#TAKEN BRANCHES",
        "#L1I MISSES",
        "#ITLB MISSES",
        "#CYCLES",
        "#USER INSTR",
        "#USER L1I",
        "#USER ITLB",
        "#WHOLE CYCLES",
        "#DIFFERS",
    ];
    let or_dash = |value: Option<f64>| value.map_or("-".into(), figure);
    let lines = results.rows.iter().filter_map(|row| {
        let figures = row.values.first()?.figures?;
        let [_, min, max] = row.spread()?;
        Some(vec![
            row.suite.clone(),
            row.row.clone(),
            figure(figures.path_length),
            figure(figures.taken_branches),
            figure(figures.l1i_misses),
            figure(figures.itlb_misses),
            or_dash(figures.model_cycles),
            or_dash(figures.user_instructions),
            or_dash(figures.user_l1i_misses),
            or_dash(figures.user_itlb_misses),
            or_dash(figures.whole_cycles),
            figure(max - min),
        ])
    });
    output.table(&heads, lines);
    let model = results.model.as_deref().unwrap_or_default();
    output.note(&format!(
        "\nper operation, of kernel code, except user (user code) and whole (both); path length, taken \
         branches and user instructions are exact, the others are those of front-end model {model}; differs: \
         path length, between boots and runs"
    ));
}

fn table(results: &BenchResults, output: &CliOutput) {
    let lines = results.rows.iter().filter_map(|row| {
        let [median, min, max] = row.spread()?;
        let (suite, name, unit) = (row.suite.clone(), row.row.clone(), row.unit.clone());
        let mean = row.sample().ok().and_then(|sample| sample.mean_with_interval(CONFIDENCE));
        let interval =
            |end: fn(&Interval) -> f64| mean.map_or("-".into(), |mean| figure(end(&mean.interval)));
        let mut line = vec![suite, name, figure(median), figure(min), figure(max)];
        line.extend([mean.map_or("-".into(), |mean| figure(mean.mean))]);
        line.extend([interval(|ends| ends.low), interval(|ends| ends.high), unit]);
        line.push(mean.map_or("1 value".into(), |mean| mean.level.count(mean.units)));
        Some(line)
    });
    let heads = ["SUITE", "ROW", "#MEDIAN", "#LEAST", "#MOST", "#MEAN", "#95 % LOW", "#HIGH", "UNIT", "FROM"];
    output.table(&heads, lines);
    counters::table(results, output);
    cpu_times::table(std::slice::from_ref(results), output);
    let kernel = &results.kernel;
    output.note(&format!("\nunder Linux {} {}", kernel.release, kernel.version));
}
