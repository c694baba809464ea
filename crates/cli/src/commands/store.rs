//! The commands `kerntune check`, which verifies the files of all results, and `kerntune gc`, which
//! deletes what is not needed.

use super::bytes;
use crate::rooms::ROOMS;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use kerntune_command::{
    command, work_to_read, AuditEntry, AuditStores, CliOutput, CommandEntry, Exit, Failure, FormatOptions,
    GlobalOptions, RunSubcommand,
};
use kerntune_work::{survey, RemovalReason, StoreEntry, StoreSurvey, WorkDir};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const SCHEMA: &str = "kerntune-store/1";
const DAY: Duration = Duration::from_secs(86_400);

pub const CHECK: CommandEntry = command::<CheckOptions>("check", 15, "Guard");

/// Check by hash that the files of all results are unchanged
#[derive(Debug, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    audits: RoomAudits,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Show the contents of the work directory, with size, age and what keeps each result; delete
/// what is not needed
#[derive(Debug, Args)]
pub struct GcOptions {
    /// Delete what is not needed; without this option nothing is deleted
    #[arg(long)]
    pub remove: bool,
    /// Delete interrupted builds of kernels that did not change for this many days
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(..=36_500))]
    pub older_than: u64,
    /// Delete also complete results that no command used for this long ("3h", "30days"), and all
    /// results made from them; kerntune makes them again on demand, but profiles of live kernels
    /// and imported profiles are lost
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub unused_for: Option<Duration>,
    /// Check every file, to find damaged results, which can then be deleted
    #[arg(long)]
    pub thorough: bool,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for CheckOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work_to_read(global)?;
        let seen = survey_work_dir(&work, true, output)?;
        let damaged: Vec<&StoreEntry> = seen
            .found
            .iter()
            .filter(|found| matches!(found.reason, Some(RemovalReason::Damaged(_))))
            .collect();
        let results = seen.found.iter().filter(|found| found.reason.is_none());
        let (count, size) = results.fold((0u64, 0u64), |(n, sum), found| (n + 1, sum + found.bytes));
        let mut beside = Vec::new();
        for (key, audit) in &self.audits.0 {
            beside.push((*key, audit.audit(&work, output)?));
        }
        let stores = || beside.iter().flat_map(|(_, stores)| stores);
        if self.format.json {
            let mut document = document(&work, &seen, count, size, 0);
            for (key, stores) in &beside {
                document[key] = stores.iter().map(|store| store.document.clone()).collect();
            }
            output.json(&document);
        } else {
            stores().flat_map(|store| &store.lines).for_each(|line| output.print(line));
            for found in &damaged {
                output.print(&format!("{}/{}: {}", found.kind, found.name, why(found)));
            }
            output.print(&match damaged.len() {
                0 => format!("{count} results, {}: every file is unchanged", bytes(size)),
                n => format!("{n} damaged, {count} results ({}) unchanged", bytes(size)),
            });
            let rest = seen.found.iter().filter(|found| found.reason.is_some()).count() - damaged.len();
            if rest + damaged.len() > 0 {
                output.note(&format!(
                    "{} can go: `kerntune gc --thorough` shows them; a damaged result is made again when it is \
                     needed",
                    if rest == 0 { "damaged results".into() } else { entries(rest + damaged.len()) }
                ));
            }
        }
        Ok(if damaged.is_empty() && stores().all(|store| store.is_whole) { Exit::Ok } else { Exit::Findings })
    }
}

