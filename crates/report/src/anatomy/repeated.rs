//! Functions that the typical call enters more than once.

use super::AnatomyView;
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{Style, TextRole};
use kerntune_analyze::anatomy::AnatomyNode;
use kerntune_table::number::grouped;
use kerntune_profile::FunctionIndex;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Default number of rows in text.
const SECTION_ROWS: usize = 15;
/// Largest number of callers that are named.
const MAX_CALLERS: usize = 4;

/// Function that the typical call enters more than once.
#[derive(Debug)]
pub(super) struct RepeatedFunction {
    pub function: FunctionIndex,
    pub times: u64,
    /// Total time of all entries; nested entries count once.
    pub elapsed_ns: u64,
    /// Callers with their numbers of calls, most first.
    pub callers: Vec<(FunctionIndex, u64)>,
}

/// Finds the repeated functions, greatest time first.
pub(super) fn find(nodes: &[AnatomyNode]) -> Vec<RepeatedFunction> {
    let mut found: BTreeMap<FunctionIndex, (u64, u64, BTreeMap<FunctionIndex, u64>)> = BTreeMap::new();
    // Functions that are open around a node, and in how many nodes each function is.
    let (mut open, mut within): (Vec<FunctionIndex>, BTreeMap<FunctionIndex, u32>) = Default::default();
    for node in nodes {
        for closed in open.drain(node.depth as usize..) {
            within.entry(closed).and_modify(|levels| *levels -= 1);
        }
        let whole = node.typical.whole;
        if whole.calls > 0 {
            let (times, elapsed_ns, callers) = found.entry(node.function).or_default();
            *times += whole.calls;
            if within.get(&node.function).is_none_or(|levels| *levels == 0) {
                *elapsed_ns += whole.elapsed_ns;
            }
            if let Some(caller) = open.last() {
                *callers.entry(*caller).or_default() += whole.calls;
            }
        }
        *within.entry(node.function).or_default() += 1;
        open.push(node.function);
    }
    let repeated = |(function, (times, elapsed_ns, callers)): (_, (_, _, BTreeMap<_, u64>))| {
        let mut callers: Vec<(FunctionIndex, u64)> = callers.into_iter().collect();
        callers.sort_by_key(|(function, times)| (Reverse(*times), *function));
        RepeatedFunction { function, times, elapsed_ns, callers }
    };
    let mut all: Vec<RepeatedFunction> =
        found.into_iter().filter(|(_, (times, ..))| *times > 1).map(repeated).collect();
    all.sort_by_key(|row| (Reverse(row.elapsed_ns), Reverse(row.times), row.function));
    all
}

/// Renders a table; empty if every function is entered once.
pub(super) fn text(shown: &AnatomyView, style: Style) -> String {
    let all = find(&shown.anatomy.nodes);
    if all.is_empty() {
        return String::new();
    }
    let mut table = TableBuilder::new([
        ("times", Alignment::Right),
        ("elapsed", Alignment::Right),
        ("function", Alignment::Left),
        ("from", Alignment::Left),
    ]);
    let top = shown.top.unwrap_or(SECTION_ROWS);
    for row in all.iter().take(top) {
        let name =
            |(caller, times): &(FunctionIndex, u64)| format!("{} ×{}", shown.name(*caller), grouped(*times));
        let mut callers: Vec<String> = row.callers.iter().take(MAX_CALLERS).map(name).collect();
        let more = row.callers.len().saturating_sub(MAX_CALLERS);
        if more > 0 {
            callers.push(format!("{} more", grouped(more as u64)));
        }
        table.row([
            grouped(row.times).into(),
            grouped(row.elapsed_ns).into(),
            shown.name(row.function).into(),
            TextCell(callers.join(", "), TextRole::Faint),
        ]);
    }
    let heading = "Done more than once in the typical call (a trace has no arguments: whether on the same object is not known)";
    format!("\n{}{}", style.paint(TextRole::Head, heading), table.below(all.len(), top, style))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_analyze::anatomy::{NodeFigures, NodeSums};
    use kerntune_profile::CallKind;

    #[test]
    fn what_is_within_itself_counts_its_time_once() {
        let node = |depth, len, function, calls, elapsed_ns| AnatomyNode {
            function: FunctionIndex(function),
            how: CallKind::Call,
            depth,
            len,
            all: NodeSums::default(),
            typical: NodeSums {
                whole: NodeFigures { calls, elapsed_ns, ..NodeFigures::default() },
                ..NodeSums::default()
            },
            worst: NodeSums::default(),
            boundary: NodeSums::default(),
        };
        // 0 calls 1 twice, which once calls 2, which calls 1 and 3; 0 also calls 3, and in other
        // calls 4.
        let nodes = [
            node(0, 7, 0, 1, 100),
            node(1, 4, 1, 2, 60),
            node(2, 3, 2, 1, 40),
            node(3, 1, 1, 1, 10),
            node(3, 1, 3, 1, 5),
            node(1, 1, 3, 1, 5),
            node(1, 1, 4, 0, 0),
        ];
        let found = find(&nodes);
        let found: Vec<_> = found
            .iter()
            .map(|row| (row.function.0, row.times, row.elapsed_ns, row.callers.clone()))
            .collect();
        let f = FunctionIndex;
        assert_eq!(found, [(1, 3, 60, vec![(f(0), 2), (f(2), 1)]), (3, 2, 10, vec![(f(0), 1), (f(2), 1)])]);
    }
}
