//! Completion of the known counts of a function's blocks to a flow of least cost.
//!
//! Each block and each way between blocks is an arc. A known count has a price for every unit less
//! and for every unit more, by how sure it is; the flow that costs least is the result. Counts that
//! fit together from the beginning stay as they are. Blocks without a known count get what their
//! neighbors need; where there are several ways, flow divides among them, so that none of them looks
//! as if it never ran.

use super::graph::{BlockExit, CodeGraph};
use super::likeness::BlockLikeness;
use super::network::FlowNetwork;

/// Price of a unit; the prices of unknown arcs are a small part of it.
const UNIT: i64 = 1000;
/// Price of a unit that enters or leaves a function in the middle.
const IRREGULAR: i64 = 30 * UNIT;
/// Price of a unit that does not come back from a call, or enters code without a known way to it.
const UNUSUAL: i64 = 5 * UNIT;
/// Parts of the greatest known count up to which a unit on an unknown arc has the next price.
const PARTS: [u64; 5] = [1024, 256, 64, 16, 4];
/// Most blocks of a function whose flow is computed; larger ones keep the known counts.
const MAX_BLOCKS: usize = 4000;

/// Known count, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::quality) struct KnownCount {
    pub count: u64,
    pub likeness: BlockLikeness,
}

/// Known counts of a function, by number of block and of edge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::quality) struct KnownCounts {
    pub blocks: Vec<Option<KnownCount>>,
    pub edges: Vec<Option<KnownCount>>,
}

/// Counts of a function: what enters a block leaves it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::quality) struct BlockFlow {
    /// Executions of each block.
    pub blocks: Vec<u64>,
    /// Executions of each way between blocks.
    pub edges: Vec<u64>,
    /// Executions of each block that came from outside of the function, and that ended there.
    pub entered: Vec<u64>,
    pub left: Vec<u64>,
}

/// Computes the flow through `graph` that is nearest to what is known.
pub(in crate::quality) fn infer(graph: &CodeGraph, known: &KnownCounts) -> BlockFlow {
    let count = graph.blocks.len();
    if count == 0 || count > MAX_BLOCKS {
        return as_known(graph, known);
    }
    let (source, sink) = (2 * count, 2 * count + 1);
    let most =
        known.blocks.iter().chain(&known.edges).flatten().map(|known| known.count).max().unwrap_or_default();
    let limit = most.saturating_mul(4).saturating_add(1);
    let mut network = FlowNetwork::new(2 * count + 2);
    network.add(sink, source, u64::MAX / 4, 0);
    let mut arcs = |from, to, known: Option<KnownCount>, prices: [i64; 2]| -> Vec<usize> {
        match known {
            Some(known) => {
                let [less, more] = prices;
                vec![network.add(from, to, known.count, -less), network.add(from, to, limit, more)]
            }
            None => {
                let mut before = 0;
                let mut parts: Vec<usize> = Vec::new();
                for (part, price) in PARTS.iter().zip(1..) {
                    let room = (most / part).saturating_sub(before);
                    before += room;
                    if room > 0 {
                        parts.push(network.add(from, to, room, price));
                    }
                }
                parts.push(network.add(from, to, limit, PARTS.len() as i64 + 1));
                parts
            }
        }
    };
    let mut blocks = Vec::with_capacity(count);
    let mut ends = Vec::with_capacity(count);
    for at in 0..count {
        let of = known.blocks.get(at).copied().flatten();
        blocks.push(arcs(2 * at, 2 * at + 1, of, block_prices(of)));
    }
    let edges: Vec<Vec<usize>> = (graph.edges.iter().enumerate())
        .map(|(at, edge)| {
            let of = known.edges.get(at).copied().flatten();
            arcs(2 * edge.from + 1, 2 * edge.to, of, edge_prices(of))
        })
        .collect();
    for (at, block) in graph.blocks.iter().enumerate() {
        let enter = match at {
            0 => 0,
            _ if graph.entering[at].is_empty() => UNUSUAL,
            _ => IRREGULAR,
        };
        let leave = match block.exit {
            BlockExit::End
            | BlockExit::Leave(_)
            | BlockExit::ConditionalLeave(_)
            | BlockExit::IndirectJump => 0,
            _ if graph.leaving[at].is_empty() => 0,
            BlockExit::Call(_) | BlockExit::IndirectCall => UNUSUAL,
            _ => IRREGULAR,
        };
        ends.push([network.add(source, 2 * at, limit, enter), network.add(2 * at + 1, sink, limit, leave)]);
    }
    network.solve();
    let sum = |arcs: &Vec<usize>| arcs.iter().fold(0u64, |sum, arc| sum.saturating_add(network.flow(*arc)));
    BlockFlow {
        blocks: blocks.iter().map(sum).collect(),
        edges: edges.iter().map(sum).collect(),
        entered: ends.iter().map(|[enter, _]| network.flow(*enter)).collect(),
        left: ends.iter().map(|[_, leave]| network.flow(*leave)).collect(),
    }
}

fn as_known(graph: &CodeGraph, known: &KnownCounts) -> BlockFlow {
    let counts = |known: &[Option<KnownCount>], len: usize| -> Vec<u64> {
        (0..len).map(|at| known.get(at).copied().flatten().map_or(0, |known| known.count)).collect()
    };
    let blocks = counts(&known.blocks, graph.blocks.len());
    let leaves = |at: usize| matches!(graph.blocks[at].exit, BlockExit::Leave(_));
    BlockFlow {
        left: (0..blocks.len()).map(|at| if leaves(at) { blocks[at] } else { 0 }).collect(),
        entered: vec![0; blocks.len()],
        edges: counts(&known.edges, graph.edges.len()),
        blocks,
    }
}

/// Returns the prices of a unit less and of a unit more.
fn block_prices(known: Option<KnownCount>) -> [i64; 2] {
    match known.map(|known| known.likeness) {
        Some(BlockLikeness::Exact) => [20 * UNIT, 10 * UNIT],
        Some(BlockLikeness::Loose) => [8 * UNIT, 4 * UNIT],
        Some(BlockLikeness::Place) => [2 * UNIT, UNIT],
        None => [0, 0],
    }
}

/// As [`block_prices`]: how blocks are connected is less sure than that they ran.
fn edge_prices(known: Option<KnownCount>) -> [i64; 2] {
    block_prices(known).map(|price| price / 4)
}
