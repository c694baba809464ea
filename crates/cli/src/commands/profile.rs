//! `kerntune profile list|show|rebuild|remove`.

use super::work;
use crate::args::{Global, Profile as Command};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_analyze::Missing;
use kerntune_profile::{find, list, remove, Manifest, Profile};
use kerntune_report::summary;
use kerntune_tune::rebuild::rebuild;
use serde::Serialize;
use std::path::Path;

/// A profile as `--json` shows it.
#[derive(Serialize)]
struct Shown<'a> {
    path: &'a Path,
    kernel: &'a str,
    workload: &'a str,
    machine: &'a str,
    date: &'a str,
    manifest: &'a Manifest,
}

impl<'a> Shown<'a> {
    fn new(path: &'a Path, manifest: &'a Manifest) -> Self {
        let Manifest { workload, machine, recorded, kernel, .. } = manifest;
        Self { path, kernel: &kernel.id, workload, machine, date: recorded, manifest }
    }
}

/// What of a trace is not in its profile.
fn missing(chunk: &Missing) -> String {
    let Missing { chunk, begin_ns, end_ns, events, reason } = chunk;
    let seconds = |ns: &u64| *ns as f64 / 1e9;
    format!(
        "missing: chunk {chunk}, {:.6} to {:.6} s, {events} events: {reason}",
        seconds(begin_ns),
        seconds(end_ns)
    )
}

pub fn run(global: &Global, command: &Command, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    match command {
        Command::List { format } => {
            let listing = list(&work)?;
            for damaged in &listing.damaged {
                output.note(&format!("kerntune: {damaged}"));
            }
            if format.json {
                let shown: Vec<Shown> =
                    listing.entries.iter().map(|e| Shown::new(&e.path, &e.manifest)).collect();
                output.json(&shown);
            } else if listing.entries.is_empty() {
                output.note("no profiles yet: `kerntune record` makes one");
            } else {
                output.table(
                    &["ID", "KERNEL", "WORKLOAD", "RUN", "MACHINE", "#EVENTS", "DATE"],
                    listing.entries.iter().map(|entry| {
                        let m = &entry.manifest;
                        vec![
                            m.id.clone(),
                            m.kernel.label.clone(),
                            m.workload.clone(),
                            m.run.to_string(),
                            m.machine.clone(),
                            m.events.to_string(),
                            m.recorded.clone(),
                        ]
                    }),
                );
            }
        }
        Command::Show { profile, format } => {
            let entry = find(&work, profile)?;
            if format.json {
                output.json(&Shown::new(&entry.path, &entry.manifest));
            } else {
                let profile = Profile::load(&entry.path)?;
                output.print(&format!("{}\n", entry.path.display()));
                output.print(&summary::text(&profile, output.style())?);
            }
        }
        Command::Rebuild { profile, partial, format } => {
            let entry = find(&work, profile)?;
            let rebuilt = rebuild(&work, &entry.path, *partial, output.progress())?;
            for chunk in &rebuilt.missing {
                output.note(&missing(chunk));
            }
            if format.json {
                output.json(&Shown::new(&rebuilt.path, &rebuilt.manifest));
            } else {
                output.print(&format!("{}\n", rebuilt.path.display()));
            }
        }
        Command::Remove { profiles } => {
            for wanted in profiles {
                output.note(&format!("removed {}", remove(&work, wanted)?.display()));
            }
        }
    }
    Ok(Exit::Ok)
}
