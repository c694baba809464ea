//! Rows of a profile from the flow through a function.

use super::graph::{BlockExit, CodeGraph, EdgeRole};
use super::inference::BlockFlow;
use kerntune_profile::{Address, Block, Edge, EdgeKind, Instructions};

/// Returns the straight runs of a flow, as a recorder counts them: from where control arrives by a
/// branch, or behind one, to the next branch.
pub(in crate::quality) fn straight_rows(graph: &CodeGraph, flow: &BlockFlow) -> Vec<Block> {
    let mut rows = Vec::new();
    for (at, block) in graph.blocks.iter().enumerate() {
        let from_before = match at.checked_sub(1) {
            Some(before) if graph.blocks[before].exit == BlockExit::Next => flow.blocks[before],
            _ => 0,
        };
        let count = flow.blocks[at].saturating_sub(from_before);
        if count == 0 {
            continue;
        }
        let (mut end, mut instructions) = (at, block.instructions);
        while graph.blocks[end].exit == BlockExit::Next && end + 1 < graph.blocks.len() {
            end += 1;
            instructions += graph.blocks[end].instructions;
        }
        rows.push(Block {
            start: Address(block.start),
            last: Address(graph.blocks[end].last),
            count,
            instructions: Instructions(instructions),
            bytes: graph.blocks[end].end - block.start,
        });
    }
    rows
}

/// Returns the taken branches of a flow inside its function, and direct calls and jumps out of it.
pub(in crate::quality) fn inner_edges(graph: &CodeGraph, flow: &BlockFlow) -> Vec<Edge> {
    let mut rows = Vec::new();
    for (edge, count) in graph.edges.iter().zip(&flow.edges) {
        let block = &graph.blocks[edge.from];
        let kind = match block.exit {
            BlockExit::Conditional => EdgeKind::Conditional,
            BlockExit::IndirectJump => EdgeKind::IndirectJump,
            _ => EdgeKind::Jump,
        };
        // Repetitions of one instruction are no branches.
        if edge.role == EdgeRole::Taken && block.exit != BlockExit::Repeat {
            rows.push((block.last, graph.blocks[edge.to].start, *count, kind));
        }
    }
    for (block, (count, left)) in graph.blocks.iter().zip(flow.blocks.iter().zip(&flow.left)) {
        match block.exit {
            BlockExit::Call(target) => rows.push((block.last, target, *count, EdgeKind::Call)),
            BlockExit::Leave(target) => rows.push((block.last, target, *left, EdgeKind::Jump)),
            BlockExit::ConditionalLeave(target) => {
                rows.push((block.last, target, *left, EdgeKind::Conditional));
            }
            _ => {}
        }
    }
    let row = |(source, target, count, kind)| Edge {
        source: Address(source),
        target: Address(target),
        count,
        kind,
    };
    rows.into_iter().filter(|(_, _, count, _)| *count > 0).map(row).collect()
}
