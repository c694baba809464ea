//! What was counted beside a profile's tables, by kind and source.

use crate::columns::{Columns, Side};
use crate::style::{printable, Role, Style};
use crate::unit::per_second;
use kerntune_compare::number::{figure, grouped};
use kerntune_profile::{Counted, Profile};
use serde::Serialize;

/// A count for JSON.
#[derive(Debug, Serialize)]
pub(crate) struct JsonCounted<'a> {
    kind: &'a str,
    name: &'a str,
    count: u64,
    per_second: f64,
    source: &'a str,
}

/// Those of these kinds, greatest first.
fn of<'a>(profile: &'a Profile, kinds: &[&str]) -> Vec<&'a Counted> {
    let all = profile.manifest.counted.iter();
    let mut rows: Vec<&Counted> = all.filter(|row| kinds.contains(&row.kind.as_str())).collect();
    rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cmp(b)));
    rows
}

/// Time in which they were counted, ns.
fn wall(profile: &Profile) -> u64 {
    profile
        .manifest
        .sampled
        .as_ref()
        .map_or(profile.manifest.elapsed_ns.get(), |sampled| sampled.wall_ns.get())
}

/// Those of these kinds as a table after an empty line; nothing if there are none.
pub(crate) fn text(profile: &Profile, kinds: &[&str], top: usize, style: Style) -> String {
    let rows = of(profile, kinds);
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Columns::new([
        ("counted", Side::Right),
        ("per\nsecond", Side::Right),
        ("what", Side::Left),
        ("source", Side::Left),
    ]);
    for row in rows.iter().take(top) {
        let count = if row.kind == "time" { crate::unit::readable(row.count) } else { grouped(row.count) };
        let rate =
            if row.kind == "time" { String::new() } else { figure(per_second(row.count, wall(profile))) };
        table.row([count.into(), rate.into(), printable(&row.name).into(), printable(&row.source).into()]);
    }
    let mut out = format!("\n{}", table.render(style));
    if rows.len() > top {
        out += &style.paint(Role::Faint, &format!("{} more (--json)\n", grouped((rows.len() - top) as u64)));
    }
    out
}

/// The same for JSON.
pub(crate) fn json<'a>(profile: &'a Profile, kinds: &[&str]) -> Vec<JsonCounted<'a>> {
    let wall = wall(profile);
    let row = |row: &'a Counted| JsonCounted {
        kind: &row.kind,
        name: &row.name,
        count: row.count,
        per_second: per_second(row.count, wall),
        source: &row.source,
    };
    of(profile, kinds).into_iter().map(row).collect()
}
