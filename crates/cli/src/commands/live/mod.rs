//! `kerntune record --live`, `kerntune live`: the kernel of this machine.

mod ask;
mod daemon;
mod dump;
mod top;

pub use daemon::run;

use crate::args::{Global, Record};
use crate::exit::{Exit, Failure};
use crate::global::work;
use crate::output::Output;
use kerntune_kernel::Kernel;
use kerntune_live::{Collector, Labels, Options, Waiting};
use kerntune_profile::{KernelId, Profile, ROOM};
use kerntune_report::{summary, Report};
use kerntune_symbols::Running;
use kerntune_work::{interrupt, Key, WorkDir};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

/// Profiles the kernel while a command runs.
pub fn record(global: &Global, options: &Record, output: &Output) -> Result<Exit, Failure> {
    if options.command.first().is_none_or(String::is_empty) {
        return Err(Failure::usage("the COMMAND after -- is empty"));
    }
    let work = work(global)?;
    let (running, own) = Running::find_in(&work)?;
    let mut watch = with_module(&work, options.watch.options()?, output);
    // Looked at before anything is started, so that a refusal costs nothing.
    // Standard output is one JSON document then, whatever the command prints.
    let stdout = if options.format.json { Stdio::from(std::io::stderr()) } else { Stdio::inherit() };
    let mut command = Waiting::new(&options.command, stdout)?;
    if options.command_only {
        watch.filter.processes = vec![command.id()];
        watch.on_exec = true;
    }
    let mut collector = Collector::start(watch, running)?;
    tell(&collector, output);
    command.go()?;
    let mut ended = None;
    let watched = collector.run_until(|| {
        interrupt::check()?;
        ended = command.ended()?;
        Ok::<bool, kerntune_live::Error>(ended.is_some())
    });
    if let Err(error) = watched {
        command.end();
        return Err(error.into());
    }
    let name = kerntune_guest::name_of(&options.command);
    let kernel = own.as_ref().map(kernel_id);
    let labels =
        Labels { id: String::new(), workload: name, region: "command".into(), operations: 1, kernel };
    let (path, profile) = keep(&work, &mut collector, labels)?;
    if options.format.json {
        output.print(&summary::Options.json(&profile)?);
    } else {
        output.print(&summary::Options.text(&profile, output.style())?);
        let id = &profile.manifest.id;
        output
            .note(&format!("\nprofile {}\n`kerntune report {id} flat` shows the functions", path.display()));
    }
    // What was recorded is whole, whatever the command thinks of itself.
    if let Some(failed) = ended.filter(|status| !status.success()) {
        output.note(&format!("note: the command ended with {failed}"));
    }
    Ok(Exit::Ok)
}

/// The same with the module that counts calls, if these are wanted: built for this kernel if it is not loaded.
fn with_module(work: &WorkDir, mut options: Options, output: &Output) -> Options {
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

/// Says what is used and what it cannot do.
fn tell(collector: &Collector, output: &Output) {
    for description in collector.descriptions() {
        output.note(&format!("{}, memory at most {}", description.name, super::bytes(collector.bound())));
        for lack in description.lacks {
            output.note(&format!("note: {lack}"));
        }
    }
    for note in &collector.running().notes {
        output.note(&format!("note: {note}"));
    }
}

/// A kernel of the work directory, for a profile.
fn kernel_id(kernel: &Kernel) -> KernelId {
    let manifest = &kernel.manifest;
    KernelId { id: manifest.id.clone(), label: manifest.label.clone(), version: manifest.version.clone() }
}

/// Puts what was seen into the work directory: whole, or not at all.
fn keep(
    work: &WorkDir,
    collector: &mut Collector,
    labels: Labels,
) -> Result<(PathBuf, Profile), kerntune_live::Error> {
    // No two dumps are the same, and none is ever found again by what it was made of: the time names it.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let key = Key::new("live/1", kerntune_live::CODE)
        .field("workload", labels.workload.as_bytes())
        .field("time", now.to_le_bytes())
        .field("process", std::process::id().to_le_bytes());
    let profile = collector.snapshot(&Labels { id: key.id(), ..labels })?;
    let staged = work.stage(ROOM, &key)?;
    staged.clear()?;
    profile.save(staged.path())?;
    Ok((staged.publish()?, profile))
}
