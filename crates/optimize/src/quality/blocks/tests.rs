//! Tests with machine code of small functions.

use super::graph::{BlockExit, CodeGraph, EdgeRole};
use super::inference::{infer, BlockFlow, KnownCount, KnownCounts};
use super::likeness::{match_blocks, BlockLikeness};
use super::rows::{inner_edges, straight_rows};
use kerntune_profile::EdgeKind;
use proptest::prelude::*;

/// `test %edi,%edi; je 1f; mov OFFSET(%rsi),%eax; call 0x9000; jmp 2f; 1: lea 3(%rdi),%eax;
/// imul %eax,%eax; 2: sub $1,%edi; jne 1b; ret`: a branch, a call, a join and a loop.
fn code(address: u64, offset: u8) -> Vec<u8> {
    let mut code = vec![0x85, 0xff, 0x74, 0x0a, 0x8b, 0x46, offset, 0xe8];
    code.extend((0x9000i64 - (address as i64 + 12)).to_le_bytes()[..4].iter());
    code.extend([0xeb, 0x06, 0x8d, 0x47, 0x03, 0x0f, 0xaf, 0xc0, 0x83, 0xef, 0x01, 0x75, 0xf5, 0xc3]);
    code
}

fn named(address: u64) -> Option<&'static str> {
    match address {
        0x9000..0x9100 => Some("callee"),
        0x9100..0x9200 => Some("__fentry__"),
        _ => None,
    }
}

fn graph(address: u64, offset: u8) -> CodeGraph {
    CodeGraph::of(&code(address, offset), address, named, &[])
}

/// Checks that what enters each block leaves it.
fn is_conserved(graph: &CodeGraph, flow: &BlockFlow) -> bool {
    let sum = |edges: &[usize]| edges.iter().map(|edge| flow.edges[*edge]).sum::<u64>();
    (0..graph.blocks.len()).all(|at| {
        let (into, out) =
            (sum(&graph.entering[at]) + flow.entered[at], sum(&graph.leaving[at]) + flow.left[at]);
        into == flow.blocks[at] && out == flow.blocks[at]
    })
}

/// Returns the counts of walks through a function; the numbers choose among the ways on.
fn walked(graph: &CodeGraph, walks: &[Vec<u8>]) -> (Vec<u64>, Vec<u64>) {
    let (mut blocks, mut edges) = (vec![0; graph.blocks.len()], vec![0; graph.edges.len()]);
    for walk in walks {
        let (mut at, mut choices) = (0, walk.iter());
        loop {
            blocks[at] += 1;
            let ways = &graph.leaving[at];
            if ways.is_empty() {
                break;
            }
            // Without choices the walk falls through to the end.
            let edge = choices.next().map_or(ways[0], |choice| ways[usize::from(*choice) % ways.len()]);
            edges[edge] += 1;
            at = graph.edges[edge].to;
        }
    }
    (blocks, edges)
}

fn known(counts: &[u64], likeness: BlockLikeness) -> Vec<Option<KnownCount>> {
    counts.iter().map(|&count| Some(KnownCount { count, likeness })).collect()
}

#[test]
fn blocks_end_at_branches_and_calls() {
    let graph = graph(0x1000, 8);
    let exits: Vec<BlockExit> = graph.blocks.iter().map(|block| block.exit).collect();
    use BlockExit::{Call, Conditional, End, Jump, Next};
    assert_eq!(exits, [Conditional, Call(0x9000), Jump, Next, Conditional, End]);
    assert_eq!(graph.successor(0, EdgeRole::Taken), Some(3));
    assert_eq!((graph.successor(1, EdgeRole::Fall), graph.successor(2, EdgeRole::Fall)), (Some(2), None));
    assert_eq!((graph.blocks[0].start, graph.blocks[5].end), (0x1000, 0x101a));
}

#[test]
fn the_kernel_may_patch_nops_and_repeat_strings() {
    // rep stosq; nopl (5 bytes); ret; xor %eax,%eax; ret, with a jump recorded at the NOP.
    let code = [0xf3, 0x48, 0xab, 0x0f, 0x1f, 0x44, 0, 0, 0xc3, 0x31, 0xc0, 0xc3];
    let graph = CodeGraph::of(&code, 0x1000, named, &[(0x1003, 0x1009)]);
    let exits: Vec<BlockExit> = graph.blocks.iter().map(|block| block.exit).collect();
    assert_eq!(exits, [BlockExit::Repeat, BlockExit::Patched, BlockExit::End, BlockExit::End]);
    assert_eq!(
        (graph.successor(0, EdgeRole::Taken), graph.successor(1, EdgeRole::Taken)),
        (Some(0), Some(3))
    );
}

#[test]
fn moved_code_matches_exactly_and_other_registers_loosely() {
    let here = graph(0x1000, 8);
    for (offset, address) in [(8, 0x2300), (40, 0x2300)] {
        let moved = graph(address, offset);
        let matches = match_blocks(&here, &moved, true, &[], &[]);
        for (at, found) in matches.iter().enumerate() {
            let found = found.unwrap();
            // A jump alone has no contents.
            let likeness = if at == 2 { BlockLikeness::Place } else { BlockLikeness::Exact };
            assert_eq!((found.from, found.likeness), (at, likeness));
        }
    }
    // `lea 3(%rbx),%ecx; imul %ecx,%ecx` instead.
    let mut other = code(0x1000, 8);
    other[14..20].copy_from_slice(&[0x8d, 0x4b, 0x03, 0x0f, 0xaf, 0xc9]);
    let other = CodeGraph::of(&other, 0x1000, named, &[]);
    let found = match_blocks(&here, &other, true, &[], &[])[3].unwrap();
    assert_eq!((found.from, found.likeness), (3, BlockLikeness::Loose));
}

