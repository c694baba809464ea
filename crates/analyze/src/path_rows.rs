//! The tree of call paths as rows: by region, each root with all that is below it.

use crate::known::Known;
use crate::tree::{what, Node, Tree, NONE};
use kerntune_profile::{FunctionIndex, How, Nanoseconds, PathKind, PathNode};
use kerntune_trace::Weights;

/// Whether something was counted in each node, or below it.
pub(crate) fn used(tree: &Tree) -> Vec<bool> {
    let mut used = vec![false; tree.nodes.len()];
    // Parents come before children.
    for (at, node) in tree.nodes.iter().enumerate().rev() {
        let weights = tree.weights.get(at).copied().unwrap_or(Weights::NONE);
        used[at] |= node.net > 0 || node.calls > 0 || weights != Weights::NONE;
        if used[at] && node.parent != NONE {
            used[node.parent as usize] = true;
        }
    }
    used
}

/// The rows of all nodes that are [`used`].
pub(crate) fn rows(tree: &Tree, used: &[bool], known: &Known) -> Vec<PathNode> {
    let nodes = &tree.nodes;
    let weights = |at: u32| tree.weights.get(at as usize).copied().unwrap_or(Weights::NONE);
    let wanted = |at: &u32| used[*at as usize] && nodes[*at as usize].region < known.outside();
    // Siblings lie next to each other when sorted by parent; roots have none and come last.
    let key = |at: &u32| {
        let Node { region, parent, function, what, .. } = nodes[*at as usize];
        (parent, region, what, function)
    };
    let mut order: Vec<u32> = (1..nodes.len() as u32).filter(wanted).collect();
    order.sort_unstable_by_key(key);
    // Where each node's children begin; what is not in `begin` has none.
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
        let Weights { taken_branches, l1i_misses, itlb_misses } = weights(at);
        let (kind, comm, function, how) = means(node, known);
        let (region, calls, net_ns) = (node.region, node.calls, Nanoseconds(node.net));
        rows.push(PathNode {
            region,
            path,
            parent,
            kind,
            comm,
            function,
            how,
            calls,
            net_ns,
            taken_branches,
            l1i_misses,
            itlb_misses,
        });
        stack.extend(children(at).iter().rev().map(|child| (*child, path)));
    }
    rows
}

fn means(node: &Node, known: &Known) -> (PathKind, String, FunctionIndex, How) {
    let plain = |kind, comm| (kind, comm, FunctionIndex::NONE, How::Call);
    let function = |how| (PathKind::Function, String::new(), FunctionIndex(node.function), how);
    match node.what {
        0 => function(How::Call),
        1 => function(How::Jump),
        2 => function(How::Interrupt),
        3 => function(How::Exception),
        4 => function(How::Syscall),
        what::USER => plain(PathKind::User, String::new()),
        what::UNATTRIBUTED => plain(PathKind::Unattributed, String::new()),
        _ => {
            let root = known.roots.get(node.function as usize).cloned();
            let (kind, comm) = root.unwrap_or((PathKind::Thread, String::new()));
            plain(kind, comm)
        }
    }
}
