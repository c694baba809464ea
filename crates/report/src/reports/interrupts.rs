//! Interrupts and exceptions: counts, durations, and the time of the longest.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::unit::{header, per_second, readable, run_time, seconds_at, TickUnit};
use crate::view::scope;
use kerntune_table::share;
use crate::{counted, health, sampled, Result, Style};
use clap::Args;
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_profile::{CallKind, FunctionIndex, FunctionTotals, Profile, ScopeTotals, ThreadKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-interrupts/3";

/// Registry entry of `kerntune report PROFILE interrupts`.
pub const ENTRY: Entry = entry::<InterruptsOptions>("interrupts", 8);

/// Interrupts and exceptions: counts, durations, and the time of the longest
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct InterruptsOptions {
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// Kernel entries through one function.
#[derive(Debug, Serialize)]
struct InterruptRow {
    function: String,
    count: u64,
    ended: u64,
    per_second: f64,
    /// This and the following times are of the entries that ended.
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    #[serde(rename = "avg")]
    avg_ns: u64,
    /// Longest call of the function, however it was entered.
    #[serde(rename = "longest")]
    longest_ns: u64,
    longest_at_ns: u64,
}

struct InterruptTables {
    totals: ScopeTotals,
    /// Time in interrupts, including those cut off by the end of a region.
    interrupt_ns: u64,
    interrupts: Vec<InterruptRow>,
    exceptions: Vec<InterruptRow>,
}

fn find(profile: &Profile, options: &InterruptsOptions) -> Result<InterruptTables> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let totals = scope.totals(profile);
    let by = |how: CallKind| {
        let mut rows: BTreeMap<FunctionIndex, InterruptRow> = BTreeMap::new();
        for arc in tables.arcs.iter().filter(|arc| arc.how == how && scope.contains(arc.region)) {
            let row = rows.entry(arc.callee).or_insert_with(|| InterruptRow {
                function: tables.name(arc.callee).into(),
                count: 0,
                ended: 0,
                per_second: 0.0,
                elapsed_ns: 0,
                avg_ns: 0,
                longest_ns: 0,
                longest_at_ns: 0,
            });
            row.count = row.count.saturating_add(arc.calls);
            row.ended = row.ended.saturating_add(arc.ended);
            row.elapsed_ns = row.elapsed_ns.saturating_add(arc.total_ticks.get());
        }
        for (function, row) in &mut rows {
            let mut longest = FunctionTotals::none(*function);
            let parts = tables.functions.iter();
            parts
                .filter(|part| part.function == *function && scope.contains(part.region))
                .for_each(|part| longest.add(&part.into()));
            row.longest_ns = longest.slowest_ticks.get();
            row.longest_at_ns = longest.slowest_at_ticks.get();
            row.per_second = per_second(row.count, totals.elapsed_ticks.get());
            row.avg_ns = row.elapsed_ns.saturating_add(row.ended / 2).checked_div(row.ended).unwrap_or(0);
        }
        let mut rows: Vec<InterruptRow> = rows.into_values().collect();
        rows.sort_by(|a, b| b.elapsed_ns.cmp(&a.elapsed_ns).then_with(|| a.function.cmp(&b.function)));
        rows
    };
    let pseudo = tables.threads.iter().filter(|row| row.kind == ThreadKind::Interrupt);
    let interrupt_ns = pseudo
        .filter(|row| scope.contains(row.region))
        .fold(0, |sum: u64, row| sum.saturating_add(row.self_ticks.get()));
    Ok(InterruptTables {
        totals,
        interrupt_ns,
        interrupts: by(CallKind::Interrupt),
        exceptions: by(CallKind::Exception),
    })
}

fn table(profile: &Profile, name: &str, rows: &[InterruptRow], busy: u64) -> TableBuilder {
    let one = TickUnit::of(profile).smallest_unit().name();
    let unit = TickUnit::of(profile).row_unit(rows.iter().map(|row| row.elapsed_ns).max().unwrap_or(0));
    let mut table = TableBuilder::new([
        (name, Alignment::Right),
        ("per\nsecond", Alignment::Right),
        (format!("elapsed\n{}", unit.name()).as_str(), Alignment::Right),
        ("% busy", Alignment::Right),
        (format!("avg\n{one}").as_str(), Alignment::Right),
        (format!("longest\n{one}").as_str(), Alignment::Right),
        ("began\nat", Alignment::Right),
        ("entry", Alignment::Left),
    ]);
    for row in rows {
        table.row([
            grouped(row.count).into(),
            figure(row.per_second).into(),
            unit.format(row.elapsed_ns).into(),
            fixed(share(row.elapsed_ns, busy), 2).into(),
            grouped(row.avg_ns).into(),
            grouped(row.longest_ns).into(),
            seconds_at(row.longest_at_ns).into(),
            printable(&row.function).into(),
        ]);
    }
    table
}

/// Builds the table of a sampled profile: times without counts.
fn sampled_table(profile: &Profile, name: &str, rows: &[InterruptRow], busy: u64) -> TableBuilder {
    let unit = TickUnit::of(profile).unit(rows.iter().map(|row| row.elapsed_ns).max().unwrap_or(0));
    let mut table = TableBuilder::new([
        (format!("elapsed\n{}", unit.name()).as_str(), Alignment::Right),
        (format!("{}\n{}", sampled::ERROR, unit.name()).as_str(), Alignment::Right),
        ("% busy", Alignment::Right),
        (format!("{name}\nentry").as_str(), Alignment::Left),
    ]);
    for row in rows {
        table.row([
            unit.format(row.elapsed_ns).into(),
            sampled::error(profile, row.elapsed_ns, unit).into(),
            fixed(share(row.elapsed_ns, busy), 2).into(),
            printable(&row.function).into(),
        ]);
    }
    table
}

/// Kinds of running kernel counts that concern interrupts.
const COUNT_KINDS: &[&str] = &["interrupt", "softirq"];

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct InterruptsReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    #[serde(rename = "interrupt")]
    interrupt_ns: u64,
    interrupts: &'a [InterruptRow],
    exceptions: &'a [InterruptRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counted: Vec<counted::JsonCounted<'a>>,
}

