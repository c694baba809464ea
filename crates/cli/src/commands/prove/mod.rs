//! The command `kerntune prove`: compares two kernels on the best machine available, and writes a
//! paragraph, a table, and a bundle that repeats the proof.

mod bundle;
#[cfg(feature = "deploy")]
mod on;

use crate::percent::positive_fraction;
use bundle::{ProofBundle, RESULTS, TIMES};
use clap::{Args, ValueEnum};
use kerntune_command::{
    command, show_steps, workload, CliOutput, CommandEntry, CpuOptions, DryRunOptions, Exit, Failure,
    FormatOptions, GlobalOptions, IntervalOptions, ModelOptions, RunSubcommand, MAX_MINUTES,
};
use kerntune_guest::{Suite, Workload};
use kerntune_kernel::{Arch, Kernel};
use kerntune_machine::Machine;
use kerntune_report::{bench, comparison, prove as words, Style};
use kerntune_stats::{ComparisonOptions, JoinedResults, TimedComparison};
use kerntune_tune::bench::timed::{timed, unfit, StopCondition, TimedEffort, TimedRequest, KVM, UML};
use kerntune_tune::compare::{self, compare, CompareEffort};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::{Session, MAX_RUNS};
use kerntune_work::{take_directory, write_json, IoContext};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest number of boots of each kernel, if the intervals stay wide.
const MAX_BOOTS: u32 = 1000;

/// The result in the output of `--json`.
#[derive(Serialize)]
struct ProofJson {
    schema: &'static str,
    machine: &'static str,
    /// Reason that no better machine was used; empty if there is none.
    why: String,
    paragraph: String,
    bundle: String,
    timed: Option<TimedComparison>,
    exact: Option<kerntune_compare::Comparison>,
}

pub const COMMAND: CommandEntry = command::<ProveOptions>("prove", 120, "Compare");

/// Prove the gain of a kernel on the best machine available: a paragraph, a table, and a bundle
/// that repeats the proof elsewhere (docs/prove.md)
#[derive(Debug, Args)]
pub struct ProveOptions {
    /// The base kernel: label, beginning of an id, or directory
    pub base: String,
    /// The kernel to compare with it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    /// The machine: a virtual machine (kvm) or a process (uml), which time the kernels, or the
    /// emulator, which counts exactly and has no clock
    #[arg(long, value_enum, default_value_t = ProveMachine::Auto)]
    pub machine: ProveMachine,
    /// With a clock: boot until the interval of every row is at most this wide, relative to its
    /// estimate
    #[arg(long, value_parser = positive_fraction, default_value = "2%", value_name = "PERCENT")]
    pub until_width: f64,
    /// With a clock: start no further round of boots after this many minutes
    #[arg(long, default_value_t = 30, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=MAX_MINUTES))]
    pub budget: u64,
    #[command(flatten)]
    pub interval: IntervalOptions,
    #[cfg(feature = "deploy")]
    #[command(flatten)]
    pub on: on::OnOptions,
    /// On the emulator: number of runs of each kernel, each with another start offset
    #[arg(long, default_value_t = 4, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    #[command(flatten)]
    pub model: ModelOptions,
    /// Write the bundle into this new directory: kernels, workload, results, and a script that
    /// repeats the proof on another machine
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Machine on which the gain is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProveMachine {
    /// The best machine available; a machine with a clock is preferred.
    Auto,
    Kvm,
    Uml,
    Emulator,
}

impl RunSubcommand<GlobalOptions> for ProveOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = self.dry.work_to_read(global)?;
        let workload = workload(&self.workload, &CpuOptions::default())?;
        let [base, tuned] = [&self.base, &self.tuned].map(|name| kerntune_kernel::find(&work, name));
        let (base, tuned) = (base?, tuned?);
        if base.manifest.id == tuned.manifest.id {
            return Err(Failure::usage(format!(
                "{} was given as both kernels: there is nothing to prove",
                self.base
            )));
        }
        if self.model.is_file() {
            return Err(Failure::usage(
                "--model: give the model by name: whoever repeats the proof does not have your file \
                 (`data/cpu-models/NAME.toml` counts as a name)",
            ));
        }
        let of = [base.manifest.id.as_str(), tuned.manifest.id.as_str(), workload.name.as_str()];
        let results = self.output.join(RESULTS);
        if !self.dry.dry_run {
            take_directory(&self.output, "prove", &of)
                .map_err(|error| Failure::usage(format!("--output: {error}")))?;
            fs::create_dir_all(&results).at("create", &results)?;
        }
        let (machine, why) = match self.is_elsewhere() {
            true => (REMOTE, String::new()),
            false => choose(global, &[&base, &tuned], &workload, self.machine)?,
        };
        let session = Session::on(base.manifest.arch, &work, output.progress())?;
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            if machine != EMULATOR {
                let what = format!("boot 3 kernels in turn on {machine} and time {}", workload.name);
                let effort = TimedEffort::of(&workload, MAX_BOOTS, None, None)?;
                dry.timings(what, &workload, 3 * effort.boots, Some(self.budget));
            }
            if base.manifest.arch == Arch::X86_64 {
                let model = self.model.find(false)?;
                compare::dry_run(&mut dry, [&base, &tuned], &workload, &model, self.effort())?;
            }
            return Ok(show_steps(dry, self.format.json, output));
        }

        let timed = match machine {
            EMULATOR => None,
            REMOTE => Some(self.elsewhere(&session, [&base, &tuned], &workload, &results, output)?),
            _ => {
                let machine = kerntune_tune::bench::timed::machine(&[base.clone(), tuned.clone()], None)?;
                Some(by_the_clock(&session, &*machine, [&base, &tuned], &workload, self, &results, output)?)
            }
        };
        let exact = match base.manifest.arch {
            Arch::X86_64 => Some(exactly(&session, [&base, &tuned], &workload, self, &results)?),
            Arch::Um => None,
        };
        let mut paragraph: Vec<String> = Vec::new();
        paragraph.extend(timed.as_ref().map(words::timed));
        paragraph.extend(exact.as_ref().map(words::exact));
        paragraph.push(words::limits(machine).into());
        if !why.is_empty() {
            paragraph.push(format!("No times were measured here: {why}."));
        }
        let paragraph = paragraph.join(" ");
        let tables = |style: Style| {
            let timed = timed.iter().map(|timed| bench::table(timed, style));
            timed
                .chain(exact.iter().map(|exact| comparison::table(exact, style)))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let bundle = ProofBundle {
            work: &work,
            directory: &self.output,
            kernels: [&base, &tuned],
            workload: &self.workload,
            name: &workload.name,
            machine,
            image: session.image(&workload)?.manifest,
            options: self,
        };
        bundle.write(&paragraph, &tables(Style::PLAIN), timed.is_some(), exact.is_some())?;
        if self.format.json {
            output.json(&ProofJson {
                schema: "kerntune-proof/1",
                machine,
                why,
                paragraph,
                bundle: self.output.display().to_string(),
                timed,
                exact,
            });
            return Ok(Exit::Ok);
        }
        output.print(&format!("{}\n\n{}", filled(&paragraph), tables(output.style())));
        let again = self.output.join("repeat.sh");
        output.note(&format!(
            "\n`{} DIR` repeats it, here or on another machine with kerntune",
            again.display()
        ));
        Ok(Exit::Ok)
    }
}

