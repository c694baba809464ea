//! Time by thread, with interrupts and idle tasks.

use super::{entry, Entry, Report, Selection};
use crate::cgroups::container;
use crate::unit::{header, TickUnit};
use crate::view::scope;
use crate::{head, health, sampled, Result};
use clap::Args;
use kerntune_profile::{thread_name, Profile, ScopeTotals, ThreadKind};
use kerntune_table::{printable, Columns, Document, Table};
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-threads/2";

/// Registry entry of `kerntune report PROFILE threads`.
pub const ENTRY: Entry = entry::<ThreadsOptions>("threads", 7);

/// Description of the JSON form.
const ABOUT: &str = "Time by thread. `self` of all sums exactly to `busy`.";

/// Time by thread
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ThreadsOptions {
    /// Show all threads of one name in one row
    #[arg(long)]
    pub by_comm: bool,
    /// Show the threads of each cgroup in one row, with its container or unit
    #[arg(long, conflicts_with = "by_comm")]
    pub by_cgroup: bool,
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

#[derive(Debug, Clone)]
struct ThreadRow {
    comm: String,
    kind: ThreadKind,
    /// `None` if the row combines several threads.
    pid: Option<u32>,
    tgid: Option<u32>,
    threads: u64,
    self_ticks: u64,
    user_ticks: u64,
    kernel_ticks: u64,
    switches_in: u64,
    /// Path of the cgroup; empty if unknown.
    cgroup: String,
}

impl ThreadRow {
    fn add(&mut self, row: &Self) {
        self.pid = None;
        self.tgid = self.tgid.filter(|tgid| Some(*tgid) == row.tgid);
        self.threads += 1;
        self.self_ticks = self.self_ticks.saturating_add(row.self_ticks);
        self.user_ticks = self.user_ticks.saturating_add(row.user_ticks);
        self.switches_in = self.switches_in.saturating_add(row.switches_in);
    }
}

/// Returns the rows of a cgroup as one each. Interrupts and idle tasks have none.
fn by_cgroup(rows: Vec<ThreadRow>) -> Vec<ThreadRow> {
    let mut sums: BTreeMap<(String, ThreadKind, String), ThreadRow> = BTreeMap::new();
    for mut row in rows {
        // Time that belongs to no thread keeps its name.
        let is_of_threads = row.kind == ThreadKind::Thread && (row.pid != Some(0) || !row.cgroup.is_empty());
        if is_of_threads {
            row.comm.clear();
        }
        let key = (row.cgroup.clone(), row.kind, row.comm.clone());
        match sums.get_mut(&key) {
            Some(sum) => sum.add(&row),
            None => drop(sums.insert(key, row)),
        }
    }
    sums.into_values().collect()
}

fn find(profile: &Profile, options: &ThreadsOptions) -> Result<(ScopeTotals, Vec<ThreadRow>)> {
    let scope = scope(profile, options.select.region.as_deref())?;
    let mut threads: BTreeMap<u32, ThreadRow> = BTreeMap::new();
    for row in profile.tables.threads.iter().filter(|row| scope.contains(row.region)) {
        let thread = threads.entry(row.thread).or_insert(ThreadRow {
            comm: String::new(),
            kind: row.kind,
            pid: Some(row.pid),
            tgid: Some(row.tgid),
            threads: 1,
            self_ticks: 0,
            user_ticks: 0,
            kernel_ticks: 0,
            switches_in: 0,
            cgroup: String::new(),
        });
        thread.comm.clone_from(&row.comm);
        thread.self_ticks = thread.self_ticks.saturating_add(row.self_ticks.get());
        thread.user_ticks = thread.user_ticks.saturating_add(row.user_ticks.get());
        thread.switches_in = thread.switches_in.saturating_add(row.switches_in);
    }
    for row in profile.tables.thread_cgroups.iter().filter(|row| scope.contains(row.region)) {
        if let Some(thread) = threads.get_mut(&row.thread) {
            thread.cgroup.clone_from(&row.cgroup);
        }
    }
    let mut rows: Vec<ThreadRow> = threads.into_values().collect();
    if options.by_cgroup {
        rows = by_cgroup(rows);
    }
    if options.by_comm {
        let mut by_comm: BTreeMap<(String, ThreadKind), ThreadRow> = BTreeMap::new();
        for row in rows {
            let key = (row.comm.clone(), row.kind);
            let Some(sum) = by_comm.get_mut(&key) else {
                by_comm.insert(key, row);
                continue;
            };
            sum.add(&row);
            if sum.cgroup != row.cgroup {
                sum.cgroup.clear();
            }
        }
        rows = by_comm.into_values().collect();
    }
    rows.iter_mut().for_each(|row| row.kernel_ticks = row.self_ticks.saturating_sub(row.user_ticks));
    rows.sort_by(|a, b| {
        b.self_ticks.cmp(&a.self_ticks).then_with(|| (&a.comm, a.pid).cmp(&(&b.comm, b.pid)))
    });
    Ok((scope.totals(profile), rows))
}

/// Message for a profile whose threads have no known cgroup.
const NO_CGROUPS: &str =
    "This profile has no cgroups: those of the running kernel (`kerntune record --live`) have them.\n";

impl Report for ThreadsOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let region = self.select.region.as_deref();
        let (totals, rows) = find(profile, self)?;
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("busy", "What code took.", totals.busy_ticks.get());
        sampled::add(&mut document, profile);
        document.text(header(profile, &totals, region) + "\n");
        let unit = TickUnit::of(profile).unit(rows.iter().map(|row| row.self_ticks).max().unwrap_or(0));
        // Switches come from another source than samples, and not by thread.
        let measured = !sampled::is(profile);
        let number = |number: fn(&ThreadRow) -> Option<u32>| {
            move |row: &ThreadRow| {
                let number = number(row).filter(|_| row.kind != ThreadKind::Interrupt);
                number.map_or(String::new(), |number| number.to_string())
            }
        };
        let has_cgroups = rows.iter().any(|row| !row.cgroup.is_empty());
        if self.by_cgroup && !has_cgroups {
            document.text(NO_CGROUPS);
        }
        let is_joined = self.by_comm || self.by_cgroup;
        let mut columns = Columns::<ThreadRow>::new();
        columns.add("threads", "Threads of the row.", |row| row.threads).head("threads").only_if(is_joined);
        columns
            .add("pid", "Id of the thread; null with `--by-comm` or `--by-cgroup` for several.", |row| {
                row.pid
            })
            .head("pid")
            .only_if(!is_joined)
            .text(number(|row| row.pid));
        columns
            .add("tgid", "Id of its process; null for threads of several.", |row| row.tgid)
            .head("tgid")
            .only_if(!self.by_cgroup)
            .text(number(|row| row.tgid));
        columns
            .add("kind", "`thread`, `interrupt` (all interrupts together) or `idle`.", |row| {
                row.kind.as_str()
            })
            .head("kind");
        columns.add("self", "What its code took.", |row| row.self_ticks).head("net").unit(unit);
        columns
            .add("kernel", "What its code in the kernel took.", |row| row.kernel_ticks)
            .head("kernel")
            .unit(unit);
        columns.add("user", "What its user code took.", |row| row.user_ticks).head("user").unit(unit);
        columns.share("% net", totals.busy_ticks.get(), |row| row.self_ticks);
        columns
            .add("switches_in", "Switches to it.", |row| row.switches_in)
            .head("switches\nin")
            .only_if(measured);
        columns
            .text_only(format!("{} net", sampled::ERROR), move |row| {
                sampled::error_ns(profile, row.self_ticks)
            })
            .unit(unit)
            .only_if(!measured);
        columns
            .add("comm", "Name of the thread; empty for the threads of a cgroup.", |row| row.comm.clone())
            .head("name")
            .only_if(!self.by_cgroup || rows.iter().any(|row| !row.comm.is_empty()))
            .text(|row| match row.kind {
                ThreadKind::Thread if row.comm.is_empty() => String::new(),
                ThreadKind::Thread => printable(&thread_name(&row.comm)),
                ThreadKind::Interrupt | ThreadKind::Idle => printable(&row.comm),
            });
        let container = |row: &ThreadRow| container(&row.cgroup);
        columns
            .add(
                "container",
                "Container or unit that the cgroup's path names; null if it names none.",
                container,
            )
            .head("container or unit")
            .null("")
            .only_if(rows.iter().any(|row| container(row).is_some()));
        columns
            .add("cgroup", "Cgroup of its threads; null if unknown, or if they are of several.", |row| {
                Some(row.cgroup.clone()).filter(|cgroup| !cgroup.is_empty())
            })
            .head("cgroup")
            .null("")
            .only_if(has_cgroups);
        document.table(
            Table::new("threads", rows, columns)
                .help("By `self`, greatest first.")
                .noun(match (self.by_comm, self.by_cgroup) {
                    (true, _) => "names",
                    (_, true) => "cgroups",
                    _ => "threads",
                })
                .top(self.select.top),
        );
        health::add(&mut document, profile);
        Ok(document)
    }
}
