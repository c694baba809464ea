//! Whose time it was: threads, interrupts and idle tasks.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::Head;
use crate::style::{printable, Role};
use crate::unit::{header, Measure};
use crate::view::{scope, share};
use crate::{health, sampled, Result, Style};
use clap::Args;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{thread_name, Profile, ScopeTotals, ThreadKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-threads/2";

/// `kerntune report PROFILE threads`.
pub const ENTRY: Entry = entry::<Options>("threads", 7);

/// Whose time it was
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Show all threads of one name in one row
    #[arg(long)]
    pub by_comm: bool,
    /// Show at most N rows [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Row {
    comm: String,
    kind: ThreadKind,
    /// None where a row is several threads.
    pid: Option<u32>,
    tgid: Option<u32>,
    threads: u64,
    #[serde(rename = "self")]
    net_ns: u64,
    #[serde(rename = "user")]
    user_ns: u64,
    #[serde(rename = "kernel")]
    kernel_ns: u64,
    switches_in: u64,
}

fn find(profile: &Profile, options: &Options) -> Result<(ScopeTotals, Vec<Row>)> {
    let scope = scope(profile, options.region.as_deref())?;
    let mut threads: BTreeMap<u32, Row> = BTreeMap::new();
    for row in profile.tables.threads.iter().filter(|row| scope.contains(row.region)) {
        let thread = threads.entry(row.thread).or_insert(Row {
            comm: String::new(),
            kind: row.kind,
            pid: Some(row.pid),
            tgid: Some(row.tgid),
            threads: 1,
            net_ns: 0,
            user_ns: 0,
            kernel_ns: 0,
            switches_in: 0,
        });
        thread.comm.clone_from(&row.comm);
        thread.net_ns = thread.net_ns.saturating_add(row.net_ns.get());
        thread.user_ns = thread.user_ns.saturating_add(row.user_ns.get());
        thread.switches_in = thread.switches_in.saturating_add(row.switches_in);
    }
    let mut rows: Vec<Row> = threads.into_values().collect();
    if options.by_comm {
        let mut by_comm: BTreeMap<(String, ThreadKind), Row> = BTreeMap::new();
        for row in rows {
            let key = (row.comm.clone(), row.kind);
            let Some(sum) = by_comm.get_mut(&key) else {
                by_comm.insert(key, row);
                continue;
            };
            (sum.pid, sum.tgid) = (None, sum.tgid.filter(|tgid| Some(*tgid) == row.tgid));
            sum.threads += 1;
            sum.net_ns = sum.net_ns.saturating_add(row.net_ns);
            sum.user_ns = sum.user_ns.saturating_add(row.user_ns);
            sum.switches_in = sum.switches_in.saturating_add(row.switches_in);
        }
        rows = by_comm.into_values().collect();
    }
    rows.iter_mut().for_each(|row| row.kernel_ns = row.net_ns.saturating_sub(row.user_ns));
    rows.sort_by(|a, b| b.net_ns.cmp(&a.net_ns).then_with(|| (&a.comm, a.pid).cmp(&(&b.comm, b.pid))));
    Ok((scope.totals(profile), rows))
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    threads: &'a [Row],
}

impl Report for Options {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let (totals, rows) = find(profile, self)?;
        let mut out = header(profile, &totals, self.region.as_deref());
        out.push('\n');
        let unit = Measure::of(profile).unit(rows.iter().map(|row| row.net_ns).max().unwrap_or(0));
        let head = |head: &str| format!("{head}\n{}", unit.name());
        // Switches are counted by another source than samples, and not by thread.
        let measured = !sampled::is(profile);
        let error = head(&format!("{} net", sampled::ERROR));
        let who = if self.by_comm { ("threads", "tgid") } else { ("pid", "tgid") };
        let mut table = Columns::new([
            (who.0, Side::Right),
            (who.1, Side::Right),
            ("kind", Side::Left),
            (head("net").as_str(), Side::Right),
            (head("kernel").as_str(), Side::Right),
            (head("user").as_str(), Side::Right),
            ("% net", Side::Right),
            (if measured { "switches\nin" } else { &error }, Side::Right),
            ("name", Side::Left),
        ]);
        let number = |number: Option<u32>| number.map_or(String::new(), |number| number.to_string());
        let shown = self.top.unwrap_or(crate::TOP).min(rows.len());
        for row in rows.iter().take(shown) {
            let is_thread = row.kind != ThreadKind::Interrupt;
            let first = match self.by_comm {
                true => grouped(row.threads),
                false => number(row.pid.filter(|_| is_thread)),
            };
            table.row([
                first.into(),
                number(row.tgid.filter(|_| is_thread)).into(),
                row.kind.word().into(),
                unit.format(row.net_ns).into(),
                unit.format(row.kernel_ns).into(),
                unit.format(row.user_ns).into(),
                fixed(share(row.net_ns, totals.busy_ns.get()), 2).into(),
                match measured {
                    true => grouped(row.switches_in),
                    false => sampled::error(profile, row.net_ns, unit),
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
            out += &style.paint(Role::Faint, &rest);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let (totals, rows) = find(profile, self)?;
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region),
            elapsed_ns: totals.elapsed_ns.get(),
            busy_ns: totals.busy_ns.get(),
            sampled: sampled::json(profile),
            threads: &rows[..self.top.unwrap_or(rows.len()).min(rows.len())],
        })
    }
}
