//! Rows of the tree of call paths: region by region, each root followed by its descendants.

use crate::known::{call_kind, TraceContext};
use crate::tree::{node_kind, PathTree, TreeNode, NONE};
use kerntune_profile::{add_up, CallKind, FunctionIndex, PathKind, PathNode, Ticks};
use kerntune_trace::EventWeights;

/// Returns for each node whether it or a descendant has any counts.
pub(crate) fn used(tree: &PathTree) -> Vec<bool> {
    let is_used = |(at, node): (usize, &TreeNode)| {
        let weights = tree.weights.get(at).copied().unwrap_or(EventWeights::NONE);
        node.self_time > 0 || node.calls > 0 || weights != EventWeights::NONE
    };
    let mut used: Vec<bool> = tree.nodes.iter().enumerate().map(is_used).collect();
    add_up(&mut used, |at, _| tree.nodes[at].parent as usize, |above, below| *above |= *below);
    used
}

/// Makes the rows of all [`used`] nodes.
pub(crate) fn rows(tree: &PathTree, used: &[bool], known: &TraceContext) -> Vec<PathNode> {
    let nodes = &tree.nodes;
    let weights = |at: u32| tree.weights.get(at as usize).copied().unwrap_or(EventWeights::NONE);
    let wanted = |at: &u32| used[*at as usize] && nodes[*at as usize].region < known.outside();
    // Sorted by parent, siblings are adjacent; roots have no parent and come last.
    let key = |at: &u32| {
        let TreeNode { region, parent, function, kind, .. } = nodes[*at as usize];
        (parent, region, kind, function)
    };
    let mut order: Vec<u32> = (1..nodes.len() as u32).filter(wanted).collect();
    order.sort_unstable_by_key(key);
    // Index in `order` of each node's first child; `order.len()` for nodes without children.
    let mut begin = vec![order.len() as u32; nodes.len()];
    for (place, at) in order.iter().enumerate().rev() {
        if let Some(first) = begin.get_mut(nodes[*at as usize].parent as usize) {
            *first = place as u32;
        }
    }
    let roots = order.partition_point(|at| nodes[*at as usize].parent != NONE);
    let children = |parent: u32| {
        let from = if parent == NONE { roots } else { begin[parent as usize] as usize };
        let rest = &order[from..];
        let count = rest.iter().take_while(|at| nodes[**at as usize].parent == parent).count();
        &rest[..count]
    };
    let mut rows = Vec::with_capacity(order.len());
    let mut stack: Vec<(u32, u32)> = children(NONE).iter().rev().map(|at| (*at, PathNode::ROOT)).collect();
    while let Some((at, parent)) = stack.pop() {
        let node = &nodes[at as usize];
        let path = rows.len() as u32;
        let EventWeights { taken_branches, l1i_misses, itlb_misses } = weights(at);
        let (kind, comm, function, how) = means(node, known);
        let (region, calls, self_ticks) = (node.region, node.calls, Ticks(node.self_time));
        rows.push(PathNode {
            region,
            path,
            parent,
            kind,
            comm,
            function,
            how,
            calls,
            self_ticks,
            taken_branches,
            l1i_misses,
            itlb_misses,
        });
        stack.extend(children(at).iter().rev().map(|child| (*child, path)));
    }
    rows
}

fn means(node: &TreeNode, known: &TraceContext) -> (PathKind, String, FunctionIndex, CallKind) {
    let plain = |kind, comm| (kind, comm, FunctionIndex::NONE, CallKind::Call);
    if let Some(how) = node.how() {
        return (PathKind::Function, String::new(), FunctionIndex(node.function), call_kind(how));
    }
    match node.kind {
        node_kind::USER => plain(PathKind::User, String::new()),
        node_kind::UNATTRIBUTED => plain(PathKind::Unattributed, String::new()),
        _ => {
            let root = known.roots.get(node.function as usize).cloned();
            let (kind, comm) = root.unwrap_or((PathKind::Thread, String::new()));
            plain(kind, comm)
        }
    }
}
