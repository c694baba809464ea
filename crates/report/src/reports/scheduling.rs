//! Threads on several CPUs: delays of runnable threads until they got a CPU, and migrations.

use super::cpus::no_cpus;
use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::printable;
use crate::tally::{BucketTally, HistogramRow};
use crate::unit::{header, DisplayUnit};
use crate::view::scope;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_table::number::grouped;
use kerntune_profile::{Profile, ScopeTotals, Ticks};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-scheduling/1";

/// Registry entry of `kerntune report PROFILE scheduling`.
pub const ENTRY: Entry = entry::<SchedulingOptions>("scheduling", 12);

/// Several CPUs: delays of runnable threads, and migrations (docs/cpus.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SchedulingOptions {
    /// Show at most N rows of a table [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Serialize)]
struct WakeupDelay {
    thread: String,
    /// `None` if the thread was runnable because it had been preempted.
    woken_by: Option<String>,
    count: u64,
    delay_ns: u64,
    avg_ns: u64,
    max_ns: u64,
}

#[derive(Debug, Serialize)]
struct ThreadMigration {
    thread: String,
    from: u32,
    to: u32,
    /// Reason in a word.
    reason: &'static str,
    /// Scheduler function that moves the thread.
    function: Option<String>,
    count: u64,
}

struct SchedulingTables {
    totals: ScopeTotals,
    has_cpus: bool,
    delays: Vec<WakeupDelay>,
    spread: BucketTally,
    migrations: Vec<ThreadMigration>,
}

/// Returns the reason for which a scheduler function moves a thread (kernel/sched/core.c and
/// fair.c).
pub(crate) fn reason(function: Option<&str>) -> &'static str {
    let name = function.unwrap_or_default();
    let name = name.split('.').next().unwrap_or(name);
    match name {
        "try_to_wake_up" | "ttwu_do_activate" => "wake-up",
        "wake_up_new_task" | "sched_cgroup_fork" | "sched_fork" => "fork",
        "__migrate_task"
        | "move_queued_task"
        | "migration_cpu_stop"
        | "affine_move_task"
        | "__migrate_swap_task" => "affinity",
        _ if [
            "detach_task",
            "attach_task",
            "sched_balance",
            "load_balance",
            "newidle",
            "active_load",
            "pull_",
        ]
        .iter()
        .any(|begin| name.starts_with(begin)) =>
        {
            "balance"
        }
        _ => "other",
    }
}

fn find(profile: &Profile, options: &SchedulingOptions) -> Result<SchedulingTables> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let mut delays: BTreeMap<(&str, &str), [u64; 3]> = BTreeMap::new();
    let mut spread = BucketTally::default();
    for row in tables.delays.iter().filter(|row| scope.contains(row.region)) {
        let [count, ns, max] = delays.entry((&row.comm, &row.waker)).or_default();
        *count = count.saturating_add(row.count);
        *ns = ns.saturating_add(row.delay_ticks.get());
        *max = (*max).max(row.max_ticks.get());
        spread.add(row.bucket, row.count, Ticks::ZERO);
    }
    let mut delays: Vec<WakeupDelay> = delays
        .into_iter()
        .map(|((thread, waker), [count, delay_ns, max_ns])| WakeupDelay {
            thread: thread.into(),
            woken_by: (!waker.is_empty()).then(|| waker.into()),
            count,
            delay_ns,
            avg_ns: delay_ns.saturating_add(count / 2).checked_div(count).unwrap_or(0),
            max_ns,
        })
        .collect();
    delays.sort_by_key(|row| Reverse(row.delay_ns));
    let mut migrations: BTreeMap<(&str, u32, u32, Option<&str>), u64> = BTreeMap::new();
    for row in tables.migrations.iter().filter(|row| scope.contains(row.region)) {
        let function = row.reason.known().map(|function| tables.name(function));
        let sum = migrations.entry((&row.comm, row.from_cpu, row.to_cpu, function)).or_default();
        *sum = sum.saturating_add(row.count);
    }
    let mut migrations: Vec<ThreadMigration> = migrations
        .into_iter()
        .map(|((thread, from, to, function), count)| ThreadMigration {
            thread: thread.into(),
            from,
            to,
            reason: reason(function),
            function: function.map(Into::into),
            count,
        })
        .collect();
    migrations.sort_by_key(|row| Reverse(row.count));
    Ok(SchedulingTables {
        totals: scope.totals(profile),
        has_cpus: !tables.cpus.is_empty(),
        delays,
        spread,
        migrations,
    })
}

