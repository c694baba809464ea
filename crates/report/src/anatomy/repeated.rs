//! Functions that the typical call enters more than once.

use super::figures::function;
use super::AnatomyView;
use kerntune_analyze::anatomy::AnatomyNode;
use kerntune_profile::FunctionIndex;
use kerntune_table::number::grouped;
use kerntune_table::{Document, Table, TextRole};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Default number of rows in text.
const SECTION_ROWS: usize = 15;
/// Largest number of callers that are named.
const MAX_CALLERS: usize = 4;

/// Function that the typical call enters more than once.
#[derive(Debug)]
struct RepeatedFunction {
    pub function: FunctionIndex,
    pub times: u64,
    /// Total time of all entries; nested entries count once.
    pub elapsed_ns: u64,
    /// Callers with their numbers of calls, most first.
    pub callers: Vec<(FunctionIndex, u64)>,
}

/// Finds the repeated functions, greatest time first.
fn find(nodes: &[AnatomyNode]) -> Vec<RepeatedFunction> {
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

/// Adds the functions.
pub(super) fn add<'a>(document: &mut Document<'a>, shown: &AnatomyView<'a>) {
    let shown = *shown;
    let mut callers = function(shown, |row: &(FunctionIndex, u64)| Some(row.0));
    callers.add("times", "Its calls.", |row| row.1);
    let mut columns = function(shown, |row: &RepeatedFunction| Some(row.function));
    columns.add("times", "Entries in the typical call.", |row| row.times).head("times");
    columns
        .add("elapsed", "Time with callees, once where they are within each other.", |row| row.elapsed_ns)
        .head("elapsed");
    columns.text_only("function", move |row| shown.name(row.function));
    columns
        .records("callers", "Callers, most calls first.", callers, |row| row.callers.clone())
        .head("from")
        .text(move |row| {
            let name = |(caller, times): &(FunctionIndex, u64)| {
                format!("{} ×{}", shown.name(*caller), grouped(*times))
            };
            let mut callers: Vec<String> = row.callers.iter().take(MAX_CALLERS).map(name).collect();
            let more = row.callers.len().saturating_sub(MAX_CALLERS);
            if more > 0 {
                callers.push(format!("{} more", grouped(more as u64)));
            }
            callers.join(", ")
        })
        .role(|_| TextRole::Faint);
    let title = "Done more than once in the typical call (a trace has no arguments: whether on the same object is not known)";
    let table = Table::new("repeated", find(&shown.anatomy.nodes), columns)
        .help("Functions that the typical call enters more than once, greatest time first.")
        .top(shown.top)
        .default_rows(SECTION_ROWS);
    document.table(table.title(TextRole::Head, title).hidden_if_empty());
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
