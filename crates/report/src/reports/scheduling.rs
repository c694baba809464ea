//! Threads on several CPUs: delays of runnable threads until they got a CPU, and migrations.

use super::cpus::no_cpus;
use super::{entry, Entry, Report, Selection};
use crate::tally::{BucketTally, HistogramRow};
use crate::unit::{header, DisplayUnit};
use crate::view::scope;
use crate::{counted, head, health, sampled, Result};
use clap::Args;
use kerntune_profile::{Profile, Ticks};
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Document, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-scheduling/1";

/// Registry entry of `kerntune report PROFILE scheduling`.
pub const ENTRY: Entry = entry::<SchedulingOptions>("scheduling", 12);

/// Description of the JSON form.
const ABOUT: &str = "Times for which threads waited for a CPU, and threads that continued on another CPU \
     ([cpus.md](cpus.md)).";

/// Delays of runnable threads until they got a CPU, and migrations (docs/cpus.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SchedulingOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

/// Waits of a thread, by what woke it.
struct WakeupDelay<'a> {
    thread: &'a str,
    /// `None` if the thread was runnable because it had been preempted.
    woken_by: Option<&'a str>,
    count: u64,
    delay_ticks: u64,
    max_ticks: u64,
}

impl WakeupDelay<'_> {
    /// Returns the mean delay, rounded to the nearest.
    fn avg_ticks(&self) -> u64 {
        self.delay_ticks.saturating_add(self.count / 2).checked_div(self.count).unwrap_or(0)
    }
}

/// Moves of a thread from one CPU to another by one scheduler function.
struct ThreadMigration<'a> {
    thread: &'a str,
    from: u32,
    to: u32,
    function: Option<&'a str>,
    count: u64,
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

/// Message for a profile of the running kernel without waits.
const NO_WAITS: &str =
    "This profile has no waits for a CPU: `kerntune record --live --off-cpu -- COMMAND` records them \
     (docs/live.md).\n";

/// Kinds of running kernel counts that concern this report.
const MIGRATIONS: &[&str] = &["migration"];

impl Report for SchedulingOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let tables = &profile.tables;
        let region = self.select.region.as_deref();
        let scope = scope(profile, region)?;
        let mut delays: BTreeMap<(&str, &str), [u64; 3]> = BTreeMap::new();
        let mut spread = BucketTally::default();
        for row in tables.delays.iter().filter(|row| scope.contains(row.region)) {
            let [count, ticks, max] = delays.entry((&row.comm, &row.waker)).or_default();
            *count = count.saturating_add(row.count);
            *ticks = ticks.saturating_add(row.delay_ticks.get());
            *max = (*max).max(row.max_ticks.get());
            spread.add(row.bucket, row.count, Ticks::ZERO);
        }
        let row = |((thread, waker), [count, delay_ticks, max_ticks]): ((&'a str, &'a str), [u64; 3])| {
            let woken_by = (!waker.is_empty()).then_some(waker);
            WakeupDelay { thread, woken_by, count, delay_ticks, max_ticks }
        };
        let mut delays: Vec<WakeupDelay> = delays.into_iter().map(row).collect();
        delays.sort_by_key(|row| Reverse(row.delay_ticks));
        let mut migrations: BTreeMap<(&str, u32, u32, Option<&str>), u64> = BTreeMap::new();
        for row in tables.migrations.iter().filter(|row| scope.contains(row.region)) {
            let function = row.reason.known().map(|function| tables.name(function));
            let sum = migrations.entry((&row.comm, row.from_cpu, row.to_cpu, function)).or_default();
            *sum = sum.saturating_add(row.count);
        }
        let row =
            |((thread, from, to, function), count)| ThreadMigration { thread, from, to, function, count };
        let mut migrations: Vec<ThreadMigration> = migrations.into_iter().map(row).collect();
        migrations.sort_by_key(|row| Reverse(row.count));

        let totals = scope.totals(profile);
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.text(header(profile, &totals, region));
        let is_live = sampled::is(profile);
        if is_live && tables.delays.is_empty() {
            document.text(NO_WAITS);
            document.end_text();
        } else if tables.cpus.is_empty() && !is_live {
            document.text(no_cpus(profile));
            document.end_text();
        }
        let waits = delays.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
        document.line("Waits for a CPU", format!("{:>13}", grouped(waits)));
        let moves = migrations.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
        // Of the running kernel, migrations are counted without their threads.
        match is_live {
            true => counted::add(&mut document, profile, MIGRATIONS, MIGRATIONS, self.select.top),
            false => document.line("Migrations", format!("{:>13}", grouped(moves))),
        }
        let columns = delay_columns(&delays);
        let table = Table::new("delays", delays, columns).top(self.select.top);
        document.table(table.help("Waits for a CPU, longest time first.").hidden_if_empty());
        let table = Table::new("migrations", migrations, migration_columns()).top(self.select.top);
        document.table(table.help("Moves to another CPU, most first.").hidden_if_empty());
        let mut columns = Columns::<HistogramRow>::new();
        columns.add("from_ns", "Shortest wait of the bucket.", |row| row.from_ns);
        columns.add("to_ns", "Longest wait of the bucket.", |row| row.to_ns);
        columns.add("count", "Waits in it.", |row| row.count);
        let help = "Waits by length, the empty buckets between them included.";
        document.table(Table::new("buckets", spread.rows(), columns).help(help).only_if(false));
        document.table(spread.to_table("ns", "waits"));
        health::add(&mut document, profile);
        Ok(document)
    }
}

fn delay_columns<'a>(rows: &[WakeupDelay]) -> Columns<'a, WakeupDelay<'a>> {
    let unit = DisplayUnit::for_largest(rows.iter().map(|row| row.delay_ticks).max().unwrap_or(0));
    let mut columns = Columns::<WakeupDelay>::new();
    columns.add("count", "Waits.", |row| row.count).head("waits");
    columns.add("delay_ns", "Time of all waits.", |row| row.delay_ticks).head("waited").unit(unit);
    columns.add("avg_ns", "Mean time of a wait.", |row| row.avg_ticks()).head("avg\nns");
    columns.add("max_ns", "Longest wait.", |row| row.max_ticks).head("longest\nns");
    columns.add("thread", "Name of the thread.", |row| row.thread).head("thread");
    columns
        .add("woken_by", "Thread that woke it; null if the CPU had been taken from it.", |row| row.woken_by)
        .head("woken by")
        .null("[nobody: preempted]");
    columns
}

fn migration_columns<'a>() -> Columns<'a, ThreadMigration<'a>> {
    let mut columns = Columns::<ThreadMigration>::new();
    columns.add("count", "Moves.", |row| row.count).head("migrations");
    columns.add("from", "CPU that the thread left.", |row| row.from).head("from\nCPU");
    columns.add("to", "CPU on which it continued.", |row| row.to).head("to\nCPU");
    columns
        .add("reason", "`wake-up`, `balance`, `affinity`, `fork` or `other`.", |row| reason(row.function))
        .head("reason");
    columns.add("thread", "Name of the thread.", |row| row.thread).head("thread");
    columns
        .add("function", "Scheduler function that moved it; null if none was open.", |row| row.function)
        .head("moved by")
        .null("[no function open]");
    columns
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