fn delays(found: &SchedulingTables, top: usize) -> TableBuilder {
    let unit = DisplayUnit::for_largest(found.delays.iter().map(|row| row.delay_ns).max().unwrap_or(0));
    let mut table = TableBuilder::new([
        ("waits", Alignment::Right),
        (format!("waited\n{}", unit.name()).as_str(), Alignment::Right),
        ("avg\nns", Alignment::Right),
        ("longest\nns", Alignment::Right),
        ("thread", Alignment::Left),
        ("woken by", Alignment::Left),
    ]);
    for row in found.delays.iter().take(top) {
        table.row([
            grouped(row.count).into(),
            unit.format(row.delay_ns).into(),
            grouped(row.avg_ns).into(),
            grouped(row.max_ns).into(),
            printable(&row.thread).into(),
            printable(row.woken_by.as_deref().unwrap_or("[nobody: preempted]")).into(),
        ]);
    }
    table
}

fn migrations(found: &SchedulingTables, top: usize) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("migrations", Alignment::Right),
        ("from\nCPU", Alignment::Right),
        ("to\nCPU", Alignment::Right),
        ("reason", Alignment::Left),
        ("thread", Alignment::Left),
        ("moved by", Alignment::Left),
    ]);
    for row in found.migrations.iter().take(top) {
        table.row([
            grouped(row.count).into(),
            row.from.to_string().into(),
            row.to.to_string().into(),
            row.reason.into(),
            printable(&row.thread).into(),
            printable(row.function.as_deref().unwrap_or("[no function open]")).into(),
        ]);
    }
    table
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct SchedulingReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    delays: &'a [WakeupDelay],
    buckets: Vec<JsonDelayBucket>,
    migrations: &'a [ThreadMigration],
}

#[derive(Serialize)]
struct JsonDelayBucket {
    from_ns: u64,
    to_ns: u64,
    count: u64,
}

impl Report for SchedulingOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let top = self.top.unwrap_or(crate::DEFAULT_ROWS);
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if !found.has_cpus {
            return Ok(out + no_cpus(profile));
        }
        let sum = |counts: &mut dyn Iterator<Item = u64>| grouped(counts.fold(0, u64::saturating_add));
        out += &format!(
            "{:<20} = {:>13}\n",
            "Waits for a CPU",
            sum(&mut found.delays.iter().map(|row| row.count))
        );
        out += &format!(
            "{:<20} = {:>13}\n",
            "Migrations",
            sum(&mut found.migrations.iter().map(|row| row.count))
        );
        out += &delays(&found, top).below(found.delays.len(), top, style);
        out += &migrations(&found, top).below(found.migrations.len(), top, style);
        if found.spread.count() > 0 {
            let mut spread = kerntune_table::Document::new("", "");
            spread.table(found.spread.to_table("ns", "waits"));
            out += &kerntune_table::render::text(&spread, style);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        let top = |all: usize| self.top.unwrap_or(all).min(all);
        let row =
            |row: HistogramRow| JsonDelayBucket { from_ns: row.from_ns, to_ns: row.to_ns, count: row.count };
        crate::to_json(&SchedulingReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            delays: &found.delays[..top(found.delays.len())],
            buckets: found.spread.rows().into_iter().map(row).collect(),
            migrations: &found.migrations[..top(found.migrations.len())],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_scheduler_say_why() {
        let cases = [
            (Some("try_to_wake_up"), "wake-up"),
            (Some("detach_tasks.isra.0"), "balance"),
            (Some("sched_balance_rq"), "balance"),
            (Some("migration_cpu_stop"), "affinity"),
            (Some("something_new"), "other"),
            (None, "other"),
        ];
        assert!(cases.iter().all(|(function, word)| reason(*function) == *word));
    }
}
