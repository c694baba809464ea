//! The commands `kerntune fleet add|merge|query`.

use crate::{
    merge, query, views, Error, Fleet, FleetEntry, PartitionKey, ProfileFilter, ProfileGroup, Weights,
};
use clap::{Args, Subcommand};
use kerntune_command::{
    audit, command_group, work, AuditEntry, AuditStores, AuditedStore, CliOutput, CommandEntry, Exit,
    Failure, FormatOptions, GlobalOptions, ProfileJson, RunSubcommand,
};
use kerntune_profile::{find, keep};
use kerntune_work::WorkDir;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Entry of `kerntune fleet`.
pub const COMMAND: CommandEntry = command_group::<FleetCommand>("fleet", 50, "Many machines");

/// Keep profiles of many machines below one prefix, merge thousands of them, and query them (docs/fleet.md)
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Copy profiles below a prefix, ordered by build id, date, host and workload
    Add {
        /// The directory of the fleet's profiles, created if it does not exist
        prefix: PathBuf,
        /// Beginnings of ids, directories, `latest`, or `latest:workload=rr,kernel=base`
        #[arg(required = true)]
        profiles: Vec<String>,
        /// The machine that recorded the profiles [default: the name of this machine]
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Add up profiles of one kernel into one profile in the work directory; memory stays bounded
    /// for thousands of profiles
    Merge {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: FleetSelection,
        /// Weight of the profiles whose build_id, date, host or workload has this value: a whole
        /// number up to 1,000,000, for example workload=redis:3; 0 leaves them out. The first match
        /// counts; profiles without a match have weight 1; may be repeated
        #[arg(long, value_name = "KEY=VALUE:WEIGHT")]
        weight: Vec<String>,
        /// Number of threads that read and add profiles [default: number of CPUs]
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Sum profiles by build, day, host or workload; or print SQL views for queries with DuckDB
    Query {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: FleetSelection,
        /// Group by this: build_id, date, host or workload; may be repeated
        #[arg(long, value_parser = key)]
        by: Vec<PartitionKey>,
        /// Show the figures of this function in each group; reads every profile
        #[arg(long, value_name = "NAME")]
        function: Option<String>,
        /// Print only DuckDB statements that define a view of each table
        #[arg(long, conflicts_with_all = ["by", "function", "json"])]
        sql: bool,
        #[command(flatten)]
        format: FormatOptions,
    },
}

/// Options that select profiles of a fleet.
#[derive(Debug, Clone, Args)]
pub struct FleetSelection {
    /// Select profiles of this kernel: the beginning of its build id
    #[arg(long, value_name = "ID")]
    build_id: Option<String>,
    /// Select profiles of this machine
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Select profiles of this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Select profiles from this day on, for example 2026-11-25 (UTC)
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Select profiles up to this day
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
}

impl FleetSelection {
    /// Converts the options to the fleet library's filter.
    fn filter(&self) -> ProfileFilter {
        let Self { build_id, host, workload, since, until } = self.clone();
        ProfileFilter { build_id, host, workload, since, until }
    }
}

fn key(name: &str) -> Result<PartitionKey, String> {
    let keys = PartitionKey::ALL.map(PartitionKey::name).join(", ");
    PartitionKey::named(name).ok_or_else(|| format!("give one of {keys}"))
}

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

impl RunSubcommand<GlobalOptions> for FleetCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match self {
            Self::Add { prefix, profiles, host, format } => {
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
            Self::Merge { prefix, which, weight, jobs, format } => {
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
            Self::Query { prefix, which, by, function, sql, format } => {
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
}

/// Returns the profiles that the filter selects; fails if there are none.
fn list(prefix: &Path, filter: &ProfileFilter) -> Result<Vec<FleetEntry>, Failure> {
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

/// Entry of the audit of fleets.
pub const AUDIT: AuditEntry = audit::<FleetAudit>("fleets");

// Not a doc comment: it would replace the help of `check`.
#[derive(Debug, Args)]
pub struct FleetAudit {
    /// Check also the fleet below this prefix; may be repeated
    #[arg(long, value_name = "DIR")]
    fleet: Vec<PathBuf>,
}

#[derive(Serialize)]
struct AuditedFleet<'a> {
    fleet: &'a Path,
    profiles: usize,
    findings: Vec<FleetFinding>,
}

#[derive(Serialize)]
struct FleetFinding {
    file: PathBuf,
    what: String,
}

impl AuditStores for FleetAudit {
    fn audit(&self, _work: &WorkDir, output: &CliOutput) -> Result<Vec<AuditedStore>, Failure> {
        let audit = |fleet: &PathBuf| {
            output.progress().note(&fleet.display().to_string());
            let (profiles, wrong) = Fleet::existing(fleet)?.audit()?;
            if profiles == 0 && wrong.is_empty() {
                return Err(Error::NoFleet { path: fleet.clone() }.into());
            }
            let mut lines: Vec<String> =
                wrong.iter().map(|(file, what)| format!("{}: {what}", file.display())).collect();
            lines.push(format!("{}: {profiles} profiles, {} wrong", fleet.display(), wrong.len()));
            let is_whole = wrong.is_empty();
            let findings = wrong.into_iter().map(|(file, what)| FleetFinding { file, what }).collect();
            let document = serde_json::json!(AuditedFleet { fleet, profiles, findings });
            Ok(AuditedStore { document, lines, is_whole })
        };
        self.fleet.iter().map(audit).collect()
    }
}
