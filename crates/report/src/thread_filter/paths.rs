//! Restriction of a profile to threads by its call paths.

use super::{is_root, root_of, SelectedThreads, ThreadTables};
use crate::{Error, Result};
use kerntune_profile::{
    CallArc, CallKind, FunctionIndex, FunctionStats, FunctionTotals, PathKind, PathNode, Profile, Ticks,
};
use std::collections::{BTreeMap, BTreeSet};

/// Builds functions and arcs from the paths below the threads' roots.
pub(super) fn read(profile: &Profile, chosen: &SelectedThreads) -> Result<ThreadTables> {
    let tables = &profile.tables;
    let names: BTreeSet<(PathKind, String)> = chosen.threads.values().map(root_of).collect();
    // Threads of one name share a root.
    let mixed = tables.threads.iter().find(|row| !chosen.contains(row) && names.contains(&root_of(row)));
    if let Some(row) = mixed {
        return Err(Error::ThreadsOfOneName { name: row.comm.clone() });
    }
    let mut within = vec![false; tables.paths.len()];
    let mut place: Vec<u32> = vec![PathNode::ROOT; tables.paths.len()];
    let mut paths: Vec<PathNode> = Vec::new();
    for (at, node) in tables.paths.iter().enumerate() {
        within[at] = match within.get(node.parent as usize) {
            Some(above) => *above,
            None => is_root(node.kind, &node.comm, &names),
        };
        if within[at] {
            let parent = place.get(node.parent as usize).copied().unwrap_or(PathNode::ROOT);
            place[at] = paths.len() as u32;
            paths.push(PathNode { path: place[at], parent, ..node.clone() });
        }
    }
    let mut functions: BTreeMap<(u32, FunctionIndex), FunctionTotals> = BTreeMap::new();
    let mut arcs: BTreeMap<(u32, FunctionIndex, FunctionIndex, CallKind), (u64, u64)> = BTreeMap::new();
    let mut in_functions: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for (node, elapsed) in
        paths.iter().zip(PathNode::totals(&paths)).filter(|(node, _)| node.kind == PathKind::Function)
    {
        let none = FunctionTotals::none(node.function);
        let part =
            FunctionTotals { calls: node.calls, self_ticks: node.self_ticks, total_ticks: elapsed, ..none };
        functions.entry((node.region, node.function)).or_insert(none).add(&part);
        let above = paths.get(node.parent as usize).filter(|above| above.kind == PathKind::Function);
        let caller = above.filter(|_| node.how != CallKind::Interrupt);
        let caller = caller.map_or(FunctionIndex::NONE, |above| above.function);
        let (calls, time) = arcs.entry((node.region, caller, node.function, node.how)).or_default();
        *calls = calls.saturating_add(node.calls);
        *time = time.saturating_add(elapsed.get());
        let symbol = tables.symbols.get(node.function.get() as usize);
        // Kernel modules count as kernel; a program's module is a path.
        let user = symbol.and_then(|symbol| symbol.module.as_deref()).is_some_and(|file| file.contains('/'));
        let sum = &mut in_functions.entry(node.region).or_default()[usize::from(user)];
        *sum = sum.saturating_add(node.self_ticks.get());
    }
    let arc = |((region, caller, callee, how), (calls, elapsed)): ((u32, _, _, _), (u64, u64))| CallArc {
        region,
        caller,
        callee,
        how,
        calls,
        ended: calls,
        total_ticks: Ticks(elapsed),
    };
    let row = |((region, _), totals): ((u32, FunctionIndex), FunctionTotals)| -> FunctionStats {
        totals.row(region)
    };
    Ok(ThreadTables {
        functions: functions.into_iter().map(row).collect(),
        arcs: arcs.into_iter().map(arc).collect(),
        histograms: Vec::new(),
        paths,
        in_functions,
        events: 0,
    })
}
