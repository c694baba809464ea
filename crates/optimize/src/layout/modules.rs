//! Order of the functions of modules, each module by itself: the kernel loads a module's code as one
//! piece, at an address that no link decides.

use super::graph::ALIGNMENT;
use crate::call_counts::CallCounts;
use crate::Result;
use kerntune_kernel::{module_name, FunctionOrder, Kernel};
use kerntune_layout::order::{CallGraph, GraphArc, GraphFunction, OrderAlgorithm};
use kerntune_profile::{FunctionIndex, Symbol, Tables};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Ordered functions of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedModule {
    /// Name as in `/proc/modules`.
    pub module: String,
    /// Functions that were entered, and are ordered.
    pub ordered: u64,
    /// Number of function entries.
    pub entries: u64,
}

/// Calls of the functions of a module.
pub(super) struct ModuleGraph {
    pub module: String,
    names: Vec<String>,
    pub graph: CallGraph,
}

impl ModuleGraph {
    /// Returns the names of the functions that were entered, in the order of `algorithm`.
    pub fn order(&self, algorithm: OrderAlgorithm) -> Vec<String> {
        let order = algorithm.order(&self.graph);
        let ran = order.as_slice().iter().filter(|&&at| self.graph.functions()[at].weight > 0);
        ran.map(|&at| self.names[at].clone()).filter(|name| FunctionOrder::takes(name)).collect()
    }
}

/// Returns the calls of each module of `kernel` with a function that was entered, by name. `counts`
/// are those of a profile without blocks.
///
/// # Errors
/// Counts that are too large for a graph; modules that cannot be listed.
pub(super) fn module_graphs(
    kernel: &Kernel,
    tables: &Tables,
    counts: Option<&CallCounts>,
) -> Result<Vec<ModuleGraph>> {
    if !kernel.has_modules() {
        return Ok(Vec::new());
    }
    let known = kernel.modules()?.object_paths();
    let mut modules: BTreeMap<String, Vec<&Symbol>> = BTreeMap::new();
    for symbol in &tables.symbols {
        let Some(module) = symbol.loaded_module().map(module_name) else { continue };
        if known.contains_key(&module) && !symbol.name.is_empty() {
            modules.entry(module).or_default().push(symbol);
        }
    }
    let (entries, arcs) = match counts {
        Some(counts) => (weights(&counts.module_entries), counts.module_arcs.clone()),
        None => counted_by_address(&modules, tables),
    };
    let mut graphs = Vec::new();
    for (module, mut symbols) in modules {
        symbols.sort_by_key(|symbol| (symbol.address, symbol.function));
        let places: HashMap<FunctionIndex, usize> =
            symbols.iter().zip(0..).map(|(symbol, at)| (symbol.function, at)).collect();
        let weight = |symbol: &Symbol| entries.get(&symbol.function).copied().unwrap_or_default();
        let functions: Vec<GraphFunction> = symbols
            .iter()
            .map(|symbol| GraphFunction::new(symbol.size, weight(symbol)).aligned(ALIGNMENT))
            .collect();
        if functions.iter().all(|function| function.weight == 0) {
            continue;
        }
        let inside = arcs.iter().filter_map(|((caller, callee), count)| {
            let (caller, callee) = (*places.get(caller)?, *places.get(callee)?);
            (caller != callee).then(|| GraphArc::new(caller, callee, *count))
        });
        let graph = CallGraph::new(functions, inside.collect())?;
        let names = symbols.iter().map(|symbol| symbol.name.clone()).collect();
        graphs.push(ModuleGraph { module, names, graph });
    }
    Ok(graphs)
}

type Weights = HashMap<FunctionIndex, u64>;
type ArcWeights = BTreeMap<(FunctionIndex, FunctionIndex), u64>;

fn weights(entries: &BTreeMap<FunctionIndex, u64>) -> Weights {
    entries.iter().map(|(function, weight)| (*function, *weight)).collect()
}

/// Returns the entries of the modules' functions and the calls between them, from blocks and edges.
/// Calls between two modules are among them.
fn counted_by_address(modules: &BTreeMap<String, Vec<&Symbol>>, tables: &Tables) -> (Weights, ArcWeights) {
    let mut by_address: Vec<&Symbol> = modules.values().flatten().copied().collect();
    by_address.sort_by_key(|symbol| (symbol.address, symbol.function));
    let lookup = |address: u64| {
        let behind = by_address.partition_point(|symbol| symbol.address.get() <= address);
        let symbol = by_address[..behind].last()?;
        (address - symbol.address.get() < symbol.size.max(1)).then_some(symbol)
    };
    let starting = |address: u64| lookup(address).filter(|symbol| symbol.address.get() == address);
    let (mut entries, mut arcs) = (Weights::new(), ArcWeights::new());
    for block in &tables.blocks {
        if let Some(symbol) = starting(block.start.get()) {
            let sum = entries.entry(symbol.function).or_default();
            *sum = sum.saturating_add(block.count);
        }
    }
    for edge in tables.edges.iter().filter(|edge| edge.count > 0) {
        let ends = lookup(edge.source.get()).zip(starting(edge.target.get()));
        if let Some((caller, callee)) = ends {
            let sum = arcs.entry((caller.function, callee.function)).or_default();
            *sum = sum.saturating_add(edge.count);
        }
    }
    (entries, arcs)
}
