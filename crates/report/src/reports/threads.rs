//! Time by thread, with interrupts and idle tasks.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::unit::{header, TickUnit};
use crate::view::scope;
use kerntune_table::share;
use crate::{health, sampled, Result, Style};
use clap::Args;
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{thread_name, Profile, ScopeTotals, ThreadKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-threads/2";

/// Registry entry of `kerntune report PROFILE threads`.
pub const ENTRY: Entry = entry::<ThreadsOptions>("threads", 7);

/// Time by thread
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ThreadsOptions {
    /// Show all threads of one name in one row
    #[arg(long)]
    pub by_comm: bool,
    /// Show at most N rows [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct ThreadRow {
    comm: String,
    kind: ThreadKind,
    /// `None` if the row combines several threads.
    pid: Option<u32>,
    tgid: Option<u32>,
    threads: u64,
    #[serde(rename = "self")]
    self_ticks: u64,
    #[serde(rename = "user")]
    user_ticks: u64,
    #[serde(rename = "kernel")]
    kernel_ns: u64,
    switches_in: u64,
}

fn find(profile: &Profile, options: &ThreadsOptions) -> Result<(ScopeTotals, Vec<ThreadRow>)> {
    let scope = scope(profile, options.region.as_deref())?;
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
            kernel_ns: 0,
            switches_in: 0,
        });
        thread.comm.clone_from(&row.comm);
        thread.self_ticks = thread.self_ticks.saturating_add(row.self_ticks.get());
        thread.user_ticks = thread.user_ticks.saturating_add(row.user_ticks.get());
        thread.switches_in = thread.switches_in.saturating_add(row.switches_in);
    }
    let mut rows: Vec<ThreadRow> = threads.into_values().collect();
    if options.by_comm {
        let mut by_comm: BTreeMap<(String, ThreadKind), ThreadRow> = BTreeMap::new();
        for row in rows {
            let key = (row.comm.clone(), row.kind);
            let Some(sum) = by_comm.get_mut(&key) else {
                by_comm.insert(key, row);
                continue;
            };
            (sum.pid, sum.tgid) = (None, sum.tgid.filter(|tgid| Some(*tgid) == row.tgid));
            sum.threads += 1;
            sum.self_ticks = sum.self_ticks.saturating_add(row.self_ticks);
            sum.user_ticks = sum.user_ticks.saturating_add(row.user_ticks);
            sum.switches_in = sum.switches_in.saturating_add(row.switches_in);
        }
        rows = by_comm.into_values().collect();
    }
    rows.iter_mut().for_each(|row| row.kernel_ns = row.self_ticks.saturating_sub(row.user_ticks));
    rows.sort_by(|a, b| {
        b.self_ticks.cmp(&a.self_ticks).then_with(|| (&a.comm, a.pid).cmp(&(&b.comm, b.pid)))
    });
    Ok((scope.totals(profile), rows))
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct ThreadsReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    threads: &'a [ThreadRow],
}

impl Report for ThreadsOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let (totals, rows) = find(profile, self)?;
        let mut out = header(profile, &totals, self.region.as_deref());
        out.push('\n');
        let unit = TickUnit::of(profile).unit(rows.iter().map(|row| row.self_ticks).max().unwrap_or(0));
        let head = |head: &str| format!("{head}\n{}", unit.name());
        // Switches come from another source than samples, and not by thread.
        let measured = !sampled::is(profile);
        let error = head(&format!("{} net", sampled::ERROR));
        let who = if self.by_comm { ("threads", "tgid") } else { ("pid", "tgid") };
        let mut table = TableBuilder::new([
            (who.0, Alignment::Right),
            (who.1, Alignment::Right),
            ("kind", Alignment::Left),
            (head("net").as_str(), Alignment::Right),
            (head("kernel").as_str(), Alignment::Right),
            (head("user").as_str(), Alignment::Right),
            ("% net", Alignment::Right),
            (if measured { "switches\nin" } else { &error }, Alignment::Right),
            ("name", Alignment::Left),
        ]);
        let number = |number: Option<u32>| number.map_or(String::new(), |number| number.to_string());
        let shown = self.top.unwrap_or(crate::DEFAULT_ROWS).min(rows.len());
        for row in rows.iter().take(shown) {
            let is_thread = row.kind != ThreadKind::Interrupt;
            let first = match self.by_comm {
                true => grouped(row.threads),
                false => number(row.pid.filter(|_| is_thread)),
            };
            table.row([
                first.into(),
                number(row.tgid.filter(|_| is_thread)).into(),
                row.kind.as_str().into(),
                unit.format(row.self_ticks).into(),
                unit.format(row.kernel_ns).into(),
                unit.format(row.user_ticks).into(),
                fixed(share(row.self_ticks, totals.busy_ticks.get()), 2).into(),
                match measured {
                    true => grouped(row.switches_in),
                    false => sampled::error(profile, row.self_ticks, unit),
                }
                .into(),
                match row.kind {
                    ThreadKind::Thread => printable(&thread_name(&row.comm)),
                    ThreadKind::Interrupt | ThreadKind::Idle => printable(&row.comm),
                }
                .into(),
            ]);
        }
        out += &table.render(style);
        if shown < rows.len() {
            let what = if self.by_comm { "names" } else { "threads" };
            let rest = format!("{} more {what} (--top)\n", grouped((rows.len() - shown) as u64));
            out += &style.paint(TextRole::Faint, &rest);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let (totals, rows) = find(profile, self)?;
        crate::to_json(&ThreadsReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: totals.elapsed_ticks.get(),
            busy_ticks: totals.busy_ticks.get(),
            sampled: sampled::json(profile),
            threads: &rows[..self.top.unwrap_or(rows.len()).min(rows.len())],
        })
    }
}
