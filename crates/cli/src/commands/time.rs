//! The command `kerntune time`.

use super::{counters, work_to_read, workload};
use crate::args::{CpuOptions, GlobalOptions, TimeOptions};
use crate::exit::{Exit, Failure};
use crate::files::output_directory;
use crate::output::CliOutput;
use kerntune_kernel::Kernel;
use kerntune_stats::{BenchResults, CpuTime, ResultsRow, StopDecision, WidestRow};
use kerntune_tune::bench::timed::{machine, timed, StopCondition, TimedEffort, TimedRequest, KVM};
use kerntune_tune::Session;
use std::time::Duration;

/// Default of `--boots`.
const BOOTS: u32 = 10;
/// Default of `--boots` with `--until-width`.
const MAX_BOOTS: u32 = 1000;

pub fn run(global: &GlobalOptions, options: &TimeOptions, output: &CliOutput) -> Result<Exit, Failure> {
    if let Some(scale) = options.scale.filter(|scale| !(*scale > 0.0 && *scale <= 1e6)) {
        return Err(Failure::usage(format!("--scale is above 0 and up to 1e6, not {scale}")));
    }
    if let Some(cpu) = options.cpu.filter(|cpu| !is_allowed(*cpu)) {
        return Err(Failure::usage(format!("--cpu: there is no CPU {cpu} here on which kerntune may run")));
    }
    if options.interval.is_asked() && options.until_width.is_none() {
        return Err(Failure::usage(
            "--interval: give --until-width as well: `kerntune time` computes intervals only to see when they are narrow",
        ));
    }
    let work = work_to_read(global)?;
    let workload = workload(&options.workload, &CpuOptions::default())?;
    let names = std::iter::once(&options.base).chain(&options.others);
    let kernels: Vec<Kernel> =
        names.map(|name| kerntune_kernel::find(&work, name)).collect::<Result<_, _>>()?;
    let machine = machine(&kernels, options.cpu)?;
    output_directory("--output", &options.output)?;
    let session = Session::on(kernels[0].manifest.arch, &work, output.progress())?;
    let until = options.until_width.map(|width| StopCondition {
        width,
        budget: options.budget.map(|minutes| Duration::from_secs(60 * minutes)),
        method: options.interval.method(),
    });
    let boots = options.boots.unwrap_or(if until.is_some() { MAX_BOOTS } else { BOOTS });
    let effort = TimedEffort::of(&workload, boots, options.iterations, options.scale)?;
    let counters = match machine.name() {
        KVM => options.counters.chosen(),
        _ if options.counters.are_asked() => {
            return Err(Failure::usage(
                "--counters: User-Mode Linux has no counters; kernels for PCs have them on kvm",
            ))
        }
        _ => &[],
    };
    let effort = effort.counting(counters);
    let request =
        TimedRequest { kernels: &kernels, workload: &workload, effort, until, directory: &options.output };
    let on_progress = |boot, of, label: &str| match until {
        Some(_) => output.note(&format!("[{boot}] {label}")),
        None => output.note(&format!("[{boot}/{of}] {label}")),
    };
    let times = timed(&session, &*machine, &request, &on_progress, &|decision| {
        output.note(&progress_text(decision))
    })?;
    let times: Vec<BenchResults> = times.into_iter().map(|(_, results)| results).collect();
    match options.format.json {
        true => output.json(&times),
        false => print(&times, output),
    }
    output.note(&format!(
        "\nmedians of all boots, with {} iterations in each; every time is in {}",
        effort.iterations,
        options.output.display()
    ));
    Ok(Exit::Ok)
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
    cpu_time(times, output);
}

/// Prints the CPU time of each row by process or kernel, if the machine measures it.
fn cpu_time(times: &[BenchResults], output: &CliOutput) {
    let share = |share: f64| format!("{:.1} %", 100.0 * share);
    let lines = times.iter().flat_map(|results| results.rows.iter().map(move |row| (results, row)));
    let lines: Vec<Vec<String>> = lines
        .filter_map(|(results, row)| {
            let all = CpuTime::sum(&row.cpu);
            let mut line = vec![row.row.clone(), label(results).to_owned(), format!("{:.1}", all.seconds)];
            line.push(share(all.total() / all.seconds));
            line.extend(all.shares()?.map(share));
            Some(line)
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    let entry = times
        .iter()
        .find_map(|results| results.entry.as_deref())
        .unwrap_or("a method that it did not report");
    output.note(&format!(
        "\nCPU time while a row ran, all boots together (sampled by the host's tick); the guest's programs enter the kernel by {entry}:"
    ));
    let heads = [
        "ROW",
        "KERNEL",
        "#SECONDS",
        "#ON THE CPU",
        "#GUEST KERNEL",
        "#PROGRAMS",
        "#HOST FOR KERNEL",
        "#HOST FOR PROGRAMS",
    ];
    output.table(&heads, lines);
}

fn label(results: &BenchResults) -> &str {
    results.label.as_deref().unwrap_or_default()
}
