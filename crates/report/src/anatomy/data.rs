//! Cache misses of data accesses within an operation, for recordings with `--data`.

use super::{per, AnatomyView};
use crate::view::scope;
use kerntune_profile::{CallKind, Tables};
use kerntune_table::{printable, Columns, Document, Table, TextRole};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Default number of rows in text.
const SECTION_ROWS: usize = 15;

/// Misses in a model's caches: key, heading and meaning.
const MISSES: [(&str, &str, &str); 5] = [
    ("l1d_misses", "L1D", "Misses of the L1 data cache."),
    ("l2_misses", "L2", "Misses of the L2 cache."),
    ("l3_misses", "L3", "Misses of all caches."),
    ("transfers", "transfers", "Lines taken from other CPUs' caches."),
    ("dtlb_misses", "dTLB", "Misses of the first-level data TLB."),
];

/// Sums of [`MISSES`] over all calls, in that order.
type CacheMisses = [u64; MISSES.len()];

/// Path below the operation, with its misses.
type PathMisses = (Vec<String>, CacheMisses);

/// Misses by call path below the operation.
struct MissesByPath {
    total: CacheMisses,
    /// Most misses first.
    paths: Vec<PathMisses>,
}

/// Collects the misses within the operation, in the selected regions. Returns `None` for a
/// recording without them, and if another function has the operation's name, since paths consist of
/// names.
fn find(shown: &AnatomyView) -> Option<MissesByPath> {
    let tables = &shown.profile.tables;
    let name = tables.name(shown.function);
    let scope = scope(shown.profile, shown.region).ok()?;
    let namesakes = tables.symbols.iter().filter(|symbol| symbol.name == name).count();
    if tables.data_paths.is_empty() || namesakes > 1 {
        return None;
    }
    let interrupts = interrupts(tables);
    let mut total = CacheMisses::default();
    let mut paths: BTreeMap<Vec<&str>, CacheMisses> = BTreeMap::new();
    for row in tables.data_paths.iter().filter(|row| scope.contains(row.region)) {
        let Some(path) = within(&row.path, name, &interrupts) else { continue };
        let sum = paths.entry(path).or_default();
        let misses = [row.l1d_misses, row.l2_misses, row.l3_misses, row.transfers, row.dtlb_misses];
        for ((total, sum), misses) in total.iter_mut().zip(sum).zip(misses) {
            *total += misses;
            *sum += misses;
        }
    }
    let mut paths: Vec<PathMisses> = paths
        .into_iter()
        .map(|(path, misses)| (path.into_iter().map(String::from).collect(), misses))
        .collect();
    paths.sort_by(|(a, x), (b, y)| (Reverse(x), a).cmp(&(Reverse(y), b)));
    Some(MissesByPath { total, paths })
}

/// Returns the names of functions that an interrupt entered.
fn interrupts(tables: &Tables) -> BTreeSet<&str> {
    let entries = tables.arcs.iter().filter(|arc| arc.how == CallKind::Interrupt);
    entries.map(|arc| tables.name(arc.callee)).collect()
}

/// Returns the part of a path within the operation: from its outermost call that no interrupt
/// follows. `None` if the path does not pass through the operation.
fn within<'a>(path: &'a str, operation: &str, interrupts: &BTreeSet<&str>) -> Option<Vec<&'a str>> {
    let mut found: Vec<&str> = Vec::new();
    for name in path.split(';') {
        if interrupts.contains(name) {
            found.clear();
        }
        if !found.is_empty() || name == operation {
            found.push(name);
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Declares the columns of misses, in rows that `get` returns them of.
fn misses<'a, R: 'a>(calls: u64, get: impl Fn(&R) -> &CacheMisses + Copy + 'a) -> Columns<'a, R> {
    let mut columns = Columns::<R>::new();
    for (at, (key, head, help)) in MISSES.into_iter().enumerate() {
        let column = columns.add(key, help, move |row| get(row)[at]);
        column.head(head).text(move |row| per(get(row)[at], calls));
    }
    columns
}

/// Adds the misses; `data` is null for a recording without them.
pub(super) fn add<'a>(document: &mut Document<'a>, shown: &AnatomyView<'a>) {
    let (calls, data) = (shown.calls(), find(shown));
    let path_columns = || {
        let mut columns = misses(calls, |row: &PathMisses| &row.1);
        columns
            .add("path", "Functions from the operation on.", |row| row.0.clone())
            .head("path, from its end")
            .text(|row| match row.0[..] {
                [] => "total".into(),
                [..] => row.0.iter().rev().map(|name| printable(name)).collect::<Vec<_>>().join(" < "),
            })
            .role(|row| if row.0.is_empty() { TextRole::Head } else { TextRole::Plain });
        columns
    };
    let top = shown.top.unwrap_or(usize::MAX);
    let mut fields = Columns::<MissesByPath>::new();
    fields.object("total", "Sum over all paths.", misses(calls, |row: &CacheMisses| row), |data| &data.total);
    fields.records("paths", "Call paths, most misses first.", path_columns(), move |data| {
        data.paths.iter().take(top).cloned().collect()
    });
    let help =
        "Lines missed within the operation in all calls, by a model; null of a recording without `--data`.";
    document.nullable("data", help, fields, data.as_ref());
    let Some(data) = data.filter(|data| !data.paths.is_empty()) else { return };
    let model = shown.profile.manifest.model.as_deref().unwrap_or("none");
    let title = format!("Data lines missed per call (model {})", printable(model));
    let table = Table::new("", data.paths, path_columns()).foot([(Vec::new(), data.total)]);
    let table = table.title(TextRole::Head, title).top(shown.top).default_rows(SECTION_ROWS);
    document.table(table.hidden_if_empty());
    if shown.anatomy.cut > 0 {
        document.note("Misses are of all calls, those that were not seen whole among them.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_no_part_of_what_it_interrupts() {
        let interrupts = BTreeSet::from(["timer"]);
        let within = |path, operation| within(path, operation, &interrupts);
        assert_eq!(within("entry;read;copy", "read"), Some(vec!["read", "copy"]));
        assert_eq!(within("read;read;copy", "read"), Some(vec!["read", "read", "copy"]));
        assert_eq!(within("entry;read;timer;tick", "read"), None);
        assert_eq!(within("read;timer;read;copy", "read"), Some(vec!["read", "copy"]));
        assert_eq!(within("read;timer;tick", "timer"), Some(vec!["timer", "tick"]));
        assert_eq!(within("", "read"), None);
    }
}
