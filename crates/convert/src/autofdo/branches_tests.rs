use super::*;
use kerntune_profile::{Address, Block, Edge, FunctionIndex, Instructions, Symbol};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::convert::Infallible;

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

fn records(tables: &Tables) -> Vec<BranchRecord> {
    let mut list = Vec::new();
    let Ok(()) = BranchRecords::of(tables).unwrap().each(&mut |record| {
        list.push(record);
        Ok::<(), Infallible>(())
    });
    list
}

/// Source (0 for none), target, last (0 for none) and count, with addresses relative to the base.
fn short(tables: &Tables) -> Vec<(u64, u64, u64, u64)> {
    let less = |address: Option<u64>| address.map_or(0, |address| address - BASE);
    let row = |r: BranchRecord| (less(r.source), r.target - BASE, less(r.last), r.count);
    let mut rows: Vec<_> = records(tables).into_iter().map(row).collect();
    rows.sort_unstable();
    rows
}

fn text(tables: &Tables) -> (String, BranchRecordTotals) {
    let mut text = Vec::new();
    let written = BranchRecords::of(tables).unwrap().write(&mut text).unwrap();
    (String::from_utf8(text).unwrap(), written)
}

/// Sums the counts of the runs that pass an address.
fn passed(records: &[BranchRecord], address: u64) -> u128 {
    let over = |r: &&BranchRecord| r.target <= address && r.last.is_some_and(|last| address <= last);
    records.iter().filter(over).map(|r| u128::from(r.count)).sum()
}

fn ran(tables: &Tables, address: u64) -> u128 {
    let over = |b: &&Block| b.start.get() <= address && address <= b.last.get();
    tables.blocks.iter().filter(over).map(|b| u128::from(b.count)).sum()
}

fn by_branch(rows: impl Iterator<Item = (u64, u64, u64)>) -> BTreeMap<(u64, u64), u128> {
    let mut sums = BTreeMap::new();
    rows.for_each(|(source, target, count)| *sums.entry((source, target)).or_default() += u128::from(count));
    sums
}

/// Asserts that the records have every branch of the tables with its count, and no other.
fn assert_branches(tables: &Tables, records: &[BranchRecord]) {
    let edges = tables.edges.iter().map(|e| (e.source.get(), e.target.get(), e.count));
    let found = records.iter().filter_map(|r| Some((r.source?, r.target, r.count)));
    assert_eq!(by_branch(edges), by_branch(found));
}

#[test]
fn a_loop_is_runs_from_branch_to_branch() {
    // Entered 10 times, 90 times back, left by falling through to a return.
    let blocks = vec![block(0, 8, 10), block(4, 8, 90), block(12, 16, 10)];
    let edges = vec![
        edge(0x80, 0, 10, EdgeKind::Call),
        edge(8, 4, 90, EdgeKind::Conditional),
        edge(16, 0x84, 10, EdgeKind::Return),
    ];
    let tables = tables(blocks, edges);
    // The oldest flows leave first: those from the call jump back, and the last of those that
    // jumped back fall through.
    let expected = [(8, 4, 8, 80), (8, 4, 16, 10), (16, 0x84, 0, 10), (0x80, 0, 8, 10)];
    assert_eq!(short(&tables), expected);
    let (text, written) = text(&tables);
    assert_eq!(written, BranchRecordTotals { stacks: 4, branches: 110, runs: 100, unexplained: 0 });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x100) @ 0xffffffff81000000]: x [kernel.kallsyms]_text"
    );
    let at = lines.iter().position(|line| *line == "80").unwrap();
    assert_eq!(
        lines[at + 1],
        " 0 0xffffffff81000008/0x0/P/-/-/0 0xffffffff81000008/0xffffffff81000004/P/-/-/0"
    );
    assert_eq!(lines.last(), Some(&" 0 0xffffffff81000010/0xffffffff81000084/P/-/-/0"));
}

