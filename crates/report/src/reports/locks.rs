//! Contended locks with their callers, and paths on which CPUs spin.

use super::cpus::no_cpus;
use super::off_cpu::{functions, path_text};
use super::{entry, Entry, Report, Selection};
use crate::unit::{header, readable, DisplayUnit};
use crate::view::scope;
use crate::{head, health, sampled, Result};
use clap::Args;
use kerntune_profile::{LockPathStats, PathKind, PathNode, Profile, RegionScope, Tables};
use kerntune_table::number::{fixed, grouped};
use kerntune_table::{printable, share, Columns, Document, Table, DEFAULT_ROWS};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-locks/2";

/// Registry entry of `kerntune report PROFILE locks`.
pub const ENTRY: Entry = entry::<LocksOptions>("locks", 13);

/// Description of the JSON form.
const ABOUT: &str = "Locks that had to be waited for, and what the functions that wait and spin executed \
     ([cpus.md](cpus.md)).";

/// Several CPUs: contended locks, and where CPUs spin (docs/cpus.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct LocksOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

struct LockRow<'a> {
    kind: &'static str,
    /// Kernel variable that is or contains the lock; `None` if it is in none.
    name: Option<&'a str>,
    address: String,
    /// Innermost open function outside of locking code.
    caller: Option<&'a str>,
    waits: u64,
    wait_ticks: u64,
    max_ticks: u64,
}

impl LockRow<'_> {
    /// Returns the mean wait, rounded to the nearest.
    fn avg_ticks(&self) -> u64 {
        self.wait_ticks.saturating_add(self.waits / 2).checked_div(self.waits).unwrap_or(0)
    }
}

struct SpinningPath<'a> {
    kind: &'static str,
    /// Instructions of the functions that wait for locks and spin.
    instructions: u64,
    calls: u64,
    /// Names from the outermost function to the one that spins.
    path: Vec<&'a str>,
}

/// Returns the kind of lock that a function waits for or spins on (kernel/locking/), by its name.
pub(crate) fn kind(name: &str) -> Option<&'static str> {
    let name = name.split('.').next().unwrap_or(name);
    Some(match name {
        "native_queued_spin_lock_slowpath"
        | "queued_spin_lock_slowpath"
        | "__pv_queued_spin_lock_slowpath" => "spinlock",
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

/// Adds up the waits for locks, longest time first.
fn locks<'a>(tables: &'a Tables, scope: &RegionScope) -> Vec<LockRow<'a>> {
    let mut locks: BTreeMap<(&str, u64, &str, Option<&str>), [u64; 3]> = BTreeMap::new();
    for row in tables.locks.iter().filter(|row| scope.contains(row.region)) {
        let kind = kind(tables.name(row.function)).unwrap_or("lock");
        let caller = row.caller.known().map(|function| tables.name(function));
        let [count, ticks, max] = locks.entry((kind, row.address.0, &row.name, caller)).or_default();
        *count = count.saturating_add(row.count);
        *ticks = ticks.saturating_add(row.wait_ticks.get());
        *max = (*max).max(row.max_ticks.get());
    }
    let words = ["spinlock", "rwlock", "mutex", "rwsem", "percpu rwsem", "rt mutex"];
    let word = |kind: &str| words.into_iter().find(|word| *word == kind).unwrap_or("lock");
    let mut locks: Vec<LockRow> = locks
        .into_iter()
        .map(|((kind, address, name, caller), [waits, wait_ticks, max_ticks])| LockRow {
            kind: word(kind),
            name: (!name.is_empty()).then_some(name),
            address: format!("{address:#018x}"),
            caller,
            waits,
            wait_ticks,
            max_ticks,
        })
        .collect();
    locks.sort_by_key(|row| Reverse((row.wait_ticks, row.waits)));
    locks
}

/// Collects the paths that end in a function which waits for locks, with their self time.
fn spinning<'a>(tables: &'a Tables, scope: &RegionScope) -> Vec<SpinningPath<'a>> {
    let mut sums: BTreeMap<(&'static str, Vec<&str>), (u64, u64)> = BTreeMap::new();
    for row in tables.paths.iter().filter(|row| row.kind == PathKind::Function && scope.contains(row.region))
    {
        let Some(kind) = kind(tables.name(row.function)) else { continue };
        let sum = sums.entry((kind, names(tables, row))).or_default();
        *sum = (sum.0.saturating_add(row.self_ticks.get()), sum.1.saturating_add(row.calls));
    }
    let row = |((kind, path), (instructions, calls))| SpinningPath { kind, instructions, calls, path };
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

/// Waits for locks of a kind on a call path.
struct WaitingPath<'a> {
    kind: &'a str,
    path: Vec<&'a str>,
    waits: u64,
    wait_ticks: u64,
    max_ticks: u64,
}

impl WaitingPath<'_> {
    /// Returns the mean wait, rounded to the nearest.
    fn avg_ticks(&self) -> u64 {
        self.wait_ticks.saturating_add(self.waits / 2).checked_div(self.waits).unwrap_or(0)
    }
}

