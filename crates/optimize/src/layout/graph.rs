//! The call graph of a recording, as the algorithms take it.

use crate::Result;
use kerntune_kernel::Symbols;
use kerntune_layout::order::{Arc, CallGraph, Function};
use kerntune_profile::Tables;
use std::collections::HashMap;

/// Functions of the kernels that we build begin at multiples of this many bytes.
pub(super) const ALIGNMENT: u64 = 16;

/// The functions of `symbols` with how often each was entered, and who entered it from where.
///
/// A jump to another function's first instruction is a call at its end and counts like one. Returns follow from
/// calls, and jumps into the middle (`foo` to `foo.cold`) join what no order of functions can bring together.
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
        // Of a table with sizes that contradict each other (overlapping labels) the greater is as good.
        Function::new(f.size, entries).aligned(ALIGNMENT)
    });
    let arcs = tables.edges.iter().filter(|edge| edge.count > 0).filter_map(|edge| {
        let callee = *starts.get(&edge.target.get())?;
        let caller = symbols.lookup(edge.source.get())?;
        let offset = edge.source.get() - table[caller].address;
        (caller != callee).then(|| Arc::new(caller, callee, edge.count).from_offset(offset))
    });
    Ok(CallGraph::new(functions.collect(), arcs.collect())?)
}
