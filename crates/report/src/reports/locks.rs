//! Contended locks with their callers, and paths on which CPUs spin.

use super::cpus::no_cpus;
use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::unit::{header, DisplayUnit};
use crate::view::scope;
use kerntune_table::share;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{PathKind, PathNode, Profile, ScopeTotals, Tables};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-locks/2";

/// Registry entry of `kerntune report PROFILE locks`.
pub const ENTRY: Entry = entry::<LocksOptions>("locks", 13);

/// Several CPUs: contended locks, and where CPUs spin (docs/cpus.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct LocksOptions {
    /// Show at most N rows of a table [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Serialize)]
struct LockRow {
    kind: &'static str,
    /// Kernel variable that is or contains the lock; `None` if it is in none.
    name: Option<String>,
    address: String,
    /// Innermost open function outside of locking code.
    caller: Option<String>,
    waits: u64,
    wait_ns: u64,
    avg_ns: u64,
    max_ns: u64,
}

#[derive(Debug, Serialize)]
struct SpinningPath {
    kind: &'static str,
    /// Instructions of the functions that wait for locks and spin.
    instructions: u64,
    calls: u64,
    /// Names from the outermost function to the one that spins.
    path: Vec<String>,
}

struct LockTables {
    totals: ScopeTotals,
    has_cpus: bool,
    locks: Vec<LockRow>,
    spinning: Vec<SpinningPath>,
}

/// Returns the kind of lock that a function waits for or spins on (kernel/locking/), by its name.
pub(crate) fn kind(name: &str) -> Option<&'static str> {
    let name = name.split('.').next().unwrap_or(name);
    Some(match name {
        "native_queued_spin_lock_slowpath" | "queued_spin_lock_slowpath" => "spinlock",
        "queued_read_lock_slowpath" | "queued_write_lock_slowpath" => "rwlock",
        "mutex_spin_on_owner" | "mutex_optimistic_spin" => "mutex",
        _ if name.starts_with("__mutex_lock") => "mutex",
        "rwsem_spin_on_owner" | "rwsem_optimistic_spin" => "rwsem",
        _ if name.starts_with("rwsem_down_") => "rwsem",
        "osq_lock" => "mutex or rwsem",
        "__percpu_down_read" => "percpu rwsem",
        _ if name.starts_with("__rt_mutex_slowlock") => "rt mutex",
        _ => return None,
    })
}

fn find(profile: &Profile, options: &LocksOptions) -> Result<LockTables> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let mut locks: BTreeMap<(&str, u64, &str, Option<&str>), [u64; 3]> = BTreeMap::new();
    for row in tables.locks.iter().filter(|row| scope.contains(row.region)) {
        let kind = kind(tables.name(row.function)).unwrap_or("lock");
        let caller = row.caller.known().map(|function| tables.name(function));
        let [count, ns, max] = locks.entry((kind, row.address.0, &row.name, caller)).or_default();
        *count = count.saturating_add(row.count);
        *ns = ns.saturating_add(row.wait_ticks.get());
        *max = (*max).max(row.max_ticks.get());
    }
    let words = ["spinlock", "rwlock", "mutex", "rwsem", "percpu rwsem", "rt mutex"];
    let word = |kind: &str| words.into_iter().find(|word| *word == kind).unwrap_or("lock");
    let mut locks: Vec<LockRow> = locks
        .into_iter()
        .map(|((kind, address, name, caller), [waits, wait_ns, max_ns])| LockRow {
            kind: word(kind),
            name: (!name.is_empty()).then(|| name.into()),
            address: format!("{address:#018x}"),
            caller: caller.map(Into::into),
            waits,
            wait_ns,
            avg_ns: wait_ns.saturating_add(waits / 2).checked_div(waits).unwrap_or(0),
            max_ns,
        })
        .collect();
    locks.sort_by_key(|row| Reverse((row.wait_ns, row.waits)));
    let spinning = spinning(tables, |region| scope.contains(region));
    Ok(LockTables { totals: scope.totals(profile), has_cpus: !tables.cpus.is_empty(), locks, spinning })
}

