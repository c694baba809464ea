use super::*;
use crate::TraceFile;
use kerntune_trace::{
    encode, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, OpenStack, RecordedThread, Recording,
    RecordingHealth, TraceFileWriter, TraceHeader, WaitingCpu, VERSION,
};
use proptest::prelude::*;
use std::ops::ControlFlow;

pub(super) const USER: CpuHolder = CpuHolder { lane: TimelineLane::Thread(0), user: true };
pub(super) const KERNEL: CpuHolder = CpuHolder { lane: TimelineLane::Thread(0), user: false };
pub(super) const OTHER: CpuHolder = CpuHolder { lane: TimelineLane::Thread(1), user: false };
pub(super) const INTERRUPT: CpuHolder = CpuHolder { lane: TimelineLane::Interrupt, user: false };
pub(super) const IDLE: CpuHolder = CpuHolder { lane: TimelineLane::Idle, user: false };

/// A chunk: begin, initial state, events.
pub(super) type ChunkFixture = (u64, ChunkState, Vec<(u64, Event)>);

pub(super) fn enter(function: u32, how: EnterKind) -> Event {
    Event::Enter { function, how }
}

/// Thread, whether it runs, its frames.
pub(super) type OpenStackFixture<'a> = (u32, bool, &'a [(u32, EnterKind)]);

pub(super) fn state(user: bool, stacks: &[OpenStackFixture]) -> ChunkState {
    let open = |&(thread, running, frames): &OpenStackFixture| OpenStack {
        thread,
        running,
        frames: frames.to_vec(),
    };
    ChunkState { user, regions: vec![0], stacks: stacks.iter().map(open).collect(), ..ChunkState::default() }
}

pub(super) fn length(events: &[(u64, Event)]) -> u64 {
    let idle = |event: &Event| if let Event::Idle { ns } = event { *ns } else { 0 };
    events.iter().map(|(delta, event)| delta + idle(event)).sum()
}

/// Kernel functions are 0 to 9, 10 is unknown code, 11 and later are the user's. There are as many
/// CPUs as the first chunk has.
pub(super) fn trace(chunks: &[ChunkFixture]) -> (Vec<u8>, Recording) {
    let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide: false }).unwrap();
    for (sequence, (begin, state, events)) in chunks.iter().enumerate() {
        let mut raw = Vec::new();
        state.write(&mut raw);
        let size = raw.len();
        events.iter().for_each(|(delta, event)| encode::event(&mut raw, *delta, *event));
        let header = ChunkHeader {
            vcpu: 0,
            sequence: sequence as u32,
            events: events.len() as u32,
            begin: *begin,
            end: begin + length(events),
            state: size as u32,
            payload: (raw.len() - size) as u32,
            compressed: 0,
        };
        writer.chunk(header, &raw).unwrap();
    }
    let cpus = chunks.first().map_or(1, |(_, state, _)| 1 + state.waiting.len() as u32);
    let (bytes, chunks) = writer.finish().unwrap();
    let thread = |pid| RecordedThread { task: u64::from(pid), pid, tgid: pid, comm: format!("t{pid}") };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: 10,
        first_loaded: None,
        cpus,
        per_cpu: Vec::new(),
        regions: vec![],
        threads: vec![thread(1), thread(2)],
        events: chunks.iter().map(|chunk| u64::from(chunk.events)).sum(),
        chunks,
        health: RecordingHealth::default(),
        notes: vec![],
    };
    (bytes, recording)
}

pub(super) fn whole(made: &[ChunkFixture], bins: u32) -> TimelineOverview {
    let (bytes, recording) = trace(made);
    let source = bytes.as_slice();
    overview(&TraceFile::open(&source, &recording).unwrap(), bins, &mut |_| ControlFlow::Continue(()))
        .unwrap()
}

pub(super) fn look(made: &[ChunkFixture], begin: u64, until: WindowEnd, calls: usize) -> WindowDetail {
    let (bytes, recording) = trace(made);
    let source = bytes.as_slice();
    detail(&TraceFile::open(&source, &recording).unwrap(), &DetailWindow { begin, until, calls }).unwrap()
}

