//! Puts together what was found.

use super::collector::{Found, Seen};
use super::followed::Gate;
use super::layout::Layout;
use super::model::{Anatomy, Before, Call, Node, Reached};
use crate::Missing;
use kerntune_profile::{FunctionIndex, How as Word};
use kerntune_trace::How;

/// Of all calls, and of single ones: the typical, the worst, and the typical before the boundary.
pub(super) fn build(found: Found, single: [Option<Found>; 3], missing: Vec<Missing>, events: u64) -> Anatomy {
    let layout = Layout::of(&found.tree);
    let of = |one: &Option<Found>| layout.sums(one.as_ref().map_or(&[], |one| one.sums.as_slice()));
    let [typical, worst, gate] = single.each_ref().map(of);
    let all = layout.sums(&found.sums);
    let node = |(place, node): (usize, &u32)| {
        let of = found.tree.nodes[*node as usize];
        Node {
            function: FunctionIndex(of.function),
            how: word(of.how),
            depth: layout.depths[place],
            len: layout.lengths[place],
            all: all[place],
            typical: typical[place],
            worst: worst[place],
            gate: gate[place],
        }
    };
    // A tree of calls that were all thrown away has nodes where nothing happened.
    let nodes: Vec<Node> = match found.all.ns.count() {
        0 => Vec::new(),
        _ => layout.nodes.iter().enumerate().map(node).collect(),
    };
    let call = |one: &Option<Found>| one.as_ref().and_then(|one| one.call).map(|seen| call(&layout, seen));
    let [typical, worst, gate] = single.each_ref().map(call);
    let first = found.first.iter().map(|(function, calls)| (FunctionIndex(*function), *calls));
    Anatomy {
        nodes,
        all: found.all.spreads(),
        typical,
        worst,
        before: Before {
            spreads: found.before.spreads(),
            after_ns: found.after.spread(),
            functions: first.collect(),
            typical: gate,
        },
        cut: found.cut,
        elsewhere: found.elsewhere,
        crowded: found.crowded,
        folded: found.folded,
        missing,
        events,
    }
}

fn call(layout: &Layout, seen: Seen) -> Call {
    let reached = |gate: Gate| Reached {
        function: FunctionIndex(gate.function),
        from: layout.places[gate.node as usize] as usize,
        figures: gate.figures,
    };
    Call { begin_ns: seen.begin, thread: seen.thread, figures: seen.figures, before: seen.gate.map(reached) }
}

fn word(how: How) -> Word {
    match how {
        How::Call => Word::Call,
        How::Jump => Word::Jump,
        How::Interrupt => Word::Interrupt,
        How::Exception => Word::Exception,
        How::Syscall => Word::Syscall,
    }
}