impl ProveOptions {
    /// Checks whether the kernels are timed on another machine.
    fn is_elsewhere(&self) -> bool {
        #[cfg(feature = "deploy")]
        return self.on.on.is_some();
        #[cfg(not(feature = "deploy"))]
        return false;
    }

    /// Times the kernels on another machine, and leaves nothing there.
    #[cfg(feature = "deploy")]
    fn elsewhere(
        &self,
        session: &Session,
        kernels: [&Kernel; 2],
        workload: &Workload,
        results: &Path,
        output: &CliOutput,
    ) -> Result<TimedComparison, Failure> {
        let Some(deployed) = self.on.deploy(session.work, kernels, output)? else {
            return Err(Failure::usage("--on names no machine"));
        };
        let timed = by_the_clock(session, &deployed.host, kernels, workload, self, results, output);
        if timed.is_err() {
            output.note(&deployed.advice());
        }
        let timed = timed?;
        deployed.remove(kernels[0], output)?;
        Ok(timed)
    }

    #[cfg(not(feature = "deploy"))]
    fn elsewhere(
        &self,
        _: &Session,
        _: [&Kernel; 2],
        _: &Workload,
        _: &Path,
        _: &CliOutput,
    ) -> Result<TimedComparison, Failure> {
        Err(Failure::usage("this kerntune was built without `deploy`"))
    }

    /// Returns the number of runs of the exact comparison.
    fn effort(&self) -> CompareEffort {
        CompareEffort { runs: self.runs, ..CompareEffort::default() }
    }
}

const EMULATOR: &str = kerntune_tune::record::MACHINE;
/// Name in results of another machine.
const REMOTE: &str = "remote";