/// Options of the rooms' audits, each with the key of its findings in JSON.
#[derive(Debug)]
pub struct RoomAudits(Vec<(&'static str, Box<dyn AuditStores>)>);

fn audits() -> impl Iterator<Item = &'static AuditEntry> {
    ROOMS.iter().flat_map(|room| room.audits).copied()
}

impl Args for RoomAudits {
    fn augment_args(command: Command) -> Command {
        audits().fold(command, |command, audit| audit.augment(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RoomAudits {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        audits().map(|audit| Ok((audit.name, audit.read(matches)?))).collect::<Result<_, _>>().map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub const GC: CommandEntry = command::<GcOptions>("gc", 20, "Guard");

impl RunSubcommand<GlobalOptions> for GcOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work_to_read(global)?;
        let seen = survey_work_dir(&work, self.thorough, output)?;
        let patience = DAY * u32::try_from(self.older_than).unwrap_or(u32::MAX);
        let unused = self.unused_for.map(|patience| seen.unused(patience)).unwrap_or_default();
        let can_go = |(at, found): &(usize, &StoreEntry)| match &found.reason {
            None => unused.contains(at),
            Some(RemovalReason::Unfinished) => !found.in_use && found.age >= patience,
            Some(_) => !found.in_use,
        };
        let going: BTreeMap<usize, &StoreEntry> = seen.found.iter().enumerate().filter(can_go).collect();
        let mut freed = 0;
        if self.remove {
            for found in going.values() {
                if StoreSurvey::delete(&work, found)? {
                    freed += found.bytes;
                }
            }
        }
        if self.format.json {
            let results = seen.found.iter().filter(|found| found.reason.is_none());
            let (count, size) = results.fold((0, 0), |(n, sum), found| (n + 1, sum + found.bytes));
            output.json(&document(&work, &seen, count, size, freed));
            return Ok(Exit::Ok);
        }
        output.table(
            &["KIND", "NAME", "#SIZE", "#AGE", "WHY IT CAN GO, OR WHAT KEEPS IT"],
            seen.found.iter().enumerate().map(|(at, found)| {
                let why = match unused.contains(&at) {
                    true => "not used for so long, nor anything made of it".into(),
                    false => why(found),
                };
                vec![found.kind.clone(), found.name.clone(), bytes(found.bytes), age(found.age), why]
            }),
        );
        let sum: u64 = going.values().map(|found| found.bytes).sum();
        match (going.len(), self.remove) {
            (0, _) => output.note("nothing can go"),
            (n, false) => output.note(&format!("{} can go, {}: add `--remove`", entries(n), bytes(sum))),
            (n, true) => output.note(&format!("removed {}, {}", entries(n), bytes(freed))),
        }
        Ok(Exit::Ok)
    }
}

fn survey_work_dir(work: &WorkDir, thorough: bool, output: &CliOutput) -> Result<StoreSurvey, Failure> {
    output.progress().begin(if thorough { "hashing every file" } else { "looking" }, None);
    let seen = survey(work, thorough, &mut |path: &Path| output.progress().note(&path.display().to_string()));
    output.progress().end();
    Ok(seen?)
}

fn entries(count: usize) -> String {
    if count == 1 {
        "1 entry".into()
    } else {
        format!("{count} entries")
    }
}

fn why(found: &StoreEntry) -> String {
    let reason = match &found.reason {
        Some(RemovalReason::HalfDeleted) => "a deletion that was interrupted".to_string(),
        Some(RemovalReason::HalfWritten) => "a file that was being written when its process ended".into(),
        Some(RemovalReason::Unfinished) => "interrupted work; the same command resumes it".into(),
        Some(RemovalReason::FailedRun) => {
            "a run that failed or was interrupted; nothing of it is used again".into()
        }
        Some(RemovalReason::NoResult) => {
            "made by an older version of kerntune; this version cannot read it".into()
        }
        Some(RemovalReason::Damaged(what)) => what.clone(),
        None => match found.kept_by.as_slice() {
            [] => "a result from which no other result was made".into(),
            [first] => format!("kept by {first}"),
            [first, rest @ ..] => format!("kept by {first} and {} more", rest.len()),
        },
    };
    if found.in_use {
        return format!("in use now; {reason}");
    }
    reason
}

fn age(age: Duration) -> String {
    let hours = age.as_secs() / 3_600;
    match hours {
        0 => format!("{} min", age.as_secs() / 60),
        1..=47 => format!("{hours} h"),
        _ => format!("{} d", hours / 24),
    }
}

fn document(work: &WorkDir, seen: &StoreSurvey, results: u64, size: u64, freed: u64) -> Value {
    let entries: Vec<Value> = seen
        .found
        .iter()
        .map(|found| {
            let state = match &found.reason {
                None => "whole",
                Some(RemovalReason::HalfDeleted) => "half-deleted",
                Some(RemovalReason::HalfWritten) => "half-written",
                Some(RemovalReason::Unfinished | RemovalReason::FailedRun) => "unfinished",
                Some(RemovalReason::NoResult) => "older-version",
                Some(RemovalReason::Damaged(_)) => "damaged",
            };
            let what = match &found.reason {
                Some(RemovalReason::Damaged(what)) => Some(what),
                _ => None,
            };
            json!({
                "kind": found.kind,
                "name": found.name,
                "state": state,
                "what": what,
                "bytes": found.bytes,
                "age_seconds": found.age.as_secs(),
                "in_use": found.in_use,
                "kept_by": found.kept_by,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "directory": work.root(),
        "results": results,
        "bytes": size,
        "freed_bytes": freed,
        "entries": entries,
    })
}
