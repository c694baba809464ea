//! Interrupts and exceptions: counts, durations, and the time of the longest.

use super::{entry, Entry, Report, Selection};
use crate::unit::{header, per_second, readable, run_time, seconds_at, TickUnit};
use crate::view::scope;
use crate::{counted, head, health, sampled, Result};
use clap::Args;
use kerntune_profile::{CallKind, FunctionIndex, FunctionTotals, Profile, ScopeTotals, ThreadKind};
use kerntune_table::number::{fixed, grouped};
use kerntune_table::{share, Columns, Document, Table};
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-interrupts/3";

/// Registry entry of `kerntune report PROFILE interrupts`.
pub const ENTRY: Entry = entry::<InterruptsOptions>("interrupts", 8);

/// Description of the JSON form.
const ABOUT: &str = "Interrupts and exceptions by the function that they enter by.";

/// Kinds of running kernel counts that concern interrupts.
const COUNT_KINDS: &[&str] = &["interrupt", "softirq"];

/// Interrupts and exceptions: counts, durations, and the time of the longest
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct InterruptsOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

/// Kernel entries through one function.
#[derive(Default)]
struct InterruptRow {
    function: String,
    count: u64,
    ended: u64,
    /// Of the entries that ended.
    total_ticks: u64,
    /// Longest call of the function, however it was entered.
    longest_ticks: u64,
    longest_at_ns: u64,
}

struct InterruptTables {
    totals: ScopeTotals,
    /// Time in interrupts, including those cut off by the end of a region.
    interrupt_ticks: u64,
    interrupts: Vec<InterruptRow>,
    exceptions: Vec<InterruptRow>,
}

fn find(profile: &Profile, region: Option<&str>) -> Result<InterruptTables> {
    let tables = &profile.tables;
    let scope = scope(profile, region)?;
    let totals = scope.totals(profile);
    let by = |how: CallKind| {
        let mut rows: BTreeMap<FunctionIndex, InterruptRow> = BTreeMap::new();
        for arc in tables.arcs.iter().filter(|arc| arc.how == how && scope.contains(arc.region)) {
            let row = rows.entry(arc.callee).or_insert_with(|| InterruptRow {
                function: tables.name(arc.callee).into(),
                ..InterruptRow::default()
            });
            row.count = row.count.saturating_add(arc.calls);
            row.ended = row.ended.saturating_add(arc.ended);
            row.total_ticks = row.total_ticks.saturating_add(arc.total_ticks.get());
        }
        for (function, row) in &mut rows {
            let mut longest = FunctionTotals::none(*function);
            let parts = tables.functions.iter();
            parts
                .filter(|part| part.function == *function && scope.contains(part.region))
                .for_each(|part| longest.add(&part.into()));
            row.longest_ticks = longest.slowest_ticks.get();
            row.longest_at_ns = longest.slowest_at_ticks.get();
        }
        let mut rows: Vec<InterruptRow> = rows.into_values().collect();
        rows.sort_by(|a, b| b.total_ticks.cmp(&a.total_ticks).then_with(|| a.function.cmp(&b.function)));
        rows
    };
    let pseudo = tables.threads.iter().filter(|row| row.kind == ThreadKind::Interrupt);
    let interrupt_ticks = pseudo
        .filter(|row| scope.contains(row.region))
        .fold(0, |sum: u64, row| sum.saturating_add(row.self_ticks.get()));
    Ok(InterruptTables {
        totals,
        interrupt_ticks,
        interrupts: by(CallKind::Interrupt),
        exceptions: by(CallKind::Exception),
    })
}

/// Adds the table `key`, whose name also heads the counts.
fn add<'a>(
    document: &mut Document<'a>,
    profile: &'a Profile,
    key: &'static str,
    rows: Vec<InterruptRow>,
    totals: &ScopeTotals,
    top: Option<usize>,
) {
    if rows.is_empty() {
        document.text("\n");
        document.note(&format!("no {key}"));
    }
    let (elapsed, busy) = (totals.elapsed_ticks.get(), totals.busy_ticks.get());
    let measured = !sampled::is(profile);
    let largest = rows.iter().map(|row| row.total_ticks).max().unwrap_or(0);
    let (unit, one) = (TickUnit::of(profile).row_unit(largest), TickUnit::of(profile).smallest_unit());
    let mut columns = Columns::<InterruptRow>::new();
    columns.add("count", "Entries.", |row| row.count).head(key).only_if(measured);
    columns.add("ended", "Entries that ended.", |row| row.ended);
    columns
        .add("per_second", "`count` per second.", move |row| per_second(row.count, elapsed))
        .head("per\nsecond")
        .only_if(measured);
    columns
        .add("elapsed", "Time of the entries that ended.", |row| row.total_ticks)
        .head("elapsed")
        .unit(unit);
    columns
        .text_only(sampled::ERROR, move |row| sampled::error_ns(profile, row.total_ticks))
        .unit(unit)
        .only_if(!measured);
    columns.share("% busy", busy, |row| row.total_ticks);
    columns
        .add("avg", "Mean time of the entries that ended.", |row| {
            row.total_ticks.saturating_add(row.ended / 2).checked_div(row.ended).unwrap_or(0)
        })
        .head("avg")
        .unit(one)
        .only_if(measured);
    columns
        .add("longest", "Longest call of the function, however it was entered.", |row| row.longest_ticks)
        .head("longest")
        .unit(one)
        .only_if(measured);
    columns
        .add("longest_at_ns", "Virtual time at which the longest call began.", |row| row.longest_at_ns)
        .head("began\nat")
        .only_if(measured)
        .text(|row| seconds_at(row.longest_at_ns));
    columns.add("function", "Function of the entry.", |row| row.function.clone()).head(if measured {
        "entry".into()
    } else {
        format!("{key}\nentry")
    });
    document.table(
        Table::new(key, rows, columns)
            .help("By `elapsed`, greatest first.")
            .noun(key)
            .top(top)
            .hidden_if_empty(),
    );
}

impl Report for InterruptsOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let Selection { top, region } = &self.select;
        let InterruptTables { totals, interrupt_ticks, interrupts, exceptions } =
            find(profile, region.as_deref())?;
        let busy = totals.busy_ticks.get();
        let mut document = head::document(SCHEMA, ABOUT, profile, region.as_deref(), None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("busy", "What code took.", busy);
        document.field(
            "interrupt",
            "What code took in interrupts, including those that had not ended.",
            interrupt_ticks,
        );
        sampled::add(&mut document, profile);
        document.text(header(profile, &totals, region.as_deref()));
        let count = interrupts.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
        let beside = match sampled::error_ns(profile, interrupt_ticks) {
            None => format!("{} interrupts", grouped(count)),
            Some(error) => format!("{} {}", sampled::ERROR, readable(error)),
        };
        let percent = fixed(share(interrupt_ticks, busy), 2);
        document.line(
            if TickUnit::of(profile) == TickUnit::Time { "Time in interrupts" } else { "In interrupts" },
            format!("{}  ({percent:>6}% of busy, {beside})", run_time(profile, interrupt_ticks)),
        );
        add(&mut document, profile, "interrupts", interrupts, &totals, *top);
        add(&mut document, profile, "exceptions", exceptions, &totals, *top);
        counted::add(&mut document, profile, COUNT_KINDS, COUNT_KINDS, *top);
        health::add(&mut document, profile);
        Ok(document)
    }
}