/// 1000: user; 1010: system call of thread 0; 1015: it calls 2; 1020: interrupt 5; 1024: back;
/// 1030: 2 returns; 1032: switch to thread 1, which sleeps: halted 1040 to 1060; 1062: back to
/// thread 0; 1070: to user mode; 1100: the end.
pub(super) fn day() -> Vec<ChunkFixture> {
    let first = vec![
        (10, enter(1, EnterKind::Syscall)),
        (5, enter(2, EnterKind::Call)),
        (5, enter(5, EnterKind::Interrupt)),
        (4, Event::Resume),
        (6, Event::Exit),
        (2, Event::Switch { thread: 1 }),
    ];
    let second = vec![
        (8, Event::Idle { ns: 20 }),
        (2, Event::Switch { thread: 0 }),
        (8, Event::Leave),
        (20, Event::Operation),
        (10, Event::RegionEnd { region: 0 }),
    ];
    let begin = state(true, &[(0, true, &[]), (1, false, &[(3, EnterKind::Call)])]);
    let middle = state(false, &[(0, false, &[(1, EnterKind::Syscall)]), (1, true, &[(3, EnterKind::Call)])]);
    vec![(1000, begin, first), (1032, middle, second)]
}

#[test]
fn all_time_is_in_the_bins_and_the_holders_are_right() {
    let found = whole(&day(), 10);
    assert_eq!(found.spans, [RecordedSpan { begin: 1000, end: 1100, first_bin: 0, bins: 10 }]);
    let rows: Vec<_> = found.bins.iter().map(|bin| (bin.bin, bin.holder, bin.ns)).collect();
    assert_eq!(
        rows,
        [
            (0, USER, 10),
            (1, KERNEL, 10),
            (2, KERNEL, 6),
            (2, INTERRUPT, 4),
            (3, KERNEL, 2),
            (3, OTHER, 8),
            (4, IDLE, 10),
            (5, IDLE, 10),
            (6, KERNEL, 8),
            (6, OTHER, 2),
            (7, USER, 10),
            (8, USER, 10),
            (9, USER, 10),
        ]
    );
    // At least 10 ns long.
    let slices: Vec<_> = found.slices.iter().map(|slice| (slice.begin, slice.end, slice.holder)).collect();
    assert_eq!(slices, [(1000, 1010, USER), (1010, 1020, KERNEL), (1040, 1060, IDLE), (1070, 1100, USER)]);
}

/// CPU 1 begins halted. 1010: system call of thread 0 on CPU 0; 1020: CPU 1's turn; 1030: it halts;
/// 1040: CPU 0 is in user mode; 1050: CPU 1's turn; 1060: it halts; 1070 to 1090: both are halted.
fn day_of_two() -> Vec<ChunkFixture> {
    let waiting = vec![WaitingCpu { cpu: 1, thread: 1, user: false, halted: true }];
    let begin = ChunkState { waiting, ..state(true, &[(0, true, &[]), (1, false, &[])]) };
    let events = vec![
        (10, enter(1, EnterKind::Syscall)),
        (10, Event::Cpu { cpu: 1, halts: false }),
        (10, Event::Cpu { cpu: 0, halts: true }),
        (10, Event::Leave),
        (10, Event::Cpu { cpu: 1, halts: false }),
        (10, Event::Cpu { cpu: 0, halts: true }),
        (10, Event::Idle { ns: 20 }),
        (10, Event::Operation),
    ];
    vec![(1000, begin, events)]
}

