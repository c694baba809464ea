use super::tests::{any_event, day, enter, length, look, state, trace, whole, ChunkFixture};
use super::*;
use crate::TraceFile;
use kerntune_trace::{EnterKind, Event, RecordedRegion};
use proptest::prelude::*;
use std::ops::ControlFlow;

/// A sink that records all calls.
#[derive(Default)]
struct RecordingSink {
    /// Begin and function of each open call, by thread.
    open: Vec<Vec<(u64, u32)>>,
    /// Thread, function, begin, end.
    calls: Vec<(u32, u32, u64, u64)>,
    slices: Vec<HolderSlice>,
    cpus: Vec<(u32, CpuSlice)>,
    /// Number, begin, end.
    regions: Vec<(u32, u64, u64)>,
    open_regions: Vec<(u32, u64)>,
    room: Option<usize>,
}

impl TimelineSink for RecordingSink {
    fn is_full(&self) -> bool {
        self.room.is_some_and(|room| self.slices.len() >= room)
    }
    fn enter(&mut self, at: u64, thread: u32, function: u32, _: EnterKind) {
        self.open.resize_with(8, Vec::new);
        self.open[thread as usize].push((at, function));
    }
    fn exit(&mut self, at: u64, thread: u32) {
        let (begin, function) = self.open[thread as usize].pop().expect("an open call");
        self.calls.push((thread, function, begin, at));
    }
    fn ran(&mut self, slice: HolderSlice, _: u32) {
        self.slices.push(slice);
    }
    fn cpu(&mut self, cpu: u32, slice: CpuSlice) {
        self.cpus.push((cpu, slice));
    }
    fn region_begun(&mut self, at: u64, region: u32) {
        self.open_regions.push((region, at));
    }
    fn region_ended(&mut self, at: u64, region: u32) {
        let (begun, begin) = self.open_regions.pop().expect("an open region");
        assert_eq!(begun, region);
        self.regions.push((region, begin, at));
    }
}

