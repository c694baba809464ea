//! Cache misses of data accesses within an operation, for recordings with `--data`.

use super::{per, AnatomyView};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, Style, TextRole};
use crate::view::scope;
use kerntune_profile::{CallKind, Tables};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Default number of rows in text.
const SECTION_ROWS: usize = 15;

/// Misses in a model's caches, summed over all calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct CacheMisses {
    pub l1d_misses: u64,
    pub l2_misses: u64,
    pub l3_misses: u64,
    pub transfers: u64,
    pub dtlb_misses: u64,
}

/// Misses by call path below the operation.
pub(super) struct MissesByPath {
    pub total: CacheMisses,
    /// Most misses first.
    pub paths: Vec<(Vec<String>, CacheMisses)>,
}

/// Collects the misses within the operation, in the selected regions. Returns `None` for a
/// recording without them, and if another function has the operation's name, since paths consist of
/// names.
pub(super) fn find(shown: &AnatomyView) -> Option<MissesByPath> {
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
        for sum in [&mut total, sum] {
            sum.l1d_misses += row.l1d_misses;
            sum.l2_misses += row.l2_misses;
            sum.l3_misses += row.l3_misses;
            sum.transfers += row.transfers;
            sum.dtlb_misses += row.dtlb_misses;
        }
    }
    let mut paths: Vec<(Vec<String>, CacheMisses)> = paths
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

/// Renders the misses as a table; empty for a recording without data.
pub(super) fn text(shown: &AnatomyView, style: Style) -> String {
    let Some(data) = find(shown) else { return String::new() };
    let mut table = TableBuilder::new([
        ("L1D", Alignment::Right),
        ("L2", Alignment::Right),
        ("L3", Alignment::Right),
        ("transfers", Alignment::Right),
        ("dTLB", Alignment::Right),
        ("path, from its end", Alignment::Left),
    ]);
    let calls = shown.calls();
    let mut row = |misses: &CacheMisses, name: TextCell| {
        let CacheMisses { l1d_misses, l2_misses, l3_misses, transfers, dtlb_misses } = *misses;
        let [l1d, l2, l3, transfers, dtlb] = [l1d_misses, l2_misses, l3_misses, transfers, dtlb_misses]
            .map(|sum| TextCell::from(per(sum, calls)));
        table.row([l1d, l2, l3, transfers, dtlb, name]);
    };
    let top = shown.top.unwrap_or(SECTION_ROWS);
    for (path, misses) in data.paths.iter().take(top) {
        let names: Vec<String> = path.iter().rev().map(|name| printable(name)).collect();
        row(misses, names.join(" < ").into());
    }
    row(&data.total, TextCell("total".into(), TextRole::Head));
    let model = shown.profile.manifest.model.as_deref().unwrap_or("none");
    let heading = format!("Data lines missed per call (model {})", printable(model));
    let cut = match shown.anatomy.cut {
        0 => "",
        _ => "Misses are of all calls, those that were not seen whole among them.\n",
    };
    format!(
        "\n{}{}{}",
        style.paint(TextRole::Head, &heading),
        table.below(data.paths.len(), top, style),
        style.paint(TextRole::Faint, cut)
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
