//! Counts of the running kernel (`/proc`, perf) beside a profile's tables, by kind and source.

use crate::unit::{per_second, readable};
use kerntune_profile::{CounterTotal, Profile};
use kerntune_table::columns::{Alignment, TableBuilder};
use kerntune_table::number::{figure, grouped};
use kerntune_table::{printable, Style, TextRole};
use kerntune_table::{Columns, Document, Table};
use serde::Serialize;

/// Count of the running kernel, for JSON.
#[derive(Debug, Serialize)]
pub(crate) struct JsonCounted<'a> {
    kind: &'a str,
    name: &'a str,
    count: u64,
    per_second: f64,
    source: &'a str,
}

/// Returns the counts of these kinds, greatest first.
fn of<'a>(profile: &'a Profile, kinds: &[&str]) -> Vec<&'a CounterTotal> {
    let all = profile.manifest.counted.iter();
    let mut rows: Vec<&CounterTotal> = all.filter(|row| kinds.contains(&row.kind.as_str())).collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cmp(b)));
    rows
}

/// Returns the wall-clock time in which the counts were taken, in ns.
fn wall(profile: &Profile) -> u64 {
    profile
        .manifest
        .sampled
        .as_ref()
        .map_or(profile.manifest.elapsed_ticks.get(), |sampled| sampled.wall_ns.get())
}

/// Adds the counts of these kinds as the table `counted`; without counts there is none.
pub(crate) fn add<'a>(document: &mut Document<'a>, profile: &'a Profile, kinds: &[&str]) {
    let rows = of(profile, kinds);
    let wall = wall(profile);
    let is_time = |row: &CounterTotal| row.kind == "time";
    let mut columns = Columns::<&CounterTotal>::new();
    columns.add("kind", "Kind of the count.", |row| row.kind.as_str());
    columns
        .add("count", "Count; ns for the kind `time`.", |row| row.count)
        .head("counted")
        .text(move |row| if is_time(row) { readable(row.count) } else { grouped(row.count) });
    columns
        .add("per_second", "Count per second.", move |row| per_second(row.count, wall))
        .head("per\nsecond")
        .text(move |row| if is_time(row) { String::new() } else { figure(per_second(row.count, wall)) });
    columns.add("name", "Name of the counter.", |row| row.name.as_str()).head("what");
    columns.add("source", "Origin of the count.", |row| row.source.as_str()).head("source");
    let help = "Only of a running kernel: its own counts, greatest first.";
    document.table(Table::new("counted", rows, columns).help(help).optional());
}

/// Renders the counts of these kinds as a table after an empty line; empty without counts.
pub(crate) fn text(profile: &Profile, kinds: &[&str], top: usize, style: Style) -> String {
    let rows = of(profile, kinds);
    if rows.is_empty() {
        return String::new();
    }
    let mut table = TableBuilder::new([
        ("counted", Alignment::Right),
        ("per\nsecond", Alignment::Right),
        ("what", Alignment::Left),
        ("source", Alignment::Left),
    ]);
    for row in rows.iter().take(top) {
        let count = if row.kind == "time" { crate::unit::readable(row.count) } else { grouped(row.count) };
        let rate =
            if row.kind == "time" { String::new() } else { figure(per_second(row.count, wall(profile))) };
        table.row([count.into(), rate.into(), printable(&row.name).into(), printable(&row.source).into()]);
    }
    let mut out = format!("\n{}", table.render(style));
    if rows.len() > top {
        out +=
            &style.paint(TextRole::Faint, &format!("{} more (--json)\n", grouped((rows.len() - top) as u64)));
    }
    out
}

/// Returns the counts of these kinds for JSON.
pub(crate) fn json<'a>(profile: &'a Profile, kinds: &[&str]) -> Vec<JsonCounted<'a>> {
    let wall = wall(profile);
    let row = |row: &'a CounterTotal| JsonCounted {
        kind: &row.kind,
        name: &row.name,
        count: row.count,
        per_second: per_second(row.count, wall),
        source: &row.source,
    };
    of(profile, kinds).into_iter().map(row).collect()
}