#[test]
fn each_of_two_cpus_executes_waits_for_its_turn_or_is_halted() {
    let executes = |holder| CpuState { doing: CpuActivity::Executes, holder };
    let waits = |holder| CpuState { doing: CpuActivity::Waits, holder };
    let halted = CpuState { doing: CpuActivity::Halted, holder: IDLE };
    let expected = [
        vec![
            (1000, 1010, executes(USER)),
            (1010, 1020, executes(KERNEL)),
            (1020, 1030, waits(KERNEL)),
            (1030, 1040, executes(KERNEL)),
            (1040, 1050, executes(USER)),
            (1050, 1060, waits(USER)),
            (1060, 1070, executes(USER)),
            (1070, 1090, halted),
            (1090, 1100, executes(USER)),
        ],
        vec![
            (1000, 1020, halted),
            (1020, 1030, executes(OTHER)),
            (1030, 1050, halted),
            (1050, 1060, executes(OTHER)),
            (1060, 1100, halted),
        ],
    ];
    let lanes = |found: &[Vec<CpuSlice>]| -> Vec<Vec<_>> {
        let lane = |slices: &Vec<CpuSlice>| slices.iter().map(|s| (s.begin, s.end, s.state)).collect();
        found.iter().map(lane).collect()
    };
    let window = look(&day_of_two(), 1000, WindowEnd::Time(1100), 100);
    assert_eq!(lanes(&window.cpus), expected);
    let of_cpus: Vec<_> = window.slices.iter().map(|slice| (slice.end, slice.cpu)).collect();
    assert_eq!(
        of_cpus,
        [(1010, 0), (1020, 0), (1030, 1), (1040, 0), (1050, 0), (1060, 1), (1070, 0), (1090, 0), (1100, 0)]
    );

    // Ten bins of 10 ns: each slice is at least as long as one.
    let whole = whole(&day_of_two(), 10);
    assert_eq!(lanes(&whole.cpu_slices), expected);
    let sums: Vec<u64> = (0..2)
        .map(|cpu| whole.cpu_bins.iter().filter(|bin| bin.cpu == cpu).map(|bin| bin.ns).sum())
        .collect();
    assert_eq!(sums, [100, 100]);
}

#[test]
fn one_cpu_has_no_lane_of_its_own() {
    assert!(whole(&day(), 10).cpu_bins.is_empty());
    assert!(look(&day(), 1000, WindowEnd::Time(1100), 100).cpus.is_empty());
}

#[test]
fn a_gap_makes_a_new_span() {
    let mut made = day();
    made.push((5000, state(true, &[(0, true, &[])]), vec![(25, Event::Operation)]));
    let found = whole(&made, 10);
    let spans: Vec<_> =
        found.spans.iter().map(|span| (span.begin, span.end, span.first_bin, span.bins)).collect();
    assert_eq!(spans, [(1000, 1100, 0, 8), (5000, 5025, 8, 2)]);
    assert_eq!(found.bins.iter().map(|bin| bin.ns).sum::<u64>(), 125);
    assert_eq!(found.bins.last().unwrap().ns, 13, "12.5 ns, rounded to whole edges: 12 and 13");
}

fn rows(found: &WindowDetail) -> Vec<(u64, u64, u32, u32, u32, bool, bool)> {
    let row = |c: &WindowCall| (c.begin, c.end, c.thread, c.depth, c.function, c.cut_begin, c.cut_end);
    found.calls.iter().map(row).collect()
}

#[test]
fn a_window_shows_single_calls_across_chunks() {
    let found = look(&day(), 1000, WindowEnd::Operations(1), 100);
    assert_eq!(
        rows(&found),
        [
            (1000, 1090, 1, 0, 3, true, true),
            (1010, 1070, 0, 0, 1, false, false),
            (1015, 1030, 0, 1, 2, false, false),
            (1020, 1024, 0, 2, 5, false, false),
        ]
    );
    let slices: Vec<_> = found.slices.iter().map(|slice| (slice.begin, slice.end, slice.holder)).collect();
    assert_eq!(
        slices,
        [
            (1000, 1010, USER),
            (1010, 1020, KERNEL),
            (1020, 1024, INTERRUPT),
            (1024, 1032, KERNEL),
            (1032, 1040, OTHER),
            (1040, 1060, IDLE),
            (1060, 1062, OTHER),
            (1062, 1070, KERNEL),
            (1070, 1090, USER),
        ]
    );
    assert!(found.whole);
}

