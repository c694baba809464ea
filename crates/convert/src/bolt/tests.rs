use super::*;
use kerntune_profile::{Address, Block, Edge, FunctionIndex, Instructions, Symbol};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BASE: u64 = 0xffff_ffff_8100_0000;

fn tables(blocks: Vec<Block>, edges: Vec<Edge>) -> Tables {
    let (function, address) = (FunctionIndex(0), Address(BASE));
    let symbol = Symbol { function, name: "f".into(), address, size: 0x100, file: None, module: None };
    Tables { symbols: vec![symbol], blocks, edges, ..Tables::default() }
}

/// Block of four-byte instructions; `last` is the address of one.
fn block(start: u64, last: u64, count: u64) -> Block {
    let bytes = last + 4 - start;
    let instructions = Instructions(bytes / 4);
    Block { start: Address(BASE + start), last: Address(BASE + last), count, instructions, bytes }
}

fn edge(source: u64, target: u64, count: u64, kind: EdgeKind) -> Edge {
    Edge { source: Address(BASE + source), target: Address(BASE + target), count, kind }
}

fn text(tables: &Tables) -> (String, PreAggregatedTotals) {
    let mut text = Vec::new();
    let written = PreAggregated::of(tables).unwrap().write(&mut text).unwrap();
    (String::from_utf8(text).unwrap(), written)
}

/// Reads the lines as BOLT does: branches and runs, each with the sum of its counts.
fn read(text: &str) -> BTreeMap<(char, u64, u64), u128> {
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (kind, rest) = words.split_first().unwrap();
        let address = |word: &str| u64::from_str_radix(word, 16).unwrap();
        let (from, to, count) = match (*kind, rest) {
            ("B", [from, to, count, "0"]) | ("F" | "f", [from, to, count]) => (from, to, count),
            _ => panic!("{line}"),
        };
        let kind = kind.chars().next().unwrap();
        *sums.entry((kind, address(from), address(to))).or_default() += count.parse::<u128>().unwrap();
    }
    sums
}

#[test]
fn branches_and_what_ran_between_them_are_in_bolts_form() {
    // Called 10 times, 90 times round the loop; behind the loop a call, and the code after its
    // return.
    let blocks = vec![block(0, 8, 10), block(4, 8, 90), block(12, 16, 10), block(20, 24, 10)];
    let edges = vec![
        edge(0x80, 0, 10, EdgeKind::Call),
        edge(8, 4, 90, EdgeKind::Conditional),
        edge(16, 0x40, 10, EdgeKind::Call),
        edge(0x44, 20, 10, EdgeKind::Return),
    ];
    let (text, written) = text(&tables(blocks, edges));
    let expected = "\
B ffffffff81000080 ffffffff81000000 10 0
B ffffffff81000008 ffffffff81000004 90 0
B ffffffff81000044 ffffffff81000014 10 0
B ffffffff81000010 ffffffff81000040 10 0
F ffffffff81000000 ffffffff81000008 10
F ffffffff81000004 ffffffff81000008 80
F ffffffff81000004 ffffffff81000010 10
f ffffffff81000014 ffffffff81000018 10
";
    assert_eq!(text, expected);
    assert_eq!(written, PreAggregatedTotals { branch_lines: 4, run_lines: 4, branches: 120, runs: 110 });
}

#[test]
fn runs_of_one_extent_share_a_line_and_fit_into_a_number() {
    // Two callers, and the largest number of calls.
    let blocks = vec![block(0, 8, u64::MAX)];
    let edges = vec![edge(0x80, 0, u64::MAX / 2, EdgeKind::Call), edge(0x90, 0, 77, EdgeKind::Jump)];
    let (text, written) = text(&tables(blocks, edges));
    assert_eq!(written.run_lines, 1);
    assert_eq!(written.runs, u128::from(u64::MAX));
    let last = text.lines().last().unwrap();
    assert_eq!(last, format!("F ffffffff81000000 ffffffff81000008 {}", i64::MAX));
}

#[test]
fn a_profile_without_counts_is_refused() {
    assert_eq!(PreAggregated::of(&tables(Vec::new(), Vec::new())).err(), Some(NoCounts));
}

proptest! {
    #[test]
    fn nothing_is_lost_or_added(
        blocks in proptest::collection::vec((0u64..40, 0u64..6, 0u64..30), 1..40),
        edges in proptest::collection::vec((0u64..48, 0u64..48, 1u64..30, 0usize..6), 0..60),
    ) {
        let blocks: Vec<Block> = blocks
            .into_iter()
            .map(|(start, length, count)| block(4 * start, 4 * (start + length), count + 1))
            .collect();
        let edge = |(source, target, count, kind)| edge(4 * source, 4 * target, count, EdgeKind::ALL[kind]);
        let tables = tables(blocks, edges.into_iter().map(edge).collect());
        let (text, written) = text(&tables);
        let read = read(&text);

        let mut branches: BTreeMap<(char, u64, u64), u128> = BTreeMap::new();
        for edge in &tables.edges {
            *branches.entry(('B', edge.source.get(), edge.target.get())).or_default() += u128::from(edge.count);
        }
        let found: BTreeMap<_, _> = read.iter().filter(|((kind, ..), _)| *kind == 'B').map(|(k, v)| (*k, *v)).collect();
        prop_assert_eq!(found, branches);
        for at in (0..48).map(|at| BASE + 4 * at) {
            let over = |start: u64, last: u64| start <= at && at <= last;
            let ran: u128 = tables.blocks.iter().filter(|b| over(b.start.get(), b.last.get())).map(|b| u128::from(b.count)).sum();
            let runs = read.iter().filter(|((kind, start, last), _)| *kind != 'B' && over(*start, *last));
            prop_assert_eq!(runs.map(|(_, count)| *count).sum::<u128>(), ran);
        }
        let lines = text.lines().count() as u64;
        prop_assert_eq!(written.branch_lines + written.run_lines, lines);
        // There are no more runs after returns than returns.
        let returns: u128 = tables.edges.iter().filter(|e| e.kind == EdgeKind::Return).map(|e| u128::from(e.count)).sum();
        let returned: u128 = read.iter().filter(|((kind, ..), _)| *kind == 'f').map(|(_, count)| *count).sum();
        let shared = tables.edges.iter().any(|e| {
            e.kind != EdgeKind::Return
                && tables.edges.iter().any(|r| r.kind == EdgeKind::Return && r.source == e.source)
        });
        prop_assert!(shared || returned <= returns);
    }
}