/// Returns the waits by call path, longest time first.
fn waiting<'a>(tables: &'a Tables, scope: &RegionScope) -> Vec<WaitingPath<'a>> {
    let row = |row: &'a LockPathStats| WaitingPath {
        kind: &row.kind,
        path: functions(&row.path),
        waits: row.count,
        wait_ticks: row.wait_ticks.get(),
        max_ticks: row.max_ticks.get(),
    };
    let of_scope = tables.lock_paths.iter().filter(|row| scope.contains(row.region));
    let mut rows: Vec<WaitingPath> = of_scope.map(row).collect();
    rows.sort_by_key(|row| Reverse((row.wait_ticks, row.waits)));
    rows
}

fn waiting_columns<'a>(rows: &[WaitingPath]) -> Columns<'a, WaitingPath<'a>> {
    let unit = DisplayUnit::for_largest(rows.iter().map(|row| row.wait_ticks).max().unwrap_or(0));
    let mut columns = Columns::<WaitingPath>::new();
    columns.add("waits", "Waits on the path.", |row| row.waits).head("waits");
    columns.add("wait_ns", "Time of all of them.", |row| row.wait_ticks).head("waited").unit(unit);
    columns.add("avg_ns", "Mean time of a wait.", |row| row.avg_ticks()).head("avg\nns");
    columns.add("max_ns", "Longest wait.", |row| row.max_ticks).head("longest\nns");
    columns.add("kind", "Kind of lock, also `semaphore`.", |row| row.kind).head("kind");
    columns
        .add("path", "Functions from the outermost to the one that waits.", |row| row.path.clone())
        .head("path, from the function that waits")
        .text(|row| path_text(&row.path, "[no function known]"));
    columns
}

fn lock_columns<'a>(rows: &[LockRow]) -> Columns<'a, LockRow<'a>> {
    let unit = DisplayUnit::for_largest(rows.iter().map(|row| row.wait_ticks).max().unwrap_or(0));
    let mut columns = Columns::<LockRow>::new();
    columns.add("waits", "Waits for the lock.", |row| row.waits).head("waits");
    columns.add("wait_ns", "Time of all waits.", |row| row.wait_ticks).head("waited").unit(unit);
    columns.add("avg_ns", "Mean time of a wait.", |row| row.avg_ticks()).head("avg\nns");
    columns.add("max_ns", "Longest wait.", |row| row.max_ticks).head("longest\nns");
    columns
        .add("kind", "`spinlock`, `rwlock`, `mutex`, `rwsem`, `percpu rwsem`, `rt mutex` or `lock`.", |row| {
            row.kind
        })
        .head("kind");
    columns.add("address", "Virtual address of the lock.", |row| row.address.clone());
    columns
        .add("name", "Kernel variable that is or contains the lock; null if it is in none.", |row| row.name)
        .head("lock")
        .text(|row| printable(row.name.unwrap_or(&row.address)));
    columns
        .add("caller", "Innermost function outside of locking code; null if none was open.", |row| row.caller)
        .head("for")
        .null("[no function open]");
    columns
}

fn path_columns<'a>(busy: u64) -> Columns<'a, SpinningPath<'a>> {
    let mut columns = Columns::<SpinningPath>::new();
    columns
        .add("instructions", "Instructions of the function that waits and spins.", |row| row.instructions)
        .head("instructions");
    columns.share("% busy", busy, |row| row.instructions);
    columns.add("calls", "Its calls.", |row| row.calls).head("calls");
    columns.add("kind", "Kind of lock, also `mutex or rwsem`.", |row| row.kind).head("kind");
    columns
        .add("path", "Functions from the outermost to the one that spins.", |row| row.path.clone())
        .head("path, from the function that spins")
        .text(|row| path_text(&row.path, ""));
    columns
}

/// Message for a sampled profile without waits.
const NO_WAITS: &str = "This profile has no waits for locks: `kerntune record --live --locks -- COMMAND` records each, with its time\n\
     and call path. `report switches` shows who went to sleep in which function.\n";

/// Returns what samples say of locks: on which paths CPUs execute code that waits for them.
fn sampled_text(profile: &Profile, spinning: &[SpinningPath], busy: u64, top: Option<usize>) -> String {
    let cpus = profile.manifest.sampled.as_ref().map_or(0, |sampled| sampled.cpus);
    let spun = spinning.iter().fold(0u64, |sum, row| sum.saturating_add(row.instructions));
    let percent = |ns: u64| fixed(share(ns, busy), 2);
    let mut text = format!(
        "CPUs                 = {cpus:>13}\n\
         In code of locks     = {:>13}  ({}% of the run time, sampled)\n\
         Samples show where CPUs spin for locks, and enter and leave waits for them.\n",
        readable(spun),
        percent(spun),
    );
    if profile.tables.lock_paths.is_empty() {
        text += NO_WAITS;
    }
    if !spinning.is_empty() {
        text += &format!(
            "\n{:>12} {:>12} {:>7}  {:<14}  path, from the function that spins\n",
            "self",
            sampled::ERROR,
            "% busy",
            "kind"
        );
    }
    for row in spinning.iter().take(top.unwrap_or(DEFAULT_ROWS)) {
        let error = sampled::error_ns(profile, row.instructions).unwrap_or(0);
        let [own, error] = [row.instructions, error].map(readable);
        let (percent, path) = (percent(row.instructions), path_text(&row.path, ""));
        text += &format!("{own:>12} {error:>12} {percent:>7}  {:<14}  {path}\n", row.kind);
    }
    text
}

