use super::*;
use crate::accounts::{AccountKey, ArcAccount};
use crate::accumulators::{RegionAccount, ThreadAccount};
use crate::known::TraceContext;
use crate::record::ChunkRecord;
use crate::AnalysisInput;
use kerntune_profile::{FunctionIndex, Symbol};
use kerntune_trace::{
    encode, CaptureSpec, ChunkHeader, ChunkState, OpenStack, RecordedRegion, RecordedThread, Recording,
    RecordingHealth, VERSION,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const FUNCTIONS: u32 = 8;

fn known() -> TraceContext {
    let thread = |i| RecordedThread { task: 0x1000 + u64::from(i), pid: i, tgid: i, comm: format!("t{i}") };
    let region = RecordedRegion {
        name: "r".into(),
        begin_ns: 0,
        elapsed_ns: 0,
        idle_ns: 0,
        operations: 0,
        depth: 0,
        closed: false,
        kernel: Default::default(),
        user: Default::default(),
        model_events: Vec::new(),
        cpus: Vec::new(),
    };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: FUNCTIONS - 3,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![region.clone(), region],
        threads: (0..3).map(thread).collect(),
        chunks: Vec::new(),
        events: 0,
        health: RecordingHealth::default(),
        notes: Vec::new(),
    };
    let symbol = |i| Symbol { function: FunctionIndex(i), name: format!("f{i}"), ..Symbol::default() };
    let symbols: Vec<Symbol> = (0..FUNCTIONS).map(symbol).collect();
    let trace: &[u8] = &[];
    let points = [("p".to_owned(), FunctionIndex(0))];
    TraceContext::new(
        &AnalysisInput { points: &points, ..AnalysisInput::new(&trace, &recording, &symbols) },
        false,
    )
}

/// All counters, independent of the order in which nodes and accounts were made.
#[derive(Debug)]
#[allow(dead_code)] // compared as text
struct ReplayCounts {
    accounts: Vec<(AccountKey, ArcAccount)>,
    nodes: Vec<(u32, u32, u32, u8, u64, u64)>,
    threads: BTreeMap<(u32, u32), ThreadAccount>,
    regions: Vec<RegionAccount>,
    rest: String,
}

impl ReplayCounts {
    fn of(mut sums: Accumulators) -> Self {
        let node = |n: &crate::tree::TreeNode| (n.region, n.parent, n.function, n.kind, n.self_time, n.calls);
        let rest = sums.take_sorted_counts();
        Self {
            nodes: sums.tree.nodes.iter().map(node).collect(),
            threads: std::mem::take(&mut sums.threads).into_iter().collect(),
            regions: sums.regions.clone(),
            rest: format!("{:?}", (rest.switches, rest.idles, rest.points)),
            accounts: sums.accounts.sorted(),
        }
    }
}

type ReplayOutcome = Result<(ReplayCounts, Vec<ChunkRecord>), String>;

/// Counts chunks, given with their beginnings, with or without a memo.
fn count(known: &TraceContext, payloads: &[(u64, Vec<u8>)], memo: Option<&mut ReplayMemo>) -> ReplayOutcome {
    let (mut machine, mut functions) = (ReplayState::new(known.bounds), FunctionCollector::new(known));
    let mut memo = memo;
    let mut records = Vec::new();
    for (number, (begin, payload)) in payloads.iter().enumerate() {
        let begin = *begin;
        let header = ChunkHeader {
            vcpu: 0,
            sequence: number as u32,
            events: 0,
            begin,
            end: begin,
            state: 0,
            payload: payload.len() as u32,
            compressed: 0,
        };
        let stack = |thread, frames: &[(u32, EnterKind)]| OpenStack {
            thread,
            running: thread == 1,
            frames: frames.to_vec(),
        };
        let stacks = vec![
            stack(1, &[(6, EnterKind::Call), (1, EnterKind::Syscall)]),
            stack(2, &[(2, EnterKind::Interrupt)]),
        ];
        let state = ChunkState { user: false, regions: vec![0], stacks, ..ChunkState::default() };
        let chunk = TraceChunk { number, header, state, payload, wide: false };
        let events = match &mut memo {
            Some(memo) => memo.replay(&mut machine, &mut functions, &chunk),
            None => events::replay(&mut machine, &mut functions, &chunk),
        };
        let events = events.map_err(|error| error.to_string())?;
        records.push(functions.end(&mut machine, begin, events, chunk.state));
    }
    if let Some(memo) = memo {
        memo.settle(&mut functions.sums);
    }
    Ok((ReplayCounts::of(functions.sums), records))
}

