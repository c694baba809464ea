//! Builds the result from the collected calls.

use super::collector::{CollectedCalls, FoundCall};
use super::followed::BoundaryHit;
use super::layout::TreeLayout;
use super::model::{Anatomy, AnatomyNode, BoundaryEntry, BoundarySummary, ExampleCall};
use crate::known::call_kind;
use crate::MissingChunk;
use kerntune_profile::FunctionIndex;

/// Builds the result from all calls and three single ones: the typical, the worst, and the typical
/// one before the boundary.
pub(super) fn build(
    found: CollectedCalls,
    single: [Option<CollectedCalls>; 3],
    missing: Vec<MissingChunk>,
    events: u64,
) -> Anatomy {
    let layout = TreeLayout::of(&found.tree);
    let of = |one: &Option<CollectedCalls>| layout.sums(one.as_ref().map_or(&[], |one| one.sums.as_slice()));
    let [typical, worst, boundary] = single.each_ref().map(of);
    let all = layout.sums(&found.sums);
    let node = |(place, node): (usize, &u32)| {
        let of = found.tree.nodes[*node as usize];
        AnatomyNode {
            function: FunctionIndex(of.function),
            how: call_kind(of.how),
            depth: layout.depths[place],
            len: layout.lengths[place],
            all: all[place],
            typical: typical[place],
            worst: worst[place],
            boundary: boundary[place],
        }
    };
    // If all calls were discarded, the tree has nodes without any counts.
    let nodes: Vec<AnatomyNode> = match found.all.ns.count() {
        0 => Vec::new(),
        _ => layout.nodes.iter().enumerate().map(node).collect(),
    };
    let call =
        |one: &Option<CollectedCalls>| one.as_ref().and_then(|one| one.call).map(|seen| call(&layout, seen));
    let [typical, worst, boundary] = single.each_ref().map(call);
    let first = found.first.iter().map(|(function, calls)| (FunctionIndex(*function), *calls));
    Anatomy {
        nodes,
        all: found.all.spreads(),
        typical,
        worst,
        before: BoundarySummary {
            spreads: found.before.spreads(),
            after_ns: found.after.spread(),
            functions: first.collect(),
            typical: boundary,
        },
        cut: found.cut,
        elsewhere: found.elsewhere,
        crowded: found.crowded,
        folded: found.folded,
        missing,
        events,
    }
}

fn call(layout: &TreeLayout, seen: FoundCall) -> ExampleCall {
    let reached = |boundary: BoundaryHit| BoundaryEntry {
        function: FunctionIndex(boundary.function),
        from: layout.places[boundary.node as usize] as usize,
        figures: boundary.figures,
    };
    ExampleCall {
        begin_ns: seen.begin,
        thread: seen.thread,
        figures: seen.figures,
        before: seen.boundary.map(reached),
    }
}
