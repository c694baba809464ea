//! The commands `kerntune fleet add|merge|query`.

use super::profile::ProfileJson;
use super::work;
use crate::args::{FleetCommand, GlobalOptions};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use kerntune_fleet::{merge, query, views, Error, Fleet, ProfileFilter, ProfileGroup, Weights};
use kerntune_profile::{find, keep};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Name and version of the JSON form of `fleet query`.
const QUERY: &str = "kerntune-fleet-query/2";
/// Name and version of the JSON form of `fleet add`.
const ADD: &str = "kerntune-fleet-add/1";

#[derive(Serialize)]
struct AddedDocument {
    schema: &'static str,
    profiles: Vec<AddedProfile>,
}

#[derive(Serialize)]
struct AddedProfile {
    profile: String,
    path: PathBuf,
    new: bool,
}

#[derive(Serialize)]
struct QueryDocument<'a> {
    schema: &'static str,
    by: Vec<&'static str>,
    function: Option<&'a str>,
    groups: Vec<ProfileGroup>,
}

pub fn run(global: &GlobalOptions, command: &FleetCommand, output: &CliOutput) -> Result<Exit, Failure> {
    match command {
        FleetCommand::Add { prefix, profiles, host, format } => {
            let work = work(global)?;
            let found = profiles
                .iter()
                .map(|name| Ok(find(&work, name)?.path))
                .collect::<Result<Vec<_>, Failure>>()?;
            let own = || rustix::system::uname().nodename().to_string_lossy().into_owned();
            let host = host.clone().unwrap_or_else(own);
            let fleet = Fleet::open(prefix)?;
            let mut added = Vec::new();
            for path in found {
                let one = fleet.add(&path, &host)?;
                added.push(AddedProfile { profile: one.entry.id, path: one.entry.path, new: one.is_new });
            }
            if format.json {
                output.json(&AddedDocument { schema: ADD, profiles: added });
                return Ok(Exit::Ok);
            }
            for AddedProfile { profile, path, new } in added {
                let was = if new { "" } else { " (was there)" };
                output.print(&format!("{profile}{was} {}", path.display()));
            }
        }
        FleetCommand::Merge { prefix, which, weight, jobs, format } => {
            let weights = Weights::parse(weight.iter().map(String::as_str))?;
            let began = Instant::now();
            let entries = list(prefix, &which.filter())?;
            let all = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let threads = jobs.map_or_else(all, std::num::NonZero::get);
            let merged = merge(&entries, &weights, threads, output.progress())?;
            let path = keep(&work(global)?, &merged.profile)?;
            let seconds = began.elapsed().as_secs_f64();
            output.note(&format!(
                "{} profiles in {seconds:.1} s, {:.1} ms each",
                merged.parts,
                seconds * 1e3 / merged.parts as f64
            ));
            match format.json {
                true => output.json(&ProfileJson::new(&path, &merged.profile.manifest)),
                false => output.print(&path.display().to_string()),
            }
        }
        FleetCommand::Query { prefix, which, by, function, sql, format } => {
            let entries = list(prefix, &which.filter())?;
            if *sql {
                let fleet = Fleet::existing(prefix)?;
                let has = |table: &str| {
                    let file = format!("{table}.parquet");
                    entries.iter().any(|entry| entry.path.join(&file).is_file())
                };
                output.print(&views(fleet.root(), has));
                return Ok(Exit::Ok);
            }
            let groups = query(&entries, by, function.as_deref())?;
            let by: Vec<&'static str> = by.iter().map(|key| key.name()).collect();
            if format.json {
                output.json(&QueryDocument { schema: QUERY, by, function: function.as_deref(), groups });
            } else {
                table(&by, &groups, output);
            }
        }
    }
    Ok(Exit::Ok)
}

/// Returns the profiles that the filter selects; fails if there are none.
fn list(prefix: &Path, filter: &ProfileFilter) -> Result<Vec<kerntune_fleet::FleetEntry>, Failure> {
    let entries = Fleet::existing(prefix)?.list(filter)?;
    match entries.is_empty() {
        true if *filter == ProfileFilter::default() => Err(Error::NoFleet { path: prefix.to_owned() }.into()),
        true => Err(Error::NothingFits { path: prefix.to_owned() }.into()),
        false => Ok(entries),
    }
}

fn table(by: &[&'static str], groups: &[ProfileGroup], output: &CliOutput) {
    let mut heads: Vec<String> = by.iter().map(|key| key.to_uppercase()).collect();
    heads.extend(
        ["#PROFILES", "FIRST", "LAST", "#ELAPSED NS", "#BUSY", "UNIT", "#EVENTS", "#LOST"].map(str::to_owned),
    );
    if groups.iter().any(|group| group.function.is_some()) {
        heads.extend(["#RAN IN", "#CALLS", "#SELF", "#ITS ELAPSED"].map(str::to_owned));
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let lines = groups.iter().map(|group| {
        let mut line = group.values.clone();
        line.extend([group.profiles.to_string(), group.first.clone(), group.last.clone()]);
        line.extend([group.elapsed_ns, group.busy].map(|n| n.to_string()));
        line.push(group.unit.map_or("mixed", |unit| if unit == "ns" { unit } else { "instr." }).into());
        line.extend([group.events, group.lost_events].map(|n| n.to_string()));
        if let Some(f) = group.function {
            line.extend([f.profiles, f.calls, f.own, f.elapsed].map(|n| n.to_string()));
        }
        line
    });
    output.table(&heads, lines);
}
