//! Builds call graphs from the tables of a profile.

use super::components::CallComponents;
use super::{merged, propagate, ArcChanges, CallGraph, GraphArc, GraphError, GraphNode, Propagation};
use kerntune_profile::{add_up, CallKind, FunctionIndex, PathKind, Tables};
use std::collections::{BTreeMap, BTreeSet};

impl CallGraph {
    /// Builds the graph of the regions for which `wanted` returns true. Node `i` is row `i` of the
    /// symbols.
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
        Self::of_tables_with(tables, wanted, propagation, &ArcChanges::default())
    }

    /// Like [`CallGraph::of_tables`], but adds and cuts arcs.
    ///
    /// # Errors
    /// As [`CallGraph::of_tables`]; [`GraphError::NotDivided`] for [`Propagation::Exact`] with cuts
    /// if the profile's tree of call paths is incomplete; [`GraphError::NoNode`] for arcs of other
    /// code.
    pub fn of_tables_with(
        tables: &Tables,
        wanted: impl Fn(u32) -> bool,
        propagation: Propagation,
        changes: &ArcChanges,
    ) -> Result<Self, GraphError> {
        let mut nodes: Vec<GraphNode> = tables
            .symbols
            .iter()
            .map(|symbol| GraphNode {
                name: symbol.name.clone(),
                file: symbol.file.clone(),
                ..GraphNode::default()
            })
            .collect();
        for row in tables.functions.iter().filter(|row| wanted(row.region)) {
            let node = nodes.get_mut(row.function.get() as usize);
            if let Some(node) = node {
                node.self_ns = node.self_ns.saturating_add(row.self_ticks.get());
                node.ended_self_ticks = node.ended_self_ticks.saturating_add(row.ended_self_ticks.get());
            }
        }
        let timed = is_timed(tables);
        let arcs = tables.arcs.iter().filter(|row| wanted(row.region)).map(|row| GraphArc {
            caller: row.caller.known().map(|caller| caller.get() as usize),
            callee: row.callee.get() as usize,
            calls: row.calls,
            ended: row.ended,
            elapsed_ns: timed.then(|| row.total_ticks.get()),
            ..GraphArc::default()
        });
        let mut arcs = merged(nodes.len(), arcs)?;
        changes.apply(nodes.len(), &mut arcs)?;
        let components = CallComponents::of(nodes.len(), &arcs);
        if propagation == Propagation::Exact {
            divide(&mut arcs, tables, wanted, &components, &nodes);
        }
        propagate::propagate(nodes, &arcs, &components, propagation)
    }

    /// Returns the propagation for a profile: exact if its arcs have times.
    pub fn suits(tables: &Tables) -> Propagation {
        match is_timed(tables) {
            true => Propagation::Exact,
            false => Propagation::Counts,
        }
    }
}

/// Checks whether calls have times: a sampled profile has only their counts.
fn is_timed(tables: &Tables) -> bool {
    tables.arcs.is_empty() || tables.arcs.iter().any(|row| row.total_ticks.get() > 0)
}

/// Sets total time and callee's self time of each arc from the tree of call paths: time at and
/// below a path belongs to the arc by which the cycle of its function was entered.
fn divide(
    arcs: &mut [GraphArc],
    tables: &Tables,
    wanted: impl Fn(u32) -> bool,
    components: &CallComponents,
    nodes: &[GraphNode],
) {
    if tables.paths.is_empty() {
        return;
    }
    type EntryArc = (Option<usize>, usize);
    let cut: BTreeSet<(Option<usize>, usize)> =
        arcs.iter().filter(|arc| arc.tie.is_cut()).map(|arc| (arc.caller, arc.callee)).collect();
    let component = |function: usize| components.of.get(function).copied();
    let mut entries: Vec<Option<EntryArc>> = Vec::with_capacity(tables.paths.len());
    // True if the path enters its function's cycle, and if it does so over a cut arc.
    let mut enters = vec![false; tables.paths.len()];
    let mut is_cut = vec![false; tables.paths.len()];
    let mut below: Vec<u64> = Vec::with_capacity(tables.paths.len());
    let mut sums: BTreeMap<EntryArc, (u64, u64)> = BTreeMap::new();
    let mut own = vec![0u64; nodes.len()];
    for ((row, enters), is_cut) in tables.paths.iter().zip(&mut enters).zip(&mut is_cut) {
        let self_time = if wanted(row.region) { row.self_ticks.get() } else { 0 };
        let entry = (row.kind == PathKind::Function && row.function != FunctionIndex::NONE).then(|| {
            let function = row.function.get() as usize;
            if let Some(sum) = own.get_mut(function) {
                *sum = sum.saturating_add(self_time);
            }
            let parent = entries
                .get(row.parent as usize)
                .copied()
                .flatten()
                .filter(|_| row.how != CallKind::Interrupt);
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
        below.push(self_time);
        if let Some(entry) = entry {
            let sum = &mut sums.entry(entry).or_default().1;
            *sum = sum.saturating_add(self_time);
        }
    }
    let parent = |at: usize, _: &u64| if is_cut[at] { usize::MAX } else { tables.paths[at].parent as usize };
    add_up(&mut below, parent, |above, below| *above = above.saturating_add(*below));
    for ((entry, enters), below) in entries.iter().zip(&enters).zip(&below) {
        if let Some(entry) = entry.filter(|_| *enters) {
            let sum = &mut sums.entry(entry).or_default().0;
            *sum = sum.saturating_add(*below);
        }
    }
    // In a tree that was cut, time of deep functions counts for functions above them.
    let whole = nodes.iter().zip(&own).all(|(node, own)| node.self_ns == *own);
    for arc in arcs {
        let (total, own) = sums.get(&(arc.caller, arc.callee)).copied().unwrap_or_default();
        arc.self_ns = Some(own);
        arc.total_ns = whole.then_some(total);
    }
}