impl Report for InterruptsOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        let busy = found.totals.busy_ticks.get();
        let count = found.interrupts.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
        let measured = !sampled::is(profile);
        let interrupts = match (measured, sampled::error_ns(profile, found.interrupt_ns)) {
            (true, _) | (_, None) => format!("{} interrupts", grouped(count)),
            (false, Some(error)) => format!("{} {}", sampled::ERROR, readable(error)),
        };
        out += &format!(
            "{:<20} = {}  ({:>6}% of busy, {interrupts})\n",
            if TickUnit::of(profile) == TickUnit::Time { "Time in interrupts" } else { "In interrupts" },
            run_time(profile, found.interrupt_ns),
            fixed(share(found.interrupt_ns, busy), 2),
        );
        for (name, rows) in [("interrupts", &found.interrupts), ("exceptions", &found.exceptions)] {
            out.push('\n');
            match rows.is_empty() {
                true => out += &style.paint(TextRole::Faint, &format!("no {name}\n")),
                false if measured => out += &table(profile, name, rows, busy).render(style),
                false => out += &sampled_table(profile, name, rows, busy).render(style),
            }
        }
        out += &counted::text(profile, COUNT_KINDS, crate::DEFAULT_ROWS, style);
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        crate::to_json(&InterruptsReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            busy_ticks: found.totals.busy_ticks.get(),
            interrupt_ns: found.interrupt_ns,
            interrupts: &found.interrupts,
            exceptions: &found.exceptions,
            sampled: sampled::json(profile),
            counted: counted::json(profile, COUNT_KINDS),
        })
    }
}