impl Report for LocksOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let region = self.select.region.as_deref();
        let scope = scope(profile, region)?;
        let totals = scope.totals(profile);
        let busy = totals.busy_ticks.get();
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("busy", "What code took.", busy);
        document.text(header(profile, &totals, region));
        let locks = locks(&profile.tables, &scope);
        let spinning = spinning(&profile.tables, &scope);
        let waiting = waiting(&profile.tables, &scope);
        let (is_live, is_traced) = (sampled::is(profile), !waiting.is_empty());
        if is_live && !is_traced {
            document.text(sampled_text(profile, &spinning, busy, self.select.top));
            health::add(&mut document, profile);
            document.end_text();
        } else if !is_live && profile.tables.cpus.is_empty() {
            document.text(no_cpus(profile));
            document.end_text();
        }
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        let waits = match is_traced {
            true => sum(&mut waiting.iter().map(|row| row.waits)),
            false => sum(&mut locks.iter().map(|row| row.waits)),
        };
        document.line("Waits for locks", format!("{:>13}", grouped(waits)));
        if is_traced {
            let waited = sum(&mut waiting.iter().map(|row| row.wait_ticks));
            document.line("Waited for locks", format!("{:>13}  (all threads together)", readable(waited)));
            document.text(sampled_text(profile, &spinning, busy, self.select.top));
        } else {
            let spun = sum(&mut spinning.iter().map(|row| row.instructions));
            document.line(
                "Instructions there",
                format!("{:>13}  ({}% of the run time)", grouped(spun), fixed(share(spun, busy), 2)),
            );
            document.note(
                "A CPU that spins gives its turn away at each `pause`: number and length of waits for locks are \
                 those of this machine.",
            );
        }
        let columns = waiting_columns(&waiting);
        let table = Table::new("waiting", waiting, columns).top(self.select.top);
        let help =
            "Waits by call path, longest time first, in profiles of the running kernel with `--locks`.";
        document.table(table.help(help).hidden_if_empty());
        let columns = lock_columns(&locks);
        let table = Table::new("locks", locks, columns).top(self.select.top);
        document.table(table.help("Locks by caller, longest time of waits first.").hidden_if_empty());
        let table = Table::new("spinning", spinning, path_columns(busy)).top(self.select.top);
        let help = "Paths to functions that wait for locks, most instructions first.";
        let table = if is_live { table.only_if(false) } else { table.hidden_if_empty() };
        document.table(table.help(help));
        if !is_live || is_traced {
            health::add(&mut document, profile);
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{FunctionIndex, KernelId, Manifest, SamplingSummary, Symbol, Ticks};

    #[test]
    fn a_sampled_profile_of_two_cpus_shows_where_they_spin_and_what_is_not_known() {
        let symbol = |number: u32, name: &str| Symbol {
            function: FunctionIndex(number),
            name: name.into(),
            address: kerntune_profile::Address(0x1000 * u64::from(number + 1)),
            size: 16,
            file: None,
            module: None,
        };
        let path = |path: u32, parent: u32, ns: u64| PathNode {
            path,
            parent,
            kind: PathKind::Function,
            function: FunctionIndex(path),
            self_ticks: Ticks(ns),
            ..PathNode::default()
        };
        let mut manifest = Manifest::new("p", KernelId::default(), "w", "host");
        manifest.sampled = Some(SamplingSummary {
            source: "perf: cpu-clock".into(),
            samples: 100,
            sample_ns: Ticks(1_000_000),
            cpus: 2,
            wall_ns: Ticks(50_000_000),
            period: String::new(),
            bias: None,
            filter: None,
            calls: None,
            bound_bytes: 0,
        });
        let tables = Tables {
            symbols: vec![symbol(0, "try_to_wake_up"), symbol(1, "native_queued_spin_lock_slowpath")],
            regions: vec![kerntune_profile::RegionStats { name: "command".into(), ..Default::default() }],
            paths: vec![path(0, PathNode::ROOT, 0), path(1, 0, 4_000_000)],
            ..Tables::default()
        };
        let profile = Profile { manifest, tables };
        let scope = RegionScope::all(&profile.tables);
        let text = sampled_text(&profile, &spinning(&profile.tables, &scope), 100_000_000, None);
        assert!(text.contains("CPUs                 =             2"), "{text}");
        assert!(text.contains("(4.00% of the run time, sampled)"), "{text}");
        assert!(text.contains("native_queued_spin_lock_slowpath < try_to_wake_up"), "{text}");
        assert!(text.contains("--locks") && !text.contains("one CPU"), "{text}");
    }
}
