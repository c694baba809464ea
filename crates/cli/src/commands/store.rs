//! The commands `kerntune check`, which verifies the files of all results, and `kerntune gc`, which
//! deletes what is not needed.

use super::{bytes, work_to_read};
use crate::args::{CheckOptions, GcOptions, GlobalOptions};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use kerntune_fleet::Fleet;
use kerntune_matrix::StoreAudit;
use kerntune_work::{survey, RemovalReason, StoreEntry, StoreSurvey, WorkDir};
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SCHEMA: &str = "kerntune-store/1";
const DAY: Duration = Duration::from_secs(86_400);

/// Verifies every file of every result by its hash.
pub fn check(global: &GlobalOptions, options: &CheckOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let work = work_to_read(global)?;
    let seen = survey_work_dir(&work, true, output)?;
    let damaged: Vec<&StoreEntry> =
        seen.found.iter().filter(|found| matches!(found.reason, Some(RemovalReason::Damaged(_)))).collect();
    let results = seen.found.iter().filter(|found| found.reason.is_none());
    let (count, size) = results.fold((0u64, 0u64), |(n, sum), found| (n + 1, sum + found.bytes));
    let beside = SeparateStores::open(&work, options, output)?;
    if options.format.json {
        let mut document = document(&work, &seen, count, size, 0);
        document["stores"] = json!(beside.stores);
        document["fleets"] = json!(beside.fleets);
        output.json(&document);
    } else {
        beside.print(output);
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
    Ok(if damaged.is_empty() && beside.is_whole() { Exit::Ok } else { Exit::Findings })
}

/// Audits of matrix stores and fleets, which are not results of the work directory.
#[derive(Default)]
struct SeparateStores {
    stores: Vec<AuditedStore>,
    fleets: Vec<AuditedFleet>,
}

#[derive(Serialize)]
struct AuditedStore {
    store: String,
    #[serde(flatten)]
    audit: StoreAudit,
}

#[derive(Serialize)]
struct AuditedFleet {
    fleet: PathBuf,
    profiles: usize,
    findings: Vec<FleetFinding>,
}

#[derive(Serialize)]
struct FleetFinding {
    file: PathBuf,
    what: String,
}

impl SeparateStores {
    fn open(work: &WorkDir, options: &CheckOptions, output: &CliOutput) -> Result<Self, Failure> {
        let mut found = Self::default();
        let own = super::matrix::own_store(work);
        let own = Path::new(&own).is_dir().then(|| kerntune_matrix::open(&own)).transpose()?;
        // An empty or missing store that the user named is an error: the name is probably wrong.
        let named = options.store.iter().map(|address| kerntune_matrix::open_existing(address));
        for store in own.into_iter().map(Ok).chain(named) {
            let store = store?;
            output.progress().note(&store.url());
            let audit = kerntune_matrix::audit(&*store, work)?;
            found.stores.push(AuditedStore { store: store.url(), audit });
        }
        for prefix in &options.fleet {
            output.progress().note(&prefix.display().to_string());
            let (profiles, wrong) = Fleet::existing(prefix)?.audit()?;
            if profiles == 0 && wrong.is_empty() {
                return Err(kerntune_fleet::Error::NoFleet { path: prefix.clone() }.into());
            }
            let findings = wrong.into_iter().map(|(file, what)| FleetFinding { file, what }).collect();
            found.fleets.push(AuditedFleet { fleet: prefix.clone(), profiles, findings });
        }
        Ok(found)
    }

    fn is_whole(&self) -> bool {
        self.stores.iter().all(|store| store.audit.findings.is_empty())
            && self.fleets.iter().all(|fleet| fleet.findings.is_empty())
    }

    fn print(&self, output: &CliOutput) {
        for AuditedStore { store, audit } in &self.stores {
            for finding in &audit.findings {
                output.print(&format!("{store}: {}: {}", finding.object, finding.what));
            }
            output.print(&format!("{store}: {} objects, {} wrong", audit.objects, audit.findings.len()));
        }
        for AuditedFleet { fleet, profiles, findings } in &self.fleets {
            for finding in findings {
                output.print(&format!("{}: {}", finding.file.display(), finding.what));
            }
            output.print(&format!("{}: {profiles} profiles, {} wrong", fleet.display(), findings.len()));
        }
    }
}

/// Lists the contents of the work directory and what can be deleted; deletes it with `--remove`.
pub fn gc(global: &GlobalOptions, options: &GcOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let work = work_to_read(global)?;
    let seen = survey_work_dir(&work, options.thorough, output)?;
    let patience = DAY * u32::try_from(options.older_than).unwrap_or(u32::MAX);
    let unused = options.unused_for.map(|patience| seen.unused(patience)).unwrap_or_default();
    let can_go = |(at, found): &(usize, &StoreEntry)| match &found.reason {
        None => unused.contains(at),
        Some(RemovalReason::Unfinished) => !found.in_use && found.age >= patience,
        Some(_) => !found.in_use,
    };
    let going: BTreeMap<usize, &StoreEntry> = seen.found.iter().enumerate().filter(can_go).collect();
    let mut freed = 0;
    if options.remove {
        for found in going.values() {
            if StoreSurvey::delete(&work, found)? {
                freed += found.bytes;
            }
        }
    }
    if options.format.json {
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
    match (going.len(), options.remove) {
        (0, _) => output.note("nothing can go"),
        (n, false) => output.note(&format!("{} can go, {}: add `--remove`", entries(n), bytes(sum))),
        (n, true) => output.note(&format!("removed {}, {}", entries(n), bytes(freed))),
    }
    Ok(Exit::Ok)
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
