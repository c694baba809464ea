//! Context switches: counts, reasons, and pairs of threads.

use super::{entry, Entry, Report, Selection};
use crate::unit::{header, per_second};
use crate::view::scope;
use crate::{counted, head, health, sampled, Result};
use clap::Args;
use kerntune_profile::{Profile, SwitchKind};
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_table::{share, Columns, Document, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-switches/1";

/// Registry entry of `kerntune report PROFILE switches`.
pub const ENTRY: Entry = entry::<SwitchesOptions>("switches", 9);

/// Description of the JSON form.
const ABOUT: &str = "Context switches.";

/// Kinds of running kernel counts that concern switches.
const COUNT_KINDS: &[&str] = &["switch"];

/// Context switches: counts, reasons, and pairs of threads
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SwitchesOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

struct SwitchReason<'a> {
    /// `None` if no function was open.
    reason: Option<&'a str>,
    kind: SwitchKind,
    count: u64,
}

struct ThreadPair<'a> {
    from: &'a str,
    to: &'a str,
    count: u64,
    preempted: u64,
}

#[derive(Default)]
struct SwitchTables<'a> {
    kinds: BTreeMap<SwitchKind, u64>,
    /// Most switches first.
    reasons: Vec<SwitchReason<'a>>,
    /// Most switches first.
    pairs: Vec<ThreadPair<'a>>,
}

fn find<'a>(profile: &'a Profile, region: Option<&str>) -> Result<SwitchTables<'a>> {
    let tables = &profile.tables;
    let scope = scope(profile, region)?;
    let mut found = SwitchTables::default();
    let mut reasons: BTreeMap<(Option<&str>, SwitchKind), u64> = BTreeMap::new();
    let mut pairs: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
    for row in tables.switches.iter().filter(|row| scope.contains(row.region)) {
        let reason = row.reason.known().map(|function| tables.name(function));
        add(found.kinds.entry(row.kind).or_default(), row.count);
        add(reasons.entry((reason, row.kind)).or_default(), row.count);
        let [all, preempted] = pairs.entry((&row.from, &row.to)).or_default();
        add(all, row.count);
        add(preempted, if row.kind == SwitchKind::Preempted { row.count } else { 0 });
    }
    let reason = |((reason, kind), count)| SwitchReason { reason, kind, count };
    found.reasons.extend(reasons.into_iter().map(reason));
    found.reasons.sort_by_key(|row| Reverse(row.count));
    let pair = |((from, to), [count, preempted]): (_, [u64; 2])| ThreadPair { from, to, count, preempted };
    found.pairs.extend(pairs.into_iter().map(pair));
    found.pairs.sort_by_key(|row| Reverse(row.count));
    Ok(found)
}

impl Report for SwitchesOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let Selection { top, region } = &self.select;
        let totals = scope(profile, region.as_deref())?.totals(profile);
        let SwitchTables { kinds, reasons, pairs } = find(profile, region.as_deref())?;
        let [voluntary, preempted] =
            [SwitchKind::Voluntary, SwitchKind::Preempted].map(|kind| kinds.get(&kind).copied().unwrap_or(0));
        let count = voluntary.saturating_add(preempted);
        // The sum over all CPUs is no divisor of rates.
        let wall = profile.manifest.sampled.as_ref().map_or(totals.elapsed_ticks, |sampled| sampled.wall_ns);
        let rate = |count| per_second(count, wall.get());
        let mut document = head::document(SCHEMA, ABOUT, profile, region.as_deref(), None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("count", "Switches.", count);
        document.field("per_second", "Switches per second.", rate(count));
        document.field("voluntary", "Switches in which the thread called the scheduler to wait.", voluntary);
        document.field("preempted", "Switches in which the thread could have gone on.", preempted);
        sampled::add(&mut document, profile);
        document.text(header(profile, &totals, region.as_deref()));
        let mut line = |label: &str, part: u64, percent: &str| {
            let rate = figure(rate(part));
            document.line(label, format!("{:>13}  ({rate} per second{percent})", grouped(part)));
        };
        let percent = |part| format!(", {}%", fixed(share(part, count), 2));
        line("Context switches", count, "");
        line("Voluntary", voluntary, &percent(voluntary));
        line("Preempted", preempted, &percent(preempted));
        // Rows of a sampled profile are scaled up from a part of the switches.
        if sampled::is(profile) {
            document.note("All were counted; kinds, reasons and pairs are of a sample, scaled up.");
        }
        let mut columns = Columns::<SwitchReason>::new();
        columns.add("count", "Switches.", |row| row.count).head("switches");
        columns.share("%", count, |row| row.count);
        columns.add("kind", "`voluntary` or `preempted`.", |row| row.kind.as_str()).head("kind");
        columns
            .add("reason", "Function that called the scheduler; null if none was open.", |row| row.reason)
            .head("reason: called the scheduler")
            .null("[no function open]");
        document.table(
            Table::new("reasons", reasons, columns)
                .help("Most switches first.")
                .noun("reasons")
                .top(*top)
                .hidden_if_empty(),
        );
        let mut columns = Columns::<ThreadPair>::new();
        columns.add("count", "Switches.", |row| row.count).head("switches");
        columns.share("%", count, |row| row.count);
        columns
            .add("preempted", "Those of them that preempted a thread.", |row| row.preempted)
            .head("preempted");
        columns.add("from", "Name of the thread before.", |row| row.from).head("from");
        columns.add("to", "Name of the thread after.", |row| row.to).head("to");
        document.table(
            Table::new("pairs", pairs, columns)
                .help("Most switches first.")
                .noun("pairs")
                .top(*top)
                .hidden_if_empty(),
        );
        counted::add(&mut document, profile, COUNT_KINDS, COUNT_KINDS, *top);
        health::add(&mut document, profile);
        Ok(document)
    }
}
