//! Time of threads off the CPU: blocked, by call path and by what woke them.

use super::{entry, Entry, Report, Selection};
use crate::unit::{header, readable, DisplayUnit};
use crate::view::scope;
use crate::{head, health, sampled, Result};
use clap::Args;
use kerntune_profile::{BlockedStats, Profile};
use kerntune_table::number::grouped;
use kerntune_table::{printable, Columns, Document, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-off-cpu/1";

/// Registry entry of `kerntune report PROFILE off-cpu`.
pub const ENTRY: Entry = entry::<OffCpuOptions>("off-cpu", 10);

/// Description of the JSON form.
const ABOUT: &str =
    "Time for which threads were blocked, by the call path in which they went to sleep and by what \
     woke them, in profiles of the running kernel with `--off-cpu` ([live.md](live.md#time-off-the-cpu)).";

/// Time that threads were blocked: where they slept, and who woke them (docs/live.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct OffCpuOptions {
    /// Only waits of threads with this name
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

/// Waits of threads of a name at a call path, by what ended them.
struct BlockedRow<'a> {
    thread: &'a str,
    path: Vec<&'a str>,
    /// `None` if the wake-up was not seen.
    woken_by: Option<&'a str>,
    waker_path: Vec<&'a str>,
    count: u64,
    blocked_ticks: u64,
    max_ticks: u64,
}

impl BlockedRow<'_> {
    /// Returns the mean time, rounded to the nearest.
    fn avg_ticks(&self) -> u64 {
        self.blocked_ticks.saturating_add(self.count / 2).checked_div(self.count).unwrap_or(0)
    }
}

/// Time of the threads of a name off the CPU.
#[derive(Default)]
struct OffCpuThread {
    blocks: u64,
    blocked_ticks: u64,
    waits: u64,
    delay_ticks: u64,
}

/// Number of a path's functions that are shown, from the innermost.
const MAX_FRAMES: usize = 6;

/// Splits a path of a table into its functions, outermost first.
pub(super) fn functions(path: &str) -> Vec<&str> {
    path.split(';').filter(|name| !name.is_empty()).collect()
}

/// Formats the last functions of a path, the innermost first.
pub(super) fn path_text(path: &[&str], missing: &str) -> String {
    if path.is_empty() {
        return missing.into();
    }
    let from_top: Vec<_> = path.iter().rev().take(MAX_FRAMES).map(|name| printable(name)).collect();
    from_top.join(" < ") + if path.len() > MAX_FRAMES { " < …" } else { "" }
}

fn blocked_columns<'a>(rows: &[BlockedRow]) -> Columns<'a, BlockedRow<'a>> {
    let unit = DisplayUnit::for_largest(rows.iter().map(|row| row.blocked_ticks).max().unwrap_or(0));
    let each = DisplayUnit::for_largest(rows.iter().map(|row| row.max_ticks).max().unwrap_or(0));
    let mut columns = Columns::<BlockedRow>::new();
    columns.add("count", "Waits that ended.", |row| row.count).head("waits");
    columns
        .add("blocked_ns", "Time of all of them, until the thread was woken.", |row| row.blocked_ticks)
        .head("blocked")
        .unit(unit);
    columns.add("avg_ns", "Mean time of a wait.", |row| row.avg_ticks()).head("average").unit(each);
    columns.add("max_ns", "Longest wait.", |row| row.max_ticks).head("longest").unit(each);
    columns.add("thread", "Name of the thread.", |row| row.thread).head("thread");
    columns
        .add("path", "Functions in which it went to sleep, from the outermost.", |row| row.path.clone())
        .head("slept in, from the innermost")
        .text(|row| path_text(&row.path, "[no function known]"));
    columns
        .add("woken_by", "Thread that woke it, or `[interrupt]`; null if the wake-up was not seen.", |row| {
            row.woken_by
        })
        .head("woken by")
        .null("[not seen]");
    columns
        .add("waker_path", "Functions that woke it, from the outermost.", |row| row.waker_path.clone())
        .head("in, from the innermost")
        .text(|row| path_text(&row.waker_path, ""));
    columns
}

fn thread_columns<'a>(rows: &[(&str, OffCpuThread)]) -> Columns<'a, (&'a str, OffCpuThread)> {
    let unit = |of: fn(&OffCpuThread) -> u64| {
        DisplayUnit::for_largest(rows.iter().map(|(_, row)| of(row)).max().unwrap_or(0))
    };
    let mut columns = Columns::<(&str, OffCpuThread)>::new();
    columns
        .add("blocked_ns", "Time for which they were blocked.", |row| row.1.blocked_ticks)
        .head("blocked")
        .unit(unit(|row| row.blocked_ticks));
    columns.add("blocks", "Waits that ended with a wake-up.", |row| row.1.blocks).head("waits");
    columns
        .add("delay_ns", "Time for which they could run and waited for a CPU.", |row| row.1.delay_ticks)
        .head("waited for\na CPU")
        .unit(unit(|row| row.delay_ticks));
    columns.add("waits", "Waits for a CPU.", |row| row.1.waits).head("waits");
    columns.add("thread", "Name of the threads.", |row| row.0).head("thread");
    columns
}