/// Collects the paths that end in a function which waits for locks, with their self time.
fn spinning(tables: &Tables, is_wanted: impl Fn(u32) -> bool) -> Vec<SpinningPath> {
    let mut sums: BTreeMap<(&'static str, Vec<&str>), (u64, u64)> = BTreeMap::new();
    for row in tables.paths.iter().filter(|row| row.kind == PathKind::Function && is_wanted(row.region)) {
        let Some(kind) = kind(tables.name(row.function)) else { continue };
        let sum = sums.entry((kind, names(tables, row))).or_default();
        *sum = (sum.0.saturating_add(row.self_ticks.get()), sum.1.saturating_add(row.calls));
    }
    let row = |((kind, path), (instructions, calls)): ((&'static str, Vec<&str>), _)| SpinningPath {
        kind,
        instructions,
        calls,
        path: path.into_iter().map(str::to_owned).collect(),
    };
    let mut rows: Vec<SpinningPath> = sums.into_iter().map(row).filter(|row| row.instructions > 0).collect();
    rows.sort_by_key(|row| Reverse(row.instructions));
    rows
}

/// Returns the functions of a path, outermost first.
fn names<'a>(tables: &'a Tables, row: &'a PathNode) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut at = Some(row);
    while let Some(node) = at.filter(|node| node.kind == PathKind::Function) {
        names.push(tables.name(node.function));
        at = tables.paths.get(node.parent as usize);
    }
    names.reverse();
    names
}

fn locks(found: &LockTables, top: usize) -> TableBuilder {
    let unit = DisplayUnit::for_largest(found.locks.iter().map(|row| row.wait_ns).max().unwrap_or(0));
    let mut table = TableBuilder::new([
        ("waits", Alignment::Right),
        (format!("waited\n{}", unit.name()).as_str(), Alignment::Right),
        ("avg\nns", Alignment::Right),
        ("longest\nns", Alignment::Right),
        ("kind", Alignment::Left),
        ("lock", Alignment::Left),
        ("for", Alignment::Left),
    ]);
    for row in found.locks.iter().take(top) {
        table.row([
            grouped(row.waits).into(),
            unit.format(row.wait_ns).into(),
            grouped(row.avg_ns).into(),
            grouped(row.max_ns).into(),
            row.kind.into(),
            printable(row.name.as_deref().unwrap_or(&row.address)).into(),
            printable(row.caller.as_deref().unwrap_or("[no function open]")).into(),
        ]);
    }
    table
}

/// Number of a path's functions that are shown, from the one that spins.
const MAX_FRAMES: usize = 6;

fn paths(found: &LockTables, top: usize) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("instructions", Alignment::Right),
        ("% busy", Alignment::Right),
        ("calls", Alignment::Right),
        ("kind", Alignment::Left),
        ("path, from the function that spins", Alignment::Left),
    ]);
    for row in found.spinning.iter().take(top) {
        let from_top: Vec<_> = row.path.iter().rev().take(MAX_FRAMES).map(|name| printable(name)).collect();
        let more = if row.path.len() > MAX_FRAMES { " < …" } else { "" };
        table.row([
            grouped(row.instructions).into(),
            fixed(share(row.instructions, found.totals.busy_ticks.get()), 2).into(),
            grouped(row.calls).into(),
            row.kind.into(),
            (from_top.join(" < ") + more).into(),
        ]);
    }
    table
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct LocksReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    locks: &'a [LockRow],
    spinning: &'a [SpinningPath],
}

impl Report for LocksOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let top = self.top.unwrap_or(crate::DEFAULT_ROWS);
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if !found.has_cpus {
            return Ok(out + no_cpus(profile));
        }
        let waits = found.locks.iter().fold(0u64, |sum, row| sum.saturating_add(row.waits));
        let spun = found.spinning.iter().fold(0u64, |sum, row| sum.saturating_add(row.instructions));
        out += &format!("{:<20} = {:>13}\n", "Waits for locks", grouped(waits));
        out += &format!(
            "{:<20} = {:>13}  ({}% of the run time)\n",
            "Instructions there",
            grouped(spun),
            fixed(share(spun, found.totals.busy_ticks.get()), 2)
        );
        out += &style.paint(
            TextRole::Faint,
            "A CPU that spins gives its turn away at each `pause`: number and length of waits for locks are \
             those of this machine.\n",
        );
        out += &locks(&found, top).below(found.locks.len(), top, style);
        out += &paths(&found, top).below(found.spinning.len(), top, style);
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        let top = |all: usize| self.top.unwrap_or(all).min(all);
        crate::to_json(&LocksReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            busy_ticks: found.totals.busy_ticks.get(),
            locks: &found.locks[..top(found.locks.len())],
            spinning: &found.spinning[..top(found.spinning.len())],
        })
    }
}