fn assert_same(payloads: &[(u64, Vec<u8>)]) -> ReplayMemo {
    let known = known();
    let mut memo = ReplayMemo::new(known.bounds);
    let plain = count(&known, payloads, None);
    let found = count(&known, payloads, Some(&mut memo));
    assert_eq!(format!("{found:?}"), format!("{plain:?}"));
    memo
}

fn any_event() -> impl Strategy<Value = Event> {
    let how = |how| (0..FUNCTIONS).prop_map(move |function| Event::Enter { function, how });
    prop_oneof![
        60 => how(EnterKind::Call),
        10 => how(EnterKind::Jump),
        1 => how(EnterKind::Interrupt),
        4 => how(EnterKind::Exception),
        10 => how(EnterKind::Syscall),
        60 => Just(Event::Exit),
        4 => Just(Event::Resume),
        8 => Just(Event::Leave),
        2 => (0u32..4).prop_map(|frames| Event::Unwind { frames }),
        2 => (0u32..3).prop_map(|thread| Event::Switch { thread }),
        1 => (0u64..90).prop_map(|ns| Event::Idle { ns }),
        1 => (0u32..2).prop_map(|region| Event::RegionBegin { region }),
        1 => (0u32..2).prop_map(|region| Event::RegionEnd { region }),
        1 => Just(Event::Point { point: 0 }),
        2 => Just(Event::Operation),
    ]
}

fn encoded(events: &[(u64, Event)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    events.iter().for_each(|(ns, event)| encode::event(&mut bytes, *ns, *event));
    bytes
}

/// Ends all frames of all threads, and continues with thread 1 in user mode.
fn reset() -> Vec<u8> {
    let thread = |thread| [(3, Event::Switch { thread }), (2, Event::Unwind { frames: 300 })];
    encoded(&[[(1, Event::Leave); 2], thread(2), thread(0), thread(1), [(1, Event::Leave); 2]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_repeats_counts_as_if_it_had_been_read_each_time(
        blocks in prop::collection::vec(prop::collection::vec((0u64..200, any_event()), 1..200), 1..4),
        order in prop::collection::vec((0usize..4, any::<bool>(), 0u8..10), 1..60),
        // Not always in order, as in a damaged trace.
        begins in prop::collection::vec(0u64..3_000_000, 1..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let blocks: Vec<Vec<u8>> = blocks.iter().map(|events| encoded(events)).collect();
        let mut payloads = vec![(begins[0], Vec::new())];
        for (block, is_reset, cut) in order {
            if cut == 0 {
                payloads.push((begins[payloads.len() % begins.len()], Vec::new()));
            }
            let (_, payload) = payloads.last_mut().unwrap();
            payload.extend_from_slice(&blocks[block % blocks.len()]);
            if is_reset {
                payload.extend(reset());
            }
        }
        let (_, payload) = payloads.last_mut().unwrap();
        for (place, byte) in changes {
            if !payload.is_empty() {
                let place = place.index(payload.len());
                payload[place] = byte;
            }
        }
        assert_same(&payloads);
    }
}

/// A system call of 82 events that begins `delay` ns after the event before it.
fn system_call(delay: u64) -> Vec<u8> {
    let enter = |function, how| Event::Enter { function, how };
    let call = |n: u32| [(u64::from(n), enter(1 + n % 4, EnterKind::Call)), (7, Event::Exit)];
    encoded(
        &[
            &[(delay, enter(0, EnterKind::Syscall))],
            (0..40).flat_map(call).collect::<Vec<_>>().as_slice(),
            &[(3, Event::Leave)],
        ]
        .concat(),
    )
}

#[test]
fn what_repeats_is_not_read_again() {
    let payload = [reset(), system_call(40).repeat(1_000)].concat();
    let memo = assert_same(&[(0, payload.clone()), (9_000_000, payload)]);
    let events = 2 * 82 * 1_000;
    assert!(memo.credit > INITIAL_CREDIT + events * 95 / 100, "{} of {events}", memo.credit - INITIAL_CREDIT);
}

#[test]
fn of_what_never_repeats_nothing_is_kept() {
    let calls = (0..3_000).flat_map(system_call);
    let memo = assert_same(&[(0, [reset(), calls.collect()].concat())]);
    assert_eq!((memo.runs.len(), memo.credit), (0, INITIAL_CREDIT));
}

#[test]
fn what_is_kept_is_bounded() {
    // Each twice, so that all of them are learned.
    let calls = (0..9_000).flat_map(|delay| system_call(delay).repeat(2));
    let memo = assert_same(&[(0, [reset(), calls.collect()].concat())]);
    assert!(
        memo.size <= MAX_RUN_BYTES && memo.credit < INITIAL_CREDIT - LEARNING_COST * 82 * 8_900,
        "{} {}",
        memo.size,
        memo.credit
    );
    assert!(memo.runs.len() < 8_900);
}
