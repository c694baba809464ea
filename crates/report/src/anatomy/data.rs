//! Data that is missed within an operation, of recordings with `--data`.

use super::{per, Shown};
use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role, Style};
use crate::view::scope;
use kerntune_profile::{How, Tables};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Rows in text where no number is asked for.
const ROWS: usize = 15;

/// What a model's caches missed, all calls together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Misses {
    pub l1d_misses: u64,
    pub l2_misses: u64,
    pub l3_misses: u64,
    pub transfers: u64,
    pub dtlb_misses: u64,
}

/// Misses by path from the operation on.
pub(super) struct Data {
    pub total: Misses,
    /// Most misses first.
    pub paths: Vec<(Vec<String>, Misses)>,
}

/// Misses within the operation, in the regions that were asked for; none of a recording without them, and none if the
/// operation's name is another function's, too: paths are names.
pub(super) fn find(shown: &Shown) -> Option<Data> {
    let tables = &shown.profile.tables;
    let name = tables.name(shown.function);
    let scope = scope(shown.profile, shown.region).ok()?;
    let namesakes = tables.symbols.iter().filter(|symbol| symbol.name == name).count();
    if tables.data_paths.is_empty() || namesakes > 1 {
        return None;
    }
    let interrupts = interrupts(tables);
    let mut total = Misses::default();
    let mut paths: BTreeMap<Vec<&str>, Misses> = BTreeMap::new();
    for row in tables.data_paths.iter().filter(|row| scope.contains(row.region)) {
        let Some(path) = within(&row.path, name, &interrupts) else { continue };
        let sum = paths.entry(path).or_default();
        for sum in [&mut total, sum] {
            sum.l1d_misses += row.l1d_misses;
            sum.l2_misses += row.l2_misses;
            sum.l3_misses += row.l3_misses;
            sum.transfers += row.transfers;
            sum.dtlb_misses += row.dtlb_misses;
        }
    }
    let mut paths: Vec<(Vec<String>, Misses)> = paths
        .into_iter()
        .map(|(path, misses)| (path.into_iter().map(String::from).collect(), misses))
        .collect();
    paths.sort_by(|(a, x), (b, y)| (Reverse(x), a).cmp(&(Reverse(y), b)));
    Some(Data { total, paths })
}

/// Names of functions that an interrupt entered.
fn interrupts(tables: &Tables) -> BTreeSet<&str> {
    let entries = tables.arcs.iter().filter(|arc| arc.how == How::Interrupt);
    entries.map(|arc| tables.name(arc.callee)).collect()
}

/// What of a path is within the operation, from its outermost call on: what an interrupt does is not.
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

/// As a table; nothing of a recording without data.
pub(super) fn text(shown: &Shown, style: Style) -> String {
    let Some(data) = find(shown) else { return String::new() };
    let mut table = Columns::new([
        ("L1D", Side::Right),
        ("L2", Side::Right),
        ("L3", Side::Right),
        ("transfers", Side::Right),
        ("dTLB", Side::Right),
        ("path, from its end", Side::Left),
    ]);
    let calls = shown.calls();
    let mut row = |misses: &Misses, name: Cell| {
        let Misses { l1d_misses, l2_misses, l3_misses, transfers, dtlb_misses } = *misses;
        let [l1d, l2, l3, transfers, dtlb] =
            [l1d_misses, l2_misses, l3_misses, transfers, dtlb_misses].map(|sum| Cell::from(per(sum, calls)));
        table.row([l1d, l2, l3, transfers, dtlb, name]);
    };
    let top = shown.top.unwrap_or(ROWS);
    for (path, misses) in data.paths.iter().take(top) {
        let names: Vec<String> = path.iter().rev().map(|name| printable(name)).collect();
        row(misses, names.join(" < ").into());
    }
    row(&data.total, Cell("total".into(), Role::Head));
    let model = shown.profile.manifest.model.as_deref().unwrap_or("none");
    let heading = format!("Data lines missed per call (model {})", printable(model));
    let cut = match shown.anatomy.cut {
        0 => "",
        _ => "Misses are of all calls, those that were not seen whole among them.\n",
    };
    format!(
        "\n{}{}{}",
        style.paint(Role::Head, &heading),
        table.below(data.paths.len(), top, style),
        style.paint(Role::Faint, cut)
    )
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
