//! Call graph of a recording, as input of the ordering algorithms.

use crate::call_counts::{CallCounts, NamedFunctions};
use crate::Result;
use kerntune_kernel::Symbols;
use kerntune_layout::order::{CallGraph, GraphArc, GraphFunction};
use kerntune_profile::{Symbol, Tables};
use std::collections::{BTreeMap, HashMap};

/// Alignment of functions in the kernels that kerntune builds, in bytes.
pub(super) const ALIGNMENT: u64 = 16;

/// Returns the functions of `symbols` with their entry counts, and the calls between them.
///
/// A jump to another function's first instruction counts as a call at its end. Returns follow from
/// calls. Jumps into the middle (`foo` to `foo.cold`) connect code that no order of functions can
/// bring together; they are ignored.
pub(super) fn call_graph(symbols: &Symbols, tables: &Tables) -> Result<CallGraph> {
    let table = symbols.functions();
    let starts: HashMap<u64, usize> = table.iter().zip(0..).map(|(f, at)| (f.address, at)).collect();
    let mut entries = vec![0u64; table.len()];
    for block in &tables.blocks {
        if let Some(&at) = starts.get(&block.start.get()) {
            entries[at] = entries[at].saturating_add(block.count);
        }
    }
    let functions = table.iter().zip(&entries).map(|(f, &entries)| {
        // Sizes in a table may contradict each other (overlapping labels); then the greater one is
        // used.
        GraphFunction::new(f.size, entries).aligned(ALIGNMENT)
    });
    let arcs = tables.edges.iter().filter(|edge| edge.count > 0).filter_map(|edge| {
        let callee = *starts.get(&edge.target.get())?;
        let caller = symbols.lookup(edge.source.get())?;
        let offset = edge.source.get() - table[caller].address;
        (caller != callee).then(|| GraphArc::new(caller, callee, edge.count).from_offset(offset))
    });
    Ok(CallGraph::new(functions.collect(), arcs.collect())?)
}

/// Returns the functions of `symbols` with the weights of `counts`, and the calls between them.
///
/// Functions are matched by name; those that `symbols` lacks are left out. Call sites are not known.
/// `from` are the profile's functions, and `same_kernel` is true if their addresses are those of
/// `symbols`.
pub(super) fn call_graph_by_name(
    symbols: &Symbols,
    (from, same_kernel): (&[Symbol], bool),
    counts: &CallCounts,
) -> Result<CallGraph> {
    let table = symbols.functions();
    let places = NamedFunctions::new(from, symbols, same_kernel);
    let mut entries = vec![0u64; table.len()];
    for (function, weight) in &counts.entries {
        if let Some(at) = places.find(*function) {
            entries[at] = entries[at].saturating_add(*weight);
        }
    }
    let mut weights: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for ((caller, callee), weight) in &counts.arcs {
        let (Some(caller), Some(callee)) = (places.find(*caller), places.find(*callee)) else { continue };
        if caller != callee {
            let sum = weights.entry((caller, callee)).or_default();
            *sum = sum.saturating_add(*weight);
        }
    }
    let functions = table.iter().zip(&entries);
    let functions =
        functions.map(|(f, &entries)| GraphFunction::new(f.size, entries).aligned(ALIGNMENT)).collect();
    let arcs = weights.into_iter().map(|((caller, callee), weight)| GraphArc::new(caller, callee, weight));
    Ok(CallGraph::new(functions, arcs.collect())?)
}
