//! A profile's tables as a call graph.

use super::components::Components;
use super::{merged, propagate, Arc, CallGraph, GraphError, Node, Propagation};
use kerntune_profile::{FunctionIndex, How, PathKind, Tables};
use std::collections::BTreeMap;

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
        let mut nodes: Vec<Node> = tables
            .symbols
            .iter()
            .map(|symbol| Node { name: symbol.name.clone(), file: symbol.file.clone(), self_ns: 0 })
            .collect();
        for row in tables.functions.iter().filter(|row| wanted(row.region)) {
            let node = nodes.get_mut(row.function.get() as usize);
            if let Some(node) = node {
                node.self_ns = node.self_ns.saturating_add(row.net_ns.get());
            }
        }
        let timed = is_timed(tables);
        let arcs = tables.arcs.iter().filter(|row| wanted(row.region)).map(|row| Arc {
            caller: row.caller.known().map(|caller| caller.get() as usize),
            callee: row.callee.get() as usize,
            calls: row.calls,
            elapsed_ns: timed.then(|| row.elapsed_ns.get()),
            self_ns: None,
        });
        let mut arcs = merged(nodes.len(), arcs)?;
        let components = Components::of(nodes.len(), &arcs);
        if propagation == Propagation::Exact {
            divide(&mut arcs, tables, wanted, &components);
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

/// Says of each arc which part of its time was the callee's own, from the tree of call paths:
/// the net time of a path belongs to the arc by which its function's cycle was entered.
fn divide(arcs: &mut [Arc], tables: &Tables, wanted: impl Fn(u32) -> bool, components: &Components) {
    if tables.paths.is_empty() {
        return;
    }
    type Entry = (Option<usize>, usize);
    let component = |function: usize| components.of.get(function).copied();
    let mut entries: Vec<Option<Entry>> = Vec::with_capacity(tables.paths.len());
    let mut own: BTreeMap<Entry, u64> = BTreeMap::new();
    for row in &tables.paths {
        let entry = (row.kind == PathKind::Function && row.function != FunctionIndex::NONE).then(|| {
            let function = row.function.get() as usize;
            let parent =
                entries.get(row.parent as usize).copied().flatten().filter(|_| row.how != How::Interrupt);
            let caller = tables.paths.get(row.parent as usize).map(|parent| parent.function.get() as usize);
            match (parent, caller) {
                (Some(entry), Some(caller)) if component(caller) == component(function) => entry,
                (Some(_), Some(caller)) => (Some(caller), function),
                _ => (None, function),
            }
        });
        entries.push(entry);
        if let Some(entry) = entry.filter(|_| wanted(row.region)) {
            let sum = own.entry(entry).or_default();
            *sum = sum.saturating_add(row.net_ns.get());
        }
    }
    for arc in arcs {
        arc.self_ns = Some(own.get(&(arc.caller, arc.callee)).copied().unwrap_or(0));
    }
}
