//! A profile's tables as a call graph.

use super::components::Components;
use super::{merged, propagate, Arc, CallGraph, Changes, GraphError, Node, Propagation};
use kerntune_profile::{FunctionIndex, How, PathKind, Tables};
use std::collections::{BTreeMap, BTreeSet};

impl CallGraph {
    /// The graph of the regions for which `wanted` holds. Node `i` is row `i` of the symbols.
    ///
    /// A call by an interrupt, a system call from untraced code, and the first function of a thread
    /// have no caller.
    ///
    /// # Errors
    /// [`GraphError::NotTimed`] for [`Propagation::Exact`] of a sampled profile.
    pub fn of_tables(
        tables: &Tables,
        wanted: impl Fn(u32) -> bool,
        propagation: Propagation,
    ) -> Result<Self, GraphError> {
        Self::of_tables_with(tables, wanted, propagation, &Changes::default())
    }

    /// The same, with arcs added and cut.
    ///
    /// # Errors
    /// As [`CallGraph::of_tables`]; [`GraphError::NotDivided`] for [`Propagation::Exact`] with cuts of a profile whose tree
    /// of call paths is not whole; [`GraphError::NoNode`] of arcs of other code.
    pub fn of_tables_with(
        tables: &Tables,
        wanted: impl Fn(u32) -> bool,
        propagation: Propagation,
        changes: &Changes,
    ) -> Result<Self, GraphError> {
        let mut nodes: Vec<Node> = tables
            .symbols
            .iter()
            .map(|symbol| Node { name: symbol.name.clone(), file: symbol.file.clone(), ..Node::default() })
            .collect();
        for row in tables.functions.iter().filter(|row| wanted(row.region)) {
            let node = nodes.get_mut(row.function.get() as usize);
            if let Some(node) = node {
                node.self_ns = node.self_ns.saturating_add(row.net_ns.get());
                node.ended_self_ns = node.ended_self_ns.saturating_add(row.ended_net_ns.get());
            }
        }
        let timed = is_timed(tables);
        let arcs = tables.arcs.iter().filter(|row| wanted(row.region)).map(|row| Arc {
            caller: row.caller.known().map(|caller| caller.get() as usize),
            callee: row.callee.get() as usize,
            calls: row.calls,
            ended: row.ended,
            elapsed_ns: timed.then(|| row.elapsed_ns.get()),
            ..Arc::default()
        });
        let mut arcs = merged(nodes.len(), arcs)?;
        changes.apply(nodes.len(), &mut arcs)?;
        let components = Components::of(nodes.len(), &arcs);
        if propagation == Propagation::Exact {
            divide(&mut arcs, tables, wanted, &components, &nodes);
        }
        propagate::propagate(nodes, &arcs, &components, propagation)
    }

    /// The propagation that suits a profile: exact if its arcs have times.
    pub fn suits(tables: &Tables) -> Propagation {
        match is_timed(tables) {
            true => Propagation::Exact,
            false => Propagation::Counts,
        }
    }
}

/// A sampled profile has counts of calls and no time of any.
fn is_timed(tables: &Tables) -> bool {
    tables.arcs.is_empty() || tables.arcs.iter().any(|row| row.elapsed_ns.get() > 0)
}

/// Says of each arc what time passed in its calls, and which part of it was the callee's own, from the tree of
/// call paths: the time at and below a path belongs to the arc by which its function's cycle was entered.
fn divide(
    arcs: &mut [Arc],
    tables: &Tables,
    wanted: impl Fn(u32) -> bool,
    components: &Components,
    nodes: &[Node],
) {
    if tables.paths.is_empty() {
        return;
    }
    type Entry = (Option<usize>, usize);
    let cut: BTreeSet<(Option<usize>, usize)> =
        arcs.iter().filter(|arc| arc.tie.is_cut()).map(|arc| (arc.caller, arc.callee)).collect();
    let component = |function: usize| components.of.get(function).copied();
    let mut entries: Vec<Option<Entry>> = Vec::with_capacity(tables.paths.len());
    // Whether the path is where its function's cycle was entered, and whether that was by an arc that is cut.
    let mut enters = vec![false; tables.paths.len()];
    let mut is_cut = vec![false; tables.paths.len()];
    let mut below: Vec<u64> = Vec::with_capacity(tables.paths.len());
    let mut sums: BTreeMap<Entry, (u64, u64)> = BTreeMap::new();
    let mut own = vec![0u64; nodes.len()];
    for ((row, enters), is_cut) in tables.paths.iter().zip(&mut enters).zip(&mut is_cut) {
        let net = if wanted(row.region) { row.net_ns.get() } else { 0 };
        let entry = (row.kind == PathKind::Function && row.function != FunctionIndex::NONE).then(|| {
            let function = row.function.get() as usize;
            if let Some(sum) = own.get_mut(function) {
                *sum = sum.saturating_add(net);
            }
            let parent =
                entries.get(row.parent as usize).copied().flatten().filter(|_| row.how != How::Interrupt);
            let caller = tables.paths.get(row.parent as usize).map(|parent| parent.function.get() as usize);
            let (entry, is_first) = match (parent, caller) {
                (Some(_), Some(caller)) if cut.contains(&(Some(caller), function)) => {
                    *is_cut = true;
                    ((Some(caller), function), true)
                }
                (Some(entry), Some(caller)) if component(caller) == component(function) => (entry, false),
                (Some(_), Some(caller)) => ((Some(caller), function), true),
                _ => ((None, function), true),
            };
            *enters = is_first;
            entry
        });
        entries.push(entry);
        below.push(net);
        if let Some(entry) = entry {
            let sum = &mut sums.entry(entry).or_default().1;
            *sum = sum.saturating_add(net);
        }
    }
    // Parents come before children.
    for at in (0..below.len()).rev() {
        if let Some(entry) = entries[at].filter(|_| enters[at]) {
            let sum = &mut sums.entry(entry).or_default().0;
            *sum = sum.saturating_add(below[at]);
        }
        if is_cut[at] {
            continue;
        }
        let ns = below[at];
        if let Some(above) = below.get_mut(tables.paths[at].parent as usize) {
            *above = above.saturating_add(ns);
        }
    }
    // In a tree that was cut, time of functions is that of others above them.
    let whole = nodes.iter().zip(&own).all(|(node, own)| node.self_ns == *own);
    for arc in arcs {
        let (total, own) = sums.get(&(arc.caller, arc.callee)).copied().unwrap_or_default();
        arc.self_ns = Some(own);
        arc.total_ns = whole.then_some(total);
    }
}
