//! Counts of the running kernel (`/proc`, perf) beside a profile's tables, by kind and source.

use crate::unit::{per_second, readable};
use kerntune_profile::{CounterTotal, Profile};
use kerntune_table::number::{figure, grouped};
use kerntune_table::{Columns, Document, Table};

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

/// Adds the counts of these kinds as the table `counted`; without counts there is none. Texts have
/// those of `text_kinds`, at most `top` of them.
pub(crate) fn add<'a>(
    document: &mut Document<'a>,
    profile: &'a Profile,
    kinds: &[&str],
    text_kinds: &'a [&str],
    top: Option<usize>,
) {
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
    document.table(
        Table::new("counted", rows, columns)
            .help(help)
            .top(top)
            .text_if(move |row| text_kinds.contains(&row.kind.as_str()))
            .optional(),
    );
}
