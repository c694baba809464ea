//! Call graph of a recording, as input of the ordering algorithms.

use crate::Result;
use kerntune_kernel::Symbols;
use kerntune_layout::order::{CallGraph, GraphArc, GraphFunction};
use kerntune_profile::Tables;
use std::collections::HashMap;

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