/// Returns the best machine available, and the reason that it is not a better one.
fn choose(
    global: &GlobalOptions,
    kernels: &[&Kernel; 2],
    workload: &Workload,
    asked: ProveMachine,
) -> Result<(&'static str, String), Failure> {
    let arch = kernels[0].manifest.arch;
    if let Some(other) = kernels.iter().find(|kernel| kernel.manifest.arch != arch) {
        return Err(Failure::usage(format!(
            "{} is for another architecture than {}: both must run on one machine",
            other.manifest.label, kernels[0].manifest.label
        )));
    }
    let by_clock = match arch {
        Arch::Um => UML,
        Arch::X86_64 => KVM,
    };
    let no = |what: &str| Failure::usage(format!("--machine: {what}"));
    match (asked, arch) {
        (ProveMachine::Emulator, Arch::X86_64) => return Ok((EMULATOR, String::new())),
        (ProveMachine::Emulator | ProveMachine::Kvm, Arch::Um) => {
            return Err(no("these kernels were built for User-Mode Linux, and run only on uml"));
        }
        (ProveMachine::Uml, Arch::X86_64) => {
            return Err(no("these kernels are for a PC; uml runs kernels that are built with --arch um"));
        }
        _ => {}
    }
    let unfit = Suite::of(workload.clone()).and_then(|suite| unfit(arch, &suite)).map(str::to_owned);
    let (reason, exit) = match (unfit, arch) {
        (None, Arch::X86_64) => (no_kvm(global, kernels[0]), Exit::Missing),
        (reason, _) => (reason, Exit::Usage),
    };
    match (reason, asked) {
        (None, _) => Ok((by_clock, String::new())),
        (Some(reason), ProveMachine::Auto) if arch == Arch::X86_64 => Ok((EMULATOR, reason)),
        (Some(reason), _) => {
            Err(Failure { exit, message: format!("{by_clock} cannot time {}: {reason}", workload.name) })
        }
    }
}

/// Returns the reason that kernels cannot be timed in a virtual machine here, or `None`.
fn no_kvm(global: &GlobalOptions, kernel: &Kernel) -> Option<String> {
    let report = kerntune_doctor::examine(&kerntune_doctor::ExamineOptions {
        recorder: kerntune_machine::find_recorder().ok(),
        kernel: Some(kernel.image()),
        uml: None,
        work_dir: global.work_dir(),
    });
    let kvm = kerntune_doctor::Ability::Kvm;
    if report.ready_for.contains(&kvm) {
        return None;
    }
    let absent = report.not_available.iter().chain(&report.limited).find(|absent| absent.ability == kvm);
    Some(absent.map_or("this machine has no KVM".into(), |absent| absent.because.clone()))
}

/// Boots the kernels in turn until the intervals are narrow.
fn by_the_clock(
    session: &Session,
    machine: &dyn Machine,
    kernels: [&Kernel; 2],
    workload: &Workload,
    options: &ProveOptions,
    results: &Path,
    output: &CliOutput,
) -> Result<TimedComparison, Failure> {
    let kernels = kernels.map(Clone::clone);
    let until = StopCondition {
        width: options.until_width,
        budget: Some(Duration::from_secs(60 * options.budget)),
        method: options.interval.method(),
    };
    let effort = TimedEffort::of(workload, MAX_BOOTS, None, None)?;
    let directory = &results.join(TIMES);
    let request = TimedRequest { kernels: &kernels, workload, effort, until: Some(until), directory };
    let told = |boot, _, label: &str| output.note(&format!("[{boot}] {label}"));
    let times = timed(session, machine, &request, &told, &|decision| {
        output.note(&super::time::progress_text(decision));
    })?;
    let sets = times.iter().map(|(path, results)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        JoinedResults::join(&[(name, results.clone())])
    });
    let sets: Vec<JoinedResults> = sets.collect::<Result<_, _>>()?;
    let [base, tuned, again] = &sets[..] else {
        return Err(Failure::usage("two kernels were to be timed, one of them twice"));
    };
    let comparison = TimedComparison::new(
        base,
        tuned,
        Some(again),
        &ComparisonOptions { method: until.method, ..ComparisonOptions::default() },
    )?;
    write_json(&results.join("timed.json"), &comparison)?;
    Ok(comparison)
}

/// Compares the kernels exactly in the emulator: kernel, user code, and the whole path.
fn exactly(
    session: &Session,
    [base, tuned]: [&Kernel; 2],
    workload: &Workload,
    options: &ProveOptions,
    results: &Path,
) -> Result<kerntune_compare::Comparison, Failure> {
    let model = options.model.find(false)?;
    let comparison = compare(session, base, tuned, workload, &model, options.effort())?.comparison;
    let path = results.join("exact.json");
    kerntune_work::write_atomic(&path, comparison.to_json().as_bytes())?;
    Ok(comparison)
}

/// Wraps a paragraph into lines.
fn filled(text: &str) -> String {
    const WIDTH: usize = 100;
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_filled() {
        let text = vec!["word"; 60].join(" ");
        let lines = filled(&text);
        assert!(lines.lines().all(|line| line.len() <= 100) && lines.lines().count() == 3);
        assert_eq!(lines.replace('\n', " "), text);
    }
}
