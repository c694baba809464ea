//! Context switches: counts, reasons, and pairs of threads.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::unit::{header, per_second};
use crate::view::scope;
use kerntune_table::share;
use crate::{counted, health, sampled, Result, Style};
use clap::Args;
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals, SwitchKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-switches/1";

/// Registry entry of `kerntune report PROFILE switches`.
pub const ENTRY: Entry = entry::<SwitchesOptions>("switches", 9);

/// Context switches: counts, reasons, and pairs of threads
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SwitchesOptions {
    /// Show at most N rows [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Serialize)]
struct SwitchReason {
    /// `None` if no function was open.
    reason: Option<String>,
    kind: SwitchKind,
    count: u64,
}

#[derive(Debug, Serialize)]
struct ThreadPair {
    from: String,
    to: String,
    count: u64,
    preempted: u64,
}

struct SwitchTables {
    totals: ScopeTotals,
    count: u64,
    voluntary: u64,
    preempted: u64,
    reasons: Vec<SwitchReason>,
    pairs: Vec<ThreadPair>,
}

fn find(profile: &Profile, options: &SwitchesOptions) -> Result<SwitchTables> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let mut kinds: BTreeMap<SwitchKind, u64> = BTreeMap::new();
    let mut reasons: BTreeMap<(Option<&str>, SwitchKind), u64> = BTreeMap::new();
    let mut pairs: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
    for row in tables.switches.iter().filter(|row| scope.contains(row.region)) {
        let reason = row.reason.known().map(|function| tables.name(function));
        add(kinds.entry(row.kind).or_default(), row.count);
        add(reasons.entry((reason, row.kind)).or_default(), row.count);
        let [all, preempted] = pairs.entry((&row.from, &row.to)).or_default();
        add(all, row.count);
        add(preempted, if row.kind == SwitchKind::Preempted { row.count } else { 0 });
    }
    let mut reasons: Vec<SwitchReason> = reasons
        .into_iter()
        .map(|((reason, kind), count)| SwitchReason { reason: reason.map(Into::into), kind, count })
        .collect();
    reasons.sort_by_key(|row| std::cmp::Reverse(row.count));
    let mut pairs: Vec<ThreadPair> = pairs
        .into_iter()
        .map(|((from, to), [count, preempted])| ThreadPair {
            from: from.into(),
            to: to.into(),
            count,
            preempted,
        })
        .collect();
    pairs.sort_by_key(|row| std::cmp::Reverse(row.count));
    let of = |kind| kinds.get(&kind).copied().unwrap_or(0);
    let (voluntary, preempted) = (of(SwitchKind::Voluntary), of(SwitchKind::Preempted));
    let count = voluntary.saturating_add(preempted);
    Ok(SwitchTables { totals: scope.totals(profile), count, voluntary, preempted, reasons, pairs })
}

/// Returns the wall-clock time: the sum over all CPUs is no divisor of rates.
fn wall(profile: &Profile, totals: &ScopeTotals) -> u64 {
    profile.manifest.sampled.as_ref().map_or(totals.elapsed_ticks.get(), |sampled| sampled.wall_ns.get())
}

fn more(what: &str, top: usize, all: usize, style: Style) -> String {
    match all.saturating_sub(top) {
        0 => String::new(),
        more => style.paint(TextRole::Faint, &format!("{} more {what} (--top)\n", grouped(more as u64))),
    }
}

fn reasons(found: &SwitchTables, top: usize) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("switches", Alignment::Right),
        ("%", Alignment::Right),
        ("kind", Alignment::Left),
        ("reason: called the scheduler", Alignment::Left),
    ]);
    for row in found.reasons.iter().take(top) {
        table.row([
            grouped(row.count).into(),
            fixed(share(row.count, found.count), 2).into(),
            row.kind.as_str().into(),
            printable(row.reason.as_deref().unwrap_or("[no function open]")).into(),
        ]);
    }
    table
}

fn pairs(found: &SwitchTables, top: usize) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("switches", Alignment::Right),
        ("%", Alignment::Right),
        ("preempted", Alignment::Right),
        ("from", Alignment::Left),
        ("to", Alignment::Left),
    ]);
    for row in found.pairs.iter().take(top) {
        table.row([
            grouped(row.count).into(),
            fixed(share(row.count, found.count), 2).into(),
            grouped(row.preempted).into(),
            printable(&row.from).into(),
            printable(&row.to).into(),
        ]);
    }
    table
}

/// Kinds of running kernel counts that concern switches.
const COUNT_KINDS: &[&str] = &["switch"];

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct SwitchesReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    count: u64,
    per_second: f64,
    voluntary: u64,
    preempted: u64,
    reasons: &'a [SwitchReason],
    pairs: &'a [ThreadPair],
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counted: Vec<counted::JsonCounted<'a>>,
}

impl Report for SwitchesOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let top = self.top.unwrap_or(crate::DEFAULT_ROWS);
        let mut out = header(profile, &found.totals, self.region.as_deref());
        let rate = |count| figure(per_second(count, wall(profile, &found.totals)));
        let mut line = |head: &str, count: u64| {
            let text = format!("{head:<20} = {:>13}  ({} per second", grouped(count), rate(count));
            let of = fixed(share(count, found.count), 2);
            out += &if head == "Context switches" { text + ")\n" } else { format!("{text}, {of}%)\n") };
        };
        line("Context switches", found.count);
        line("Voluntary", found.voluntary);
        line("Preempted", found.preempted);
        // Rows of a sampled profile are scaled up from a part of the switches.
        if profile.manifest.sampled.is_some() {
            out += &style.paint(
                TextRole::Faint,
                "All were counted; kinds, reasons and pairs are of a sample, scaled up.\n",
            );
        }
        if found.count > 0 {
            out.push('\n');
            out += &reasons(&found, top).render(style);
            out += &more("reasons", top, found.reasons.len(), style);
            out.push('\n');
            out += &pairs(&found, top).render(style);
            out += &more("pairs", top, found.pairs.len(), style);
        }
        out += &counted::text(profile, COUNT_KINDS, crate::DEFAULT_ROWS, style);
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        let top = |all: usize| self.top.unwrap_or(all).min(all);
        crate::to_json(&SwitchesReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            count: found.count,
            per_second: per_second(found.count, wall(profile, &found.totals)),
            voluntary: found.voluntary,
            preempted: found.preempted,
            reasons: &found.reasons[..top(found.reasons.len())],
            pairs: &found.pairs[..top(found.pairs.len())],
            sampled: sampled::json(profile),
            counted: counted::json(profile, COUNT_KINDS),
        })
    }
}