#[test]
fn what_interrupts_take_and_bring_is_balanced() {
    // Of 10 that should fall through from the first, 3 were interrupted; 4 came back to the second.
    let tables = tables(vec![block(0, 4, 10), block(8, 12, 11)], vec![edge(0x80, 0, 9, EdgeKind::Call)]);
    // In total, one run has no source at each place.
    assert_eq!(short(&tables), [(0, 0, 12, 1), (0, 8, 12, 1), (0x80, 0, 12, 9)]);
    assert_eq!(text(&tables).1.unexplained, 2);
}

#[test]
fn no_run_goes_on_behind_a_jump_a_call_or_a_return() {
    for kind in EdgeKind::ALL {
        // Two of the ten branches are not in the edges, because an interrupt came first.
        let edges = vec![edge(0x80, 0, 10, EdgeKind::Call), edge(4, 0x40, 8, *kind)];
        let tables = tables(vec![block(0, 4, 10), block(8, 12, 2)], edges);
        let runs = short(&tables);
        match kind {
            EdgeKind::Conditional => assert!(runs.contains(&(0x80, 0, 12, 2)), "{runs:?}"),
            _ => assert_eq!(runs, [(0, 8, 12, 2), (4, 0x40, 0, 8), (0x80, 0, 4, 10)], "{kind:?}"),
        }
    }
}

#[test]
fn what_is_outside_of_the_image_opens_and_closes_but_is_not_there() {
    let module = 0xffff_ffff_c000_0000 - BASE;
    let blocks = vec![block(0, 4, 5), block(8, 8, 2), block(module, module + 4, 3)];
    let edges = vec![
        edge(module + 4, 0, 5, EdgeKind::IndirectCall),
        edge(4, module, 3, EdgeKind::Conditional),
        edge(8, 0x20, 0, EdgeKind::Jump),
    ];
    let tables = tables(blocks, edges);
    assert_eq!(short(&tables), [(module + 4, 0, 4, 3), (module + 4, 0, 8, 2)]);
    let records = BranchRecords::of(&tables).unwrap();
    assert_eq!((records.executed_bytes, records.outside_bytes), (48, 24));
}

#[test]
fn a_profile_without_counts_is_refused() {
    assert_eq!(BranchRecords::of(&tables(Vec::new(), Vec::new())).err(), Some(NoCounts));
    assert_eq!(BranchRecords::of(&tables(vec![block(0, 4, 0)], Vec::new())).err(), Some(NoCounts));
}

/// Instruction of the test machine below.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TestInstruction {
    Nothing,
    Branch(usize),
    Jump(usize),
}

/// Runs a program of four-byte instructions in blocks, as an emulator would: from the target of a
/// branch to the next branch, or to a page's end where translation stopped. `dice` decides branches
/// and interrupts.
fn execute(program: &[TestInstruction], pages: usize, dice: &[u8]) -> Tables {
    let address = |at: usize| BASE + 4 * at as u64;
    let mut blocks: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut edges: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut at = 0;
    for &die in dice {
        let from = at;
        while program[at] == TestInstruction::Nothing && (at + 1) % pages != 0 && at + 1 < program.len() {
            at += 1;
        }
        *blocks.entry((from, at)).or_default() += 1;
        let branch = match program[at] {
            TestInstruction::Branch(to) => (die % 2 == 0).then_some(to),
            TestInstruction::Jump(to) => Some(to),
            TestInstruction::Nothing => None,
        };
        let next = branch.unwrap_or(at + 1);
        if die > 230 || next >= program.len() {
            // An interrupt: the branch is not recorded, and control returns elsewhere without one.
            at = usize::from(die) % program.len();
        } else {
            if let Some(to) = branch {
                *edges.entry((at, to)).or_default() += 1;
            }
            at = next;
        }
    }
    let kind = |at: usize| {
        if let TestInstruction::Jump(_) = program[at] {
            EdgeKind::Jump
        } else {
            EdgeKind::Conditional
        }
    };
    let blocks =
        blocks.into_iter().map(|((from, last), count)| block(4 * from as u64, 4 * last as u64, count));
    let edges = edges.into_iter().map(|((from, to), count)| Edge {
        source: Address(address(from)),
        target: Address(address(to)),
        count,
        kind: kind(from),
    });
    tables(blocks.collect(), edges.collect())
}