#[test]
fn the_opposite_condition_swaps_the_ways() {
    // `test %edi,%edi; je 1f; mov $1,%eax; ret; 1: bsf %edi,%eax; ret`, and with jne the other way
    // round and other contents.
    let here = [0x85, 0xff, 0x74, 0x06, 0xb8, 1, 0, 0, 0, 0xc3, 0x0f, 0xbc, 0xc7, 0xc3];
    let there = [0x85, 0xff, 0x75, 0x04, 0x0f, 0xbc, 0xc7, 0xc3, 0x31, 0xc0, 0xff, 0xc0, 0xc3];
    let [here, there] = [here.as_slice(), &there].map(|code| CodeGraph::of(code, 0x1000, named, &[]));
    let found =
        match_blocks(&here, &there, true, &[], &[]).into_iter().map(|found| found.map(|found| found.from));
    assert_eq!(found.collect::<Vec<_>>(), [Some(0), Some(2), Some(1)]);
}

#[test]
fn rows_are_those_of_a_recorder() {
    let graph = graph(0x1000, 8);
    // 10 entries, 7 of them call; the loop repeats 5 times.
    let flow = BlockFlow {
        blocks: vec![10, 7, 7, 8, 15, 10],
        edges: graph
            .edges
            .iter()
            .map(|edge| match (edge.from, edge.to) {
                (0, 1) => 7,
                (0, 3) => 3,
                (3, 4) => 8,
                (4, 3) => 5,
                (4, 5) => 10,
                _ => 7,
            })
            .collect(),
        entered: vec![10, 0, 0, 0, 0, 0],
        left: vec![0, 0, 0, 0, 0, 10],
    };
    assert!(is_conserved(&graph, &flow));
    let rows = straight_rows(&graph, &flow);
    let rows: Vec<_> =
        rows.iter().map(|row| (row.start.get(), row.last.get(), row.count, row.bytes)).collect();
    let expected = [
        (0x1000, 0x1002, 10, 4),
        (0x1004, 0x1007, 7, 8),
        (0x100c, 0x100c, 7, 2),
        (0x100e, 0x1017, 8, 11),
        (0x1014, 0x1017, 7, 5),
        (0x1019, 0x1019, 10, 1),
    ];
    assert_eq!(rows, expected);
    let edges = inner_edges(&graph, &flow);
    let edges: Vec<_> =
        edges.iter().map(|edge| (edge.source.get(), edge.target.get(), edge.count, edge.kind)).collect();
    let expected = [
        (0x1002, 0x100e, 3, EdgeKind::Conditional),
        (0x100c, 0x1014, 7, EdgeKind::Jump),
        (0x1017, 0x100e, 5, EdgeKind::Conditional),
        (0x1007, 0x9000, 7, EdgeKind::Call),
    ];
    assert_eq!(edges, expected);
}

#[test]
fn unknown_ways_share_what_goes_through() {
    let graph = graph(0x1000, 8);
    let only = |at: usize, count| {
        let mut blocks = vec![None; graph.blocks.len()];
        blocks[at] = Some(KnownCount { count, likeness: BlockLikeness::Exact });
        infer(&graph, &KnownCounts { blocks, edges: vec![None; graph.edges.len()] })
    };
    let flow = only(0, 1000);
    assert_eq!((flow.blocks[0], flow.blocks[5]), (1000, 1000));
    assert!(flow.blocks[1] > 0 && flow.blocks[3] > 0, "{flow:?}");
    assert!(is_conserved(&graph, &flow));
}

proptest! {
    /// Counts that fit together stay, to the digit.
    #[test]
    fn what_is_known_stays(walks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 1..20)) {
        let graph = graph(0x1000, 8);
        let (blocks, edges) = walked(&graph, &walks);
        for likeness in [BlockLikeness::Exact, BlockLikeness::Loose, BlockLikeness::Place] {
            let all = KnownCounts { blocks: known(&blocks, likeness), edges: known(&edges, likeness) };
            let flow = infer(&graph, &all);
            prop_assert_eq!((&flow.blocks, &flow.edges), (&blocks, &edges));
            // The counts of blocks determine those of the ways here.
            let alone = KnownCounts { edges: vec![None; edges.len()], ..all };
            let flow = infer(&graph, &alone);
            prop_assert_eq!((&flow.blocks, &flow.edges), (&blocks, &edges));
        }
    }

    /// Whatever is known, what enters a block leaves it.
    #[test]
    fn flow_is_conserved(
        blocks in prop::collection::vec(prop::option::of(0u64..1_000_000), 6),
        edges in prop::collection::vec(prop::option::of(0u64..1_000_000), 7),
    ) {
        let graph = graph(0x1000, 8);
        prop_assert_eq!((graph.blocks.len(), graph.edges.len()), (6, 7));
        let likeness = BlockLikeness::Loose;
        let of = |counts: Vec<Option<u64>>| -> Vec<Option<KnownCount>> {
            counts.into_iter().map(|count| count.map(|count| KnownCount { count, likeness })).collect()
        };
        let flow = infer(&graph, &KnownCounts { blocks: of(blocks), edges: of(edges) });
        prop_assert!(is_conserved(&graph, &flow), "{:?}", flow);
    }
}