impl Report for OffCpuOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let tables = &profile.tables;
        let region = self.select.region.as_deref();
        let scope = scope(profile, region)?;
        let is_chosen = |comm: &str| self.thread.as_ref().is_none_or(|name| name == comm);
        let row = |row: &'a BlockedStats| BlockedRow {
            thread: &row.comm,
            path: functions(&row.path),
            woken_by: (!row.waker.is_empty()).then_some(&*row.waker),
            waker_path: functions(&row.waker_path),
            count: row.count,
            blocked_ticks: row.blocked_ticks.get(),
            max_ticks: row.max_ticks.get(),
        };
        let of_scope = tables.blocked.iter().filter(|row| scope.contains(row.region) && is_chosen(&row.comm));
        let mut rows: Vec<BlockedRow> = of_scope.map(row).collect();
        rows.sort_by_key(|row| Reverse((row.blocked_ticks, row.count)));
        let mut threads: BTreeMap<&str, OffCpuThread> = BTreeMap::new();
        for row in &rows {
            let sum = threads.entry(row.thread).or_default();
            sum.blocks = sum.blocks.saturating_add(row.count);
            sum.blocked_ticks = sum.blocked_ticks.saturating_add(row.blocked_ticks);
        }
        for row in tables.delays.iter().filter(|row| scope.contains(row.region) && is_chosen(&row.comm)) {
            let sum = threads.entry(&row.comm).or_default();
            sum.waits = sum.waits.saturating_add(row.count);
            sum.delay_ticks = sum.delay_ticks.saturating_add(row.delay_ticks.get());
        }
        let mut threads: Vec<(&str, OffCpuThread)> = threads.into_iter().collect();
        threads.sort_by_key(|(_, row)| Reverse((row.blocked_ticks, row.delay_ticks)));
        let sum = |of: fn(&OffCpuThread) -> u64| {
            threads.iter().fold(0, |sum: u64, (_, row)| sum.saturating_add(of(row)))
        };
        let [blocks, blocked, waits, delay] = [
            sum(|row| row.blocks),
            sum(|row| row.blocked_ticks),
            sum(|row| row.waits),
            sum(|row| row.delay_ticks),
        ];

        let totals = scope.totals(profile);
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("blocked_ns", "Time for which all threads were blocked.", blocked);
        document.field("delay_ns", "Time for which all threads could run and waited for a CPU.", delay);
        sampled::add(&mut document, profile);
        document.text(header(profile, &totals, region));
        if tables.blocked.is_empty() && tables.delays.is_empty() {
            document.text(NOT_RECORDED);
            document.end_text();
        }
        document
            .line("Blocked", format!("{:>13}  ({} waits that ended)", readable(blocked), grouped(blocks)));
        document.line("Waited for a CPU", format!("{:>13}  ({} waits)", readable(delay), grouped(waits)));
        document.note(
            "Times of all threads together. A wait counts if it began and ended in the profile, and it ends when the \
             thread is woken.",
        );
        let columns = thread_columns(&threads);
        let table = Table::new("threads", threads, columns).top(self.select.top);
        let help = "Threads by name, longest blocked first; waits for a CPU also in the report `scheduling`.";
        document.table(table.help(help).noun("names").hidden_if_empty());
        let columns = blocked_columns(&rows);
        let table = Table::new("blocked", rows, columns).top(self.select.top);
        document.table(table.help("Waits by call path, longest time first.").hidden_if_empty());
        health::add(&mut document, profile);
        Ok(document)
    }
}

/// Message for a profile without waits.
const NOT_RECORDED: &str =
    "This profile has no time off the CPU: `kerntune record --live --off-cpu -- COMMAND` \
     records it (docs/live.md).\n";

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{DelayStats, KernelId, Manifest, RegionStats, Tables, Ticks};
    use kerntune_table::Style;

    fn profile() -> Profile {
        let manifest = Manifest::new("p", KernelId::default(), "w", "host");
        let blocked = |waker: &str, ns: u64| BlockedStats {
            region: 0,
            comm: "redis-server".into(),
            path: "do_syscall_64;do_epoll_wait".into(),
            waker: waker.into(),
            waker_path: "do_syscall_64;tcp_sendmsg;sock_def_readable".into(),
            count: 2,
            blocked_ticks: Ticks(ns),
            max_ticks: Ticks(ns - 1),
        };
        let tables = Tables {
            regions: vec![RegionStats { name: "command".into(), ..RegionStats::default() }],
            blocked: vec![blocked("", 100), blocked("redis-benchmark", 3_000)],
            delays: vec![DelayStats {
                region: 0,
                comm: "redis-server".into(),
                waker: "redis-benchmark".into(),
                bucket: 12,
                count: 4,
                delay_ticks: Ticks(50),
                max_ticks: Ticks(20),
            }],
            ..Tables::default()
        };
        Profile { manifest, tables }
    }

    #[test]
    fn blocked_time_and_waits_for_a_cpu_stand_apart() {
        let profile = profile();
        let text = OffCpuOptions::default().text(&profile, Style::PLAIN).unwrap();
        for part in [
            "do_epoll_wait < do_syscall_64",
            "sock_def_readable < tcp_sendmsg < do_syscall_64",
            "[not seen]",
            "(4 waits that ended)",
            "(4 waits)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json: serde_json::Value =
            serde_json::from_str(&OffCpuOptions::default().json(&profile).unwrap()).unwrap();
        assert_eq!((&json["blocked_ns"], &json["delay_ns"]), (&3_100.into(), &50.into()));
        assert_eq!(json["blocked"][0]["woken_by"], "redis-benchmark");
        assert!(json["blocked"][1]["woken_by"].is_null());
        let other = OffCpuOptions { thread: Some("sh".into()), ..OffCpuOptions::default() };
        let json: serde_json::Value = serde_json::from_str(&other.json(&profile).unwrap()).unwrap();
        assert_eq!(json["blocked"].as_array().map(Vec::len), Some(0));
    }

    #[test]
    fn a_profile_without_waits_says_how_to_record_them() {
        let mut profile = profile();
        (profile.tables.blocked, profile.tables.delays) = (Vec::new(), Vec::new());
        let text = OffCpuOptions::default().text(&profile, Style::PLAIN).unwrap();
        assert!(text.contains("--off-cpu"), "{text}");
    }
}