fn tell(
    made: &[ChunkFixture],
    part: &StreamSelection,
    room: Option<usize>,
) -> (RecordingSink, StreamSummary) {
    let (bytes, mut recording) = trace(made);
    recording.regions = (0..2).map(|number| region(number * 1000)).collect();
    let source = bytes.as_slice();
    let trace = TraceFile::open(&source, &recording).unwrap();
    let mut told = RecordingSink { room, ..RecordingSink::default() };
    let streamed = stream(&trace, part, &mut told, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(told.open.iter().all(Vec::is_empty) && told.open_regions.is_empty());
    (told, streamed)
}

/// A region that is open from `begin_ns` on.
fn region(begin_ns: u64) -> RecordedRegion {
    RecordedRegion {
        name: "r".into(),
        begin_ns,
        elapsed_ns: 0,
        idle_ns: 0,
        operations: 0,
        depth: 0,
        closed: false,
        kernel: Default::default(),
        user: Default::default(),
        model_events: Vec::new(),
        cpus: Vec::new(),
    }
}

#[test]
fn all_of_a_trace_is_told_in_order() {
    let (told, streamed) = tell(&day(), &StreamSelection::ALL, None);
    let calls = [(0, 5, 1020, 1024), (0, 2, 1015, 1030), (0, 1, 1010, 1070), (1, 3, 1000, 1100)];
    assert_eq!(told.calls, calls);
    let expected = StreamSummary { begin: 1000, end: 1100, events: 11, busy: 80, idle: 20, whole: true };
    assert_eq!(streamed, expected);
    assert_eq!(told.regions, [(0, 1000, 1100)]);
    let halted: Vec<_> = (told.cpus.iter())
        .filter(|(_, slice)| slice.state.doing == CpuActivity::Halted)
        .map(|(cpu, slice)| (*cpu, slice.begin, slice.end))
        .collect();
    assert_eq!(halted, [(0, 1040, 1060)]);
}

#[test]
fn a_part_begins_and_ends_where_it_was_asked_to() {
    let part = StreamSelection { from: 1022, to: 1050, ..StreamSelection::ALL };
    let (told, streamed) = tell(&day(), &part, None);
    assert_eq!((streamed.begin, streamed.end, streamed.busy, streamed.idle), (1022, 1050, 18, 10));
    assert!(streamed.whole);
    assert!(told.calls.contains(&(0, 5, 1022, 1024)), "{:?}", told.calls);
    assert!(told.calls.contains(&(1, 3, 1022, 1050)), "{:?}", told.calls);
}

#[test]
fn what_is_cut_is_said() {
    let (told, streamed) = tell(&day(), &StreamSelection { events: 3, ..StreamSelection::ALL }, None);
    assert_eq!((streamed.events, streamed.end, streamed.whole), (3, 1020, false));
    assert!(told.calls.contains(&(0, 1, 1010, 1020)), "{:?}", told.calls);
    let (_, streamed) = tell(&day(), &StreamSelection::ALL, Some(2));
    assert_eq!((streamed.events, streamed.whole), (2, false));
}

#[test]
fn only_regions_that_were_asked_for() {
    let first = vec![
        (10, enter(1, EnterKind::Syscall)),
        (10, Event::RegionBegin { region: 1 }),
        (7, enter(2, EnterKind::Call)),
        (3, Event::RegionEnd { region: 1 }),
        (5, Event::Exit),
        (5, Event::RegionEnd { region: 0 }),
    ];
    let made = vec![(1000, state(true, &[(0, true, &[])]), first)];
    let part = StreamSelection { regions: Some(vec![false, true]), ..StreamSelection::ALL };
    let (told, streamed) = tell(&made, &part, None);
    assert_eq!((streamed.begin, streamed.end, streamed.busy), (1020, 1030, 10));
    assert_eq!(told.calls, [(0, 2, 1027, 1030), (0, 1, 1020, 1030)]);
    assert_eq!(told.regions, [(1, 1020, 1030), (0, 1020, 1030)]);
    let (told, streamed) =
        tell(&made, &StreamSelection { regions: Some(vec![false, false]), ..StreamSelection::ALL }, None);
    assert_eq!((streamed.events, told.calls.len()), (0, 0));
}

#[test]
fn what_is_open_ends_at_a_gap() {
    let mut made = day();
    made.push((5000, state(true, &[(0, true, &[])]), vec![(25, Event::Operation)]));
    let (told, streamed) = tell(&made, &StreamSelection::ALL, None);
    assert_eq!((streamed.end, streamed.busy), (5025, 105));
    assert!(told.calls.iter().all(|call| call.3 <= 1100), "{:?}", told.calls);
    assert_eq!(told.regions, [(0, 1000, 1100), (0, 5000, 5025)]);
}

proptest! {
    /// Whatever the events, the streamed time is the trace's, and the calls are those of a window
    /// over all of it.
    #[test]
    fn times_and_calls_are_those_of_other_readers(
        events in prop::collection::vec((0u64..30, any_event()), 1..80),
        from in 0u64..300,
        length_of_part in 1u64..300,
    ) {
        let made = vec![(100, state(true, &[(0, true, &[(4, EnterKind::Call)]), (1, false, &[])]), events.clone())];
        let (told, streamed) = tell(&made, &StreamSelection::ALL, None);
        prop_assert_eq!(streamed.busy + streamed.idle, length(&events));
        prop_assert_eq!(told.slices.iter().map(|slice| slice.end - slice.begin).sum::<u64>(), streamed.busy);
        let idle = whole(&made, 1).bins.iter().filter(|bin| bin.holder == HALTED).map(|bin| bin.ns).sum::<u64>();
        prop_assert_eq!(idle, streamed.idle);
        let mut calls: Vec<_> = told.calls.iter().map(|call| (call.0, call.1, call.2, call.3)).collect();
        let shown = look(&made, 100, WindowEnd::Time(u64::MAX), 1000);
        let mut expected: Vec<_> =
            shown.calls.iter().map(|call| (call.thread, call.function, call.begin, call.end)).collect();
        calls.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(calls, expected);
        let mut at = told.cpus.first().map_or(0, |(_, slice)| slice.begin);
        for (_, slice) in &told.cpus {
            prop_assert_eq!(slice.begin, at);
            at = slice.end;
        }
        let (from, to) = (100 + from, 100 + from + length_of_part);
        let (_, part) = tell(&made, &StreamSelection { from, to, ..StreamSelection::ALL }, None);
        let end = 100 + length(&events);
        prop_assert_eq!(part.busy + part.idle, to.min(end).saturating_sub(from.min(end)));
    }
}
