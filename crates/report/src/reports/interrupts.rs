//! Interrupts and exceptions: how many, how long, when the longest was.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::Head;
use crate::style::{printable, Role};
use crate::unit::{header, per_second, readable, run_time, seconds_at, Measure};
use crate::view::{scope, share};
use crate::{counted, health, sampled, Result, Style};
use clap::Args;
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_profile::{FunctionIndex, FunctionTotals, How, Profile, ScopeTotals, ThreadKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-interrupts/3";

/// `kerntune report PROFILE interrupts`.
pub const ENTRY: Entry = entry::<Options>("interrupts", 8);

/// Interrupts and exceptions: how many, how long, when the longest was
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// All that entered the kernel by one function.
#[derive(Debug, Serialize)]
struct Row {
    function: String,
    count: u64,
    ended: u64,
    per_second: f64,
    /// Of those that ended, from here on.
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    #[serde(rename = "avg")]
    avg_ns: u64,
    /// Of the function however it was entered.
    #[serde(rename = "longest")]
    longest_ns: u64,
    longest_at_ns: u64,
}

struct Found {
    totals: ScopeTotals,
    /// Time in interrupts, those cut short by the end of a region included.
    interrupt_ns: u64,
    interrupts: Vec<Row>,
    exceptions: Vec<Row>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let totals = scope.totals(profile);
    let by = |how: How| {
        let mut rows: BTreeMap<FunctionIndex, Row> = BTreeMap::new();
        for arc in tables.arcs.iter().filter(|arc| arc.how == how && scope.contains(arc.region)) {
            let row = rows.entry(arc.callee).or_insert_with(|| Row {
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
            row.elapsed_ns = row.elapsed_ns.saturating_add(arc.elapsed_ns.get());
        }
        for (function, row) in &mut rows {
            let mut longest = FunctionTotals::none(*function);
            let parts = tables.functions.iter();
            parts
                .filter(|part| part.function == *function && scope.contains(part.region))
                .for_each(|part| longest.add(&part.into()));
            row.longest_ns = longest.slowest_ns.get();
            row.longest_at_ns = longest.slowest_at_ns.get();
            row.per_second = per_second(row.count, totals.elapsed_ns.get());
            row.avg_ns = row.elapsed_ns.saturating_add(row.ended / 2).checked_div(row.ended).unwrap_or(0);
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.sort_by(|a, b| b.elapsed_ns.cmp(&a.elapsed_ns).then_with(|| a.function.cmp(&b.function)));
        rows
    };
    let pseudo = tables.threads.iter().filter(|row| row.kind == ThreadKind::Interrupt);
    let interrupt_ns = pseudo
        .filter(|row| scope.contains(row.region))
        .fold(0, |sum: u64, row| sum.saturating_add(row.net_ns.get()));
    Ok(Found { totals, interrupt_ns, interrupts: by(How::Interrupt), exceptions: by(How::Exception) })
}

fn table(profile: &Profile, name: &str, rows: &[Row], busy: u64) -> Columns {
    let one = Measure::of(profile).one().name();
    let unit = Measure::of(profile).row_unit(rows.iter().map(|row| row.elapsed_ns).max().unwrap_or(0));
    let mut table = Columns::new([
        (name, Side::Right),
        ("per\nsecond", Side::Right),
        (format!("elapsed\n{}", unit.name()).as_str(), Side::Right),
        ("% busy", Side::Right),
        (format!("avg\n{one}").as_str(), Side::Right),
        (format!("longest\n{one}").as_str(), Side::Right),
        ("began\nat", Side::Right),
        ("entry", Side::Left),
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

/// What sampling knows of them: time, and not how many there were.
fn sampled_table(profile: &Profile, name: &str, rows: &[Row], busy: u64) -> Columns {
    let unit = Measure::of(profile).unit(rows.iter().map(|row| row.elapsed_ns).max().unwrap_or(0));
    let mut table = Columns::new([
        (format!("elapsed\n{}", unit.name()).as_str(), Side::Right),
        (format!("{}\n{}", sampled::ERROR, unit.name()).as_str(), Side::Right),
        ("% busy", Side::Right),
        (format!("{name}\nentry").as_str(), Side::Left),
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

/// What of the counts beside a profile is of interrupts.
const COUNTED: &[&str] = &["interrupt", "softirq"];

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    #[serde(rename = "interrupt")]
    interrupt_ns: u64,
    interrupts: &'a [Row],
    exceptions: &'a [Row],
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counted: Vec<counted::JsonCounted<'a>>,
}

impl Report for Options {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        let busy = found.totals.busy_ns.get();
        let count = found.interrupts.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
        let measured = !sampled::is(profile);
        let interrupts = match (measured, sampled::error_ns(profile, found.interrupt_ns)) {
            (true, _) | (_, None) => format!("{} interrupts", grouped(count)),
            (false, Some(error)) => format!("{} {}", sampled::ERROR, readable(error)),
        };
        out += &format!(
            "{:<20} = {}  ({:>6}% of busy, {interrupts})\n",
            if Measure::of(profile) == Measure::Time { "Time in interrupts" } else { "In interrupts" },
            run_time(profile, found.interrupt_ns),
            fixed(share(found.interrupt_ns, busy), 2),
        );
        for (name, rows) in [("interrupts", &found.interrupts), ("exceptions", &found.exceptions)] {
            out.push('\n');
            match rows.is_empty() {
                true => out += &style.paint(Role::Faint, &format!("no {name}\n")),
                false if measured => out += &table(profile, name, rows, busy).render(style),
                false => out += &sampled_table(profile, name, rows, busy).render(style),
            }
        }
        out += &counted::text(profile, COUNTED, crate::TOP, style);
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ns.get(),
            busy_ns: found.totals.busy_ns.get(),
            interrupt_ns: found.interrupt_ns,
            interrupts: &found.interrupts,
            exceptions: &found.exceptions,
            sampled: sampled::json(profile),
            counted: counted::json(profile, COUNTED),
        })
    }
}