fn program() -> impl Strategy<Value = Vec<TestInstruction>> {
    (2usize..24).prop_flat_map(|length| {
        let does = prop_oneof![
            4 => Just(TestInstruction::Nothing),
            3 => (0..length).prop_map(TestInstruction::Branch),
            1 => (0..length).prop_map(TestInstruction::Jump),
        ];
        proptest::collection::vec(does, length)
    })
}

prop_compose! {
    /// Blocks of any place and extent, in the image or not, and edges between any addresses.
    fn any_tables()(
        blocks in proptest::collection::vec((0u64..0x120, 0u64..12, any::<u64>(), 0u64..16, 0u8..4), 0..40),
        edges in proptest::collection::vec((0u64..0x120, 0u64..0x120, any::<u64>(), 0usize..6, 0u8..3), 0..60),
        size in 0u64..0x140,
    ) -> Tables {
        let count = |any: u64, small: u8| if small > 0 { any % 50 } else { any };
        let block = |(start, length, any, bytes, small): (u64, u64, u64, u64, u8)| Block {
            start: Address(BASE.wrapping_add(start)),
            last: Address(BASE.wrapping_add(start + length).wrapping_sub(2)),
            count: count(any, small),
            instructions: Instructions(any % 7),
            bytes: if small > 1 { bytes } else { any },
        };
        let edge = |(source, target, any, kind, small): (u64, u64, u64, usize, u8)| Edge {
            source: Address(if small > 1 { any } else { BASE + source }),
            target: Address(BASE + target),
            count: count(any, small),
            kind: EdgeKind::ALL[kind],
        };
        let mut tables = tables(
            blocks.into_iter().map(block).collect(),
            edges.into_iter().map(edge).collect(),
        );
        tables.symbols[0].size = size;
        tables
    }
}

proptest! {
    #[test]
    fn every_instruction_and_branch_keeps_its_count(
        program in program(),
        pages in 2usize..9,
        dice in proptest::collection::vec(any::<u8>(), 1..400),
    ) {
        let tables = execute(&program, pages, &dice);
        let records = records(&tables);
        for at in 0..program.len() as u64 {
            prop_assert_eq!(passed(&records, BASE + 4 * at), ran(&tables, BASE + 4 * at), "instruction {}", at);
        }
        assert_branches(&tables, &records);
        // No run goes past a jump.
        for record in &records {
            let Some(last) = record.last else { continue };
            let inner = ((record.target - BASE) / 4) as usize..((last - BASE) / 4) as usize;
            let behind = program[inner].iter().any(|does| matches!(does, TestInstruction::Jump(_)));
            let taken = |e: &Edge| e.kind == EdgeKind::Jump && (record.target..last).contains(&e.source.get());
            prop_assert!(!behind || !tables.edges.iter().any(taken), "{:?}", record);
        }
    }

    #[test]
    fn any_overlap_of_stretches_keeps_its_counts(
        blocks in proptest::collection::vec((0u64..40, 0u64..6, 0u64..30), 1..40),
        edges in proptest::collection::vec((0u64..48, 0u64..48, 1u64..30, 0usize..6), 0..60),
    ) {
        let blocks: Vec<Block> = blocks
            .into_iter()
            .map(|(start, length, count)| block(4 * start, 4 * (start + length), count + 1))
            .collect();
        let edge = |(source, target, count, kind)| edge(4 * source, 4 * target, count, EdgeKind::ALL[kind]);
        let tables = tables(blocks, edges.into_iter().map(edge).collect());
        let records = records(&tables);
        for at in 0..48 {
            prop_assert_eq!(passed(&records, BASE + 4 * at), ran(&tables, BASE + 4 * at));
        }
        assert_branches(&tables, &records);
        prop_assert!(records.iter().all(|record| record.count > 0));
    }

    #[test]
    fn any_tables_are_written_or_refused(tables in any_tables()) {
        if let Ok(records) = BranchRecords::of(&tables) {
            let mut text = Vec::new();
            let written = records.write(&mut text).unwrap();
            let stacks = text.iter().filter(|&&byte| byte == b'\n').count() / 2;
            prop_assert_eq!(written.stacks, stacks as u64);
        }
    }
}