#[test]
fn a_window_from_the_middle_of_a_chunk_ends_with_its_call() {
    let found = look(&day(), 1015, WindowEnd::EndOf(2), 100);
    assert_eq!(
        rows(&found),
        [
            (1015, 1030, 0, 0, 1, true, true),
            (1015, 1030, 1, 0, 3, true, true),
            (1015, 1030, 0, 1, 2, false, false),
            (1020, 1024, 0, 2, 5, false, false),
        ]
    );
    assert!(found.whole);
    let short = look(&day(), 1015, WindowEnd::EndOf(2), 3);
    assert_eq!((short.end, short.whole, short.calls.len()), (1020, false, 3));
    let idle = look(&day(), 1045, WindowEnd::Time(1050), 100);
    assert_eq!(idle.slices, [HolderSlice { begin: 1045, end: 1050, holder: IDLE, cpu: 0 }]);
    assert!(idle.whole);
}

#[test]
fn a_window_ends_at_a_gap() {
    let mut made = day();
    made.push((5000, state(true, &[(0, true, &[])]), vec![(25, Event::Operation)]));
    let found = look(&made, 1095, WindowEnd::Time(6000), 100);
    assert_eq!((found.begin, found.end, found.whole), (1095, 1100, false));
}

#[test]
fn user_functions_stay_open_when_the_kernel_leaves() {
    let events = vec![
        (5, enter(12, EnterKind::Call)),
        (5, enter(1, EnterKind::Syscall)),
        (5, Event::Leave),
        (5, Event::Exit),
        (5, Event::Operation),
    ];
    let made = vec![(0, state(true, &[(0, true, &[])]), events)];
    let found = look(&made, 0, WindowEnd::Operations(1), 9);
    assert_eq!(rows(&found), [(5, 20, 0, 0, 12, false, false), (10, 15, 0, 1, 1, false, false)]);
    let holders: Vec<_> = found.slices.iter().map(|slice| (slice.end, slice.holder)).collect();
    assert_eq!(holders, [(10, USER), (15, KERNEL), (25, USER)]);
}

pub(super) fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0u32..13, 0usize..5).prop_map(|(function, how)| enter(
            function,
            [EnterKind::Call, EnterKind::Jump, EnterKind::Interrupt, EnterKind::Exception, EnterKind::Syscall][how]
        )),
        4 => Just(Event::Exit),
        1 => Just(Event::Resume),
        1 => Just(Event::Leave),
        1 => (0u32..4).prop_map(|frames| Event::Unwind { frames }),
        1 => (0u32..2).prop_map(|thread| Event::Switch { thread }),
        1 => (0u64..50).prop_map(|ns| Event::Idle { ns }),
        1 => Just(Event::Operation),
    ]
}

proptest! {
    /// Whatever the events: bins sum to the time, a window has no gap, calls lie within their
    /// callers.
    #[test]
    fn sums_and_nesting_hold(
        events in prop::collection::vec((0u64..30, any_event()), 1..80),
        bins in 1u32..40,
        begin in 0u64..300,
    ) {
        let all = length(&events);
        let made = vec![(100, state(true, &[(0, true, &[(4, EnterKind::Call)]), (1, false, &[])]), events)];
        let found = whole(&made, bins);
        prop_assert_eq!(found.bins.iter().map(|bin| bin.ns).sum::<u64>(), all);
        for span in &found.spans {
            for n in 0..span.bins {
                let of_bin = found.bins.iter().filter(|bin| bin.bin == span.first_bin + n);
                prop_assert_eq!(of_bin.map(|bin| bin.ns).sum::<u64>(), span.edge(n + 1) - span.edge(n));
            }
        }
        let begin = 100 + begin.min(all);
        let detail = look(&made, begin, WindowEnd::Time(u64::MAX), 1000);
        let mut at = detail.begin;
        for slice in &detail.slices {
            prop_assert_eq!(slice.begin, at);
            at = slice.end;
        }
        prop_assert_eq!(at, detail.end);
        let mut open: Vec<Vec<WindowCall>> = vec![Vec::new(); 3];
        for call in &detail.calls {
            prop_assert!(call.begin <= call.end && call.end <= detail.end);
            let stack = &mut open[call.thread as usize];
            stack.truncate(call.depth as usize);
            prop_assert_eq!(stack.len(), call.depth as usize);
            if let Some(caller) = stack.last() {
                prop_assert!(caller.begin <= call.begin && call.end <= caller.end);
            }
            stack.push(*call);
        }
    }
}
