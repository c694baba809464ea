//! Commands that profile the kernel of this machine: `kerntune record --live` and `kerntune live`.

mod ask;
mod daemon;
mod dump;
mod top;

pub use daemon::run;

use crate::args::{GlobalOptions, RecordOptions};
use crate::exit::{Exit, Failure};
use crate::global::work;
use crate::output::CliOutput;
use kerntune_kernel::Kernel;
use kerntune_live::{Collector, CollectorOptions, ProfileLabels, StoppedCommand};
use kerntune_profile::{KernelId, Profile, KIND};
use kerntune_report::{summary, Report};
use kerntune_symbols::RunningKernel;
use kerntune_work::{interrupt, Key, WorkDir};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

/// Profiles the kernel while a command runs.
pub fn record(global: &GlobalOptions, options: &RecordOptions, output: &CliOutput) -> Result<Exit, Failure> {
    if options.command.first().is_none_or(String::is_empty) {
        return Err(Failure::usage("the COMMAND after -- is empty"));
    }
    let work = work(global)?;
    let (running, own) = RunningKernel::find_in(&work)?;
    let mut watch = with_module(&work, options.watch.options()?, output);
    // Everything is checked before the command starts, so that a refusal costs nothing. With
    // --json, standard output must be a single JSON document, so the command's output goes to
    // standard error.
    let stdout = if options.format.json { Stdio::from(std::io::stderr()) } else { Stdio::inherit() };
    let mut command = StoppedCommand::new(&options.command, stdout)?;
    let alone = !options.all && !options.watch.names_a_part();
    if alone {
        watch.filter.processes = vec![command.id()];
        watch.on_exec = true;
    }
    let mut collector = Collector::start(watch, running)?;
    print_sources(&collector, output);
    command.resume()?;
    let mut ended = None;
    let watched = collector.run_until(|| {
        interrupt::check()?;
        ended = command.try_wait()?;
        Ok::<bool, kerntune_live::Error>(ended.is_some())
    });
    if let Err(error) = watched {
        command.terminate();
        return Err(error.into());
    }
    let name = kerntune_guest::name_of(&options.command);
    let kernel = own.as_ref().map(kernel_id);
    let labels =
        ProfileLabels { id: String::new(), workload: name, region: "command".into(), operations: 1, kernel };
    let (path, profile) = keep(&work, &mut collector, labels).map_err(|error| match error {
        kerntune_live::Error::Nothing(why) if alone => Failure {
            exit: Exit::Recording,
            message: format!(
                "no time was recorded: {why}; take more samples (--rate), or watch the whole machine (--all)"
            ),
        },
        error => error.into(),
    })?;
    if options.format.json {
        output.print(&summary::SummaryOptions.json(&profile)?);
    } else {
        output.print(&summary::SummaryOptions.text(&profile, output.style())?);
        let id = &profile.manifest.id;
        output
            .note(&format!("\nprofile {}\n`kerntune report {id} flat` shows the functions", path.display()));
    }
    // The recording is complete even if the command failed.
    if let Some(failed) = ended.filter(|status| !status.success()) {
        output.note(&format!("note: the command ended with {failed}"));
    }
    Ok(Exit::Ok)
}

/// Adds the module kgmon, which counts calls, if calls are to be counted and it is not loaded;
/// builds it for the running kernel.
fn with_module(work: &WorkDir, mut options: CollectorOptions, output: &CliOutput) -> CollectorOptions {
    if let Some(calls) = &mut options.calls {
        if !kerntune_kgmon::is_loaded() {
            let built = match kerntune_kgmon::obstacle() {
                Some(obstacle) => Err(obstacle),
                None => kerntune_kgmon::find_or_build(work, output.progress()),
            };
            calls.module = Some(built.map_err(|error| error.to_string()));
        }
    }
    options
}

/// Prints the sources that the collector uses, and their limitations.
fn print_sources(collector: &Collector, output: &CliOutput) {
    for description in collector.descriptions() {
        output.note(&format!("{}, memory at most {}", description.name, super::bytes(collector.bound())));
        // The profile's reports have them, too.
        for lack in description.lacks.iter().filter(|_| output.is_verbose()) {
            output.note(&format!("note: {lack}"));
        }
    }
    for note in collector.running().notes.iter().filter(|_| output.is_verbose()) {
        output.note(&format!("note: {note}"));
    }
}

/// Returns the identity of a kernel, as profiles record it.
fn kernel_id(kernel: &Kernel) -> KernelId {
    let manifest = &kernel.manifest;
    KernelId { id: manifest.id.clone(), label: manifest.label.clone(), version: manifest.version.clone() }
}

/// Writes the collected data into the work directory as a profile, atomically.
fn keep(
    work: &WorkDir,
    collector: &mut Collector,
    labels: ProfileLabels,
) -> Result<(PathBuf, Profile), kerntune_live::Error> {
    // Every dump is unique and is never found by its inputs, so the time is part of the key.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let key = Key::new("live/1", kerntune_live::CODE)
        .field("workload", labels.workload.as_bytes())
        .field("time", now.to_le_bytes())
        .field("process", std::process::id().to_le_bytes());
    let profile = collector.snapshot(&ProfileLabels { id: key.id(), ..labels })?;
    let staged = work.stage(KIND, &key)?;
    staged.clear()?;
    profile.save(staged.path())?;
    Ok((staged.publish()?, profile))
}
