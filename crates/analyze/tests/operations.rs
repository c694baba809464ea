//! Anatomies: by hand, and of random traces checked against a second implementation, which keeps
//! every call with all of its paths.

use crate::support::plans::{any_plan, is_user, write, THREADS, USER_FUNCTIONS};
use crate::support::{symbols, TestTraceWriter, TraceStep, KERNEL_FUNCTIONS};
use kerntune_analyze::anatomy::{anatomy, Anatomy, AnatomyRequest, CallFigures, NodeFigures, NodeSums};
use kerntune_analyze::{analyze, AnalysisInput, Error, TraceFile};
use kerntune_profile::{FunctionIndex, RegionScope, Tables};
use kerntune_trace::{EnterKind, Event, Recording, CHUNK_HEADER_BYTES};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

const FUNCTIONS: usize = (KERNEL_FUNCTIONS + 1 + USER_FUNCTIONS) as usize;

/// Path from the operation to a function: each function on it, and its kind of entry.
type CallPath = Vec<(u32, u8)>;

/// Calls and self time, and the same before the boundary.
type PathCounts = [u64; 4];

/// Request that owns its lists.
struct OwnedRequest {
    function: u32,
    until: Vec<bool>,
    regions: Vec<bool>,
    partial: bool,
}

impl OwnedRequest {
    /// Requests all regions, up to these functions.
    fn of(function: u32, until: &[u32], recording: &Recording) -> Self {
        let until = (0..FUNCTIONS as u32).map(|function| until.contains(&function)).collect();
        Self { function, until, regions: vec![true; recording.regions.len()], partial: false }
    }

    fn look(&self, bytes: &[u8], recording: &Recording) -> Result<Anatomy, Error> {
        let trace = TraceFile::open(&bytes, recording)?;
        let request = AnatomyRequest {
            function: FunctionIndex(self.function),
            functions: FUNCTIONS,
            regions: &self.regions,
            until: &self.until,
            partial: self.partial,
        };
        anatomy(&trace, &request, &mut |_| ControlFlow::Continue(()))
    }
}

/// The tree as a map.
fn ways(
    anatomy: &Anatomy,
    of: impl Fn(&kerntune_analyze::anatomy::AnatomyNode) -> NodeSums,
) -> BTreeMap<CallPath, PathCounts> {
    let mut way = CallPath::new();
    let mut all = BTreeMap::new();
    for node in &anatomy.nodes {
        way.truncate(node.depth as usize);
        way.push((node.function.0, if node.depth == 0 { 0 } else { code(node.how) }));
        let NodeSums { whole, before, .. } = of(node);
        let counts = [whole.calls, whole.self_ticks, before.calls, before.self_ticks];
        if counts != PathCounts::default() {
            assert_eq!(all.insert(way.clone(), counts), None, "{way:?} is there twice");
        }
    }
    all
}

fn code(how: kerntune_profile::CallKind) -> u8 {
    kerntune_profile::CallKind::ALL.iter().position(|known| *known == how).unwrap() as u8
}

fn figures([ns, calls, functions, depth]: [u64; 4]) -> CallFigures {
    CallFigures { ns, calls, functions, depth }
}

fn by_hand(w: &mut TestTraceWriter, function: u32, until: &[u32]) -> Anatomy {
    let (bytes, recording) = w.finish();
    OwnedRequest::of(function, until, &recording).look(&bytes, &recording).unwrap()
}

#[test]
fn two_calls_and_what_they_do_before_a_boundary() {
    let mut w = TestTraceWriter::new(2);
    // f1 calls f2, which calls f3; then f4, the boundary, which also calls f3; then f3 again.
    w.begin(0, "r")
        .enter(100, 1, EnterKind::Syscall)
        .call(1, 2)
        .call(2, 3)
        .exit(4)
        .exit(8)
        .call(16, 4)
        .call(32, 3);
    w.exit(64).exit(128).call(256, 3).exit(512).at(1024, Event::Leave);
    // Another call, which does not reach the boundary.
    let second = w.now() + 7;
    w.enter(7, 1, EnterKind::Syscall).call(1, 3).exit(1).at(1, Event::Leave).end(0);
    let a = by_hand(&mut w, 1, &[4]);
    let (first, before) = (figures([2047, 6, 4, 3]), figures([31, 3, 3, 3]));
    let typical = a.typical.unwrap();
    assert_eq!((typical.begin_ns, typical.thread, typical.figures), (second, 1, figures([3, 2, 2, 2])));
    assert_eq!(typical.before, None);
    let worst = a.worst.unwrap();
    assert_eq!((worst.begin_ns, worst.figures), (1_000_100, first));
    let reached = worst.before.unwrap();
    assert_eq!((reached.function.0, reached.from, reached.figures), (4, 0, before));
    assert_eq!(a.before.typical, a.worst);
    assert_eq!(
        (a.all.ns.count, a.all.ns.sum, a.all.ns.min, a.all.ns.median, a.all.ns.greatest),
        (2, 2050, 3, 3, 2047)
    );
    assert_eq!((a.before.spreads.ns.count, a.before.spreads.calls.sum, a.before.after_ns.sum), (1, 3, 2016));
    assert_eq!(a.before.functions, BTreeMap::from([(FunctionIndex(4), 1)]));
    assert_eq!((a.cut, a.elsewhere, a.crowded, a.folded), (0, 0, 0, 0));
    let lines: Vec<_> = (a.nodes.iter())
        .map(|node| {
            let NodeFigures { calls, self_ticks, elapsed_ns, functions } = node.all.whole;
            let before = node.boundary.before;
            (
                node.depth,
                node.function.0,
                calls,
                self_ticks,
                elapsed_ns,
                functions,
                node.all.operations,
                before.elapsed_ns,
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            (0, 1, 2, 1 + 16 + 256 + 1024 + 2, 2050, 4, 2, 31),
            (1, 2, 1, 2 + 8, 14, 2, 1, 14),
            (2, 3, 1, 4, 4, 1, 1, 4),
            (1, 4, 1, 32 + 128, 224, 2, 1, 0),
            (2, 3, 1, 64, 64, 1, 1, 0),
            (1, 3, 2, 513, 513, 1, 2, 0),
        ]
    );
    assert_eq!(a.nodes.iter().map(|node| node.len).collect::<Vec<_>>(), [6, 2, 1, 2, 1, 1]);
    assert_eq!(
        a.nodes[0].typical.whole,
        NodeFigures { calls: 1, self_ticks: 2, elapsed_ns: 3, functions: 2 }
    );
    // In the order in which that call entered them.
    let order = |of: fn(&kerntune_analyze::anatomy::AnatomyNode) -> NodeSums| {
        a.nodes.iter().map(of).filter(|sums| sums.operations > 0).map(|sums| sums.order).collect::<Vec<_>>()
    };
    assert_eq!((order(|node| node.worst), order(|node| node.typical)), (vec![0, 1, 2, 3, 4, 5], vec![0, 1]));
}

#[test]
fn interrupts_and_other_threads_are_no_part_and_page_faults_are() {
    let mut w = TestTraceWriter::new(3);
    w.begin(0, "r")
        .enter(0, 1, EnterKind::Syscall)
        .call(1, 2)
        .enter(2, 9, EnterKind::Interrupt)
        .call(1000, 2)
        .exit(1000);
    w.at(1000, Event::Resume).enter(4, 7, EnterKind::Exception).call(8, 3).exit(16).at(32, Event::Resume);
    w.at(64, Event::Switch { thread: 2 }).call(1000, 2).exit(1000).at(0, Event::Idle { ns: 5000 });
    w.at(1000, Event::Switch { thread: 1 }).exit(128).at(256, Event::Leave).end(0);
    let a = by_hand(&mut w, 1, &[]);
    assert_eq!(a.typical.unwrap().figures, figures([511, 4, 4, 4]));
    let two = by_hand(&mut write_again(&w), 2, &[]);
    // In the interrupt and on the other thread, too: calls of their own.
    assert_eq!((two.all.ns.count, two.all.ns.sum, two.all.ns.greatest), (3, 1000 + 1000 + 254, 1000));
}

/// The same trace once more.
fn write_again(w: &TestTraceWriter) -> TestTraceWriter {
    let mut again = TestTraceWriter::new(3);
    for step in &w.steps {
        match step {
            TraceStep::Event(delta, _, Event::RegionBegin { .. }) => again.begin(*delta, "r"),
            TraceStep::Event(delta, _, Event::RegionEnd { .. }) => again.end(*delta),
            TraceStep::Event(delta, _, event) => again.at(*delta, *event),
            TraceStep::Start { .. } => &mut again,
        };
    }
    again
}

#[test]
fn a_call_within_itself_is_a_callee() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r")
        .enter(0, 1, EnterKind::Syscall)
        .call(1, 2)
        .call(2, 1)
        .call(4, 2)
        .exit(8)
        .exit(16)
        .exit(32);
    w.at(64, Event::Leave).end(0);
    let a = by_hand(&mut w, 2, &[2]);
    assert_eq!((a.all.ns.count, a.all.ns.sum), (1, 2 + 4 + 8 + 16 + 32));
    assert_eq!(a.typical.unwrap().figures, figures([62, 3, 2, 3]));
    assert_eq!(a.before.spreads.ns.sum, 2 + 4, "the boundary is looked for below");
}

#[test]
fn what_was_not_seen_whole_is_counted_once() {
    let mut w = TestTraceWriter::new(3);
    // Thread 2 sleeps in f1 before the first region, through both, and after the second.
    w.at(0, Event::Switch { thread: 2 }).call(5, 1).at(5, Event::Switch { thread: 1 }).at(0, Event::Leave);
    w.begin(0, "one").enter(1, 1, EnterKind::Syscall).at(1, Event::Leave).end(1);
    // One that begins in the first region and never ends; two that begin and end in the second.
    w.begin(1, "two").call(1, 1).exit(2).call(1, 1).exit(4).call(1, 1).end(1);
    let a = by_hand(&mut w, 1, &[]);
    assert_eq!((a.all.ns.count, a.all.ns.sum, a.cut), (3, 1 + 2 + 4, 2));
}

#[test]
fn calls_count_where_they_end() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "a").call(1, 1).begin(2, "b").exit(4).end(0).call(8, 1).exit(16).end(0);
    let (bytes, recording) = w.finish();
    let look = |regions: [bool; 2]| {
        let a = OwnedRequest { regions: regions.to_vec(), ..OwnedRequest::of(1, &[], &recording) };
        let a = a.look(&bytes, &recording).unwrap();
        (a.all.ns.sum, a.elsewhere, a.nodes.len())
    };
    assert_eq!(
        [[true, true], [true, false], [false, true], [false, false]].map(look),
        [(22, 0, 1), (16, 1, 1), (6, 1, 1), (0, 2, 0)]
    );
}

#[test]
fn more_calls_at_a_time_than_are_followed_are_left_out() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r");
    // Each in an interrupt of its own.
    (0..1500).for_each(|_| {
        w.enter(1, 9, EnterKind::Interrupt).call(1, 1);
    });
    (0..1500).for_each(|_| {
        w.exit(1).at(1, Event::Resume);
    });
    w.end(0);
    let a = by_hand(&mut w, 1, &[]);
    assert_eq!((a.all.ns.count, a.crowded, a.cut), (1024, 1500 - 1024, 0));
}

#[test]
fn what_finds_no_room_in_the_tree_is_its_callers() {
    let mut w = TestTraceWriter::new(2);
    w.keep = false;
    w.begin(0, "r").call(0, 1);
    // As many paths as there are numbers of seventeen bits: by f2 or f3 at each level.
    fn walk(w: &mut TestTraceWriter, levels: u32) {
        if levels > 0 {
            for function in [2, 3] {
                w.call(1, function);
                walk(w, levels - 1);
                w.exit(1);
            }
        }
    }
    walk(&mut w, 16);
    let calls = (1 << 17) - 2;
    w.exit(1).end(0);
    let a = by_hand(&mut w, 1, &[]);
    let sum = |of: fn(&NodeFigures) -> u64| a.nodes.iter().map(|node| of(&node.all.whole)).sum::<u64>();
    assert_eq!((a.all.ns.sum, a.all.calls.sum), (2 * calls + 1, calls + 1));
    assert_eq!(sum(|part| part.self_ticks), 2 * calls + 1, "no time is lost");
    assert_eq!(sum(|part| part.calls) + a.folded, calls + 1);
    assert!(a.folded > 0 && a.nodes.len() == (1 << 16) - 1, "{}", a.nodes.len());
    assert_eq!(a.typical.unwrap().figures, a.worst.unwrap().figures);
}

#[test]
fn damage_is_an_error_or_left_out() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r")
        .call(1, 1)
        .exit(2)
        .cut()
        .call(4, 1)
        .exit(8)
        .call(1, 1)
        .cut()
        .exit(16)
        .call(32, 1)
        .exit(64)
        .end(0);
    let (mut bytes, recording) = w.finish();
    let sound = OwnedRequest::of(1, &[], &recording);
    let all = sound.look(&bytes, &recording).unwrap();
    assert_eq!((all.all.ns.count, all.all.ns.sum), (4, 2 + 8 + 16 + 64));
    for length in [0, 20, bytes.len() - 1] {
        assert!(sound.look(&bytes[..length], &recording).is_err());
    }
    let at = recording.chunks[1].offset as usize + CHUNK_HEADER_BYTES + 9;
    bytes[at] ^= 0x55;
    let error = sound.look(&bytes, &recording).unwrap_err().to_string();
    assert!(error.contains("damaged in chunk 1") && error.contains("covers the virtual time"), "{error}");
    let partial = OwnedRequest { partial: true, ..OwnedRequest::of(1, &[], &recording) };
    let rest = partial.look(&bytes, &recording).unwrap();
    assert_eq!((rest.all.ns.count, rest.all.ns.sum, rest.cut, rest.missing.len()), (2, 2 + 64, 1, 1));
}

#[test]
fn it_stops_when_it_is_told_to() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").call(1, 1).exit(2).end(0);
    let (bytes, recording) = w.finish();
    let (bytes, regions) = (&bytes[..], [true]);
    let trace = TraceFile::open(&bytes, &recording).unwrap();
    let request = AnatomyRequest {
        function: FunctionIndex(1),
        functions: FUNCTIONS,
        regions: &regions,
        until: &[],
        partial: false,
    };
    let stopped = anatomy(&trace, &request, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Stopped)));
}

/// A call of the operation with all of its paths.
#[derive(Debug, Clone, Default)]
struct ReferenceCall {
    begin: u64,
    thread: usize,
    ways: BTreeMap<CallPath, PathCounts>,
    depth: u64,
    before: Option<(u32, CallFigures)>,
    /// The region in which it ended; any other number stands for a region that is not there.
    ended: Option<Option<u32>>,
}

impl ReferenceCall {
    fn figures(&self) -> CallFigures {
        let sum = |at: usize| self.ways.values().map(|counts| counts[at]).sum();
        let functions: BTreeSet<u32> = self
            .ways
            .iter()
            .filter(|(_, counts)| counts[0] > 0)
            .map(|(way, _)| way.last().unwrap().0)
            .collect();
        CallFigures { ns: sum(1), calls: sum(0), functions: functions.len() as u64, depth: self.depth }
    }
}

#[derive(Debug, Clone)]
struct ReferenceFrame {
    function: u32,
    how: EnterKind,
    /// Index of its call, and the path from there.
    part: Option<(usize, CallPath)>,
    /// It is within a call of the operation of which some part was not recorded.
    unseen: bool,
}

#[derive(Default)]
struct ReferenceAnatomy {
    function: u32,
    until: Vec<bool>,
    stacks: Vec<Vec<ReferenceFrame>>,
    running: usize,
    cpu: usize,
    cpus: Vec<usize>,
    regions: Vec<u32>,
    now: u64,
    calls: Vec<ReferenceCall>,
    cut: u64,
    recursive: bool,
}

impl ReferenceAnatomy {
    fn of(steps: &[TraceStep], function: u32, until: &[bool]) -> Self {
        let mut it = Self { function, until: until.to_vec(), ..Self::default() };
        it.stacks = vec![Vec::new(); THREADS];
        for step in steps {
            match step {
                TraceStep::Start { now, cpu, cpus, stacks } => it.start(*now, *cpu, cpus, stacks),
                TraceStep::Event(delta, _, event) => {
                    it.now += delta;
                    if let Some((call, way)) = it.top().and_then(|top| top.part.clone()) {
                        it.calls[call].ways.get_mut(&way).unwrap()[1] += delta;
                    }
                    it.happen(*event);
                }
            }
        }
        it.cut += it.calls.iter().filter(|call| call.ended.is_none()).count() as u64;
        it
    }

    fn top(&self) -> Option<&ReferenceFrame> {
        self.stacks[self.running].last()
    }

    /// Nothing was recorded before this: open calls are cut.
    fn start(&mut self, now: u64, cpu: usize, cpus: &[(usize, bool)], stacks: &[Vec<(u32, EnterKind)>]) {
        let open = std::mem::take(&mut self.calls);
        let (ended, cut): (Vec<_>, Vec<_>) = open.into_iter().partition(|call| call.ended.is_some());
        (self.calls, self.cut) = (ended, self.cut + cut.len() as u64);
        for (thread, stack) in stacks.iter().enumerate() {
            let same =
                |(ours, theirs): &(&ReferenceFrame, &(u32, EnterKind))| (ours.function, ours.how) == **theirs;
            let kept = self.stacks[thread].iter().zip(stack).take_while(same).count();
            let mut within = false;
            let mut frames = Vec::new();
            for (at, &(function, how)) in stack.iter().enumerate() {
                within &= how != EnterKind::Interrupt;
                if !within && function == self.function {
                    within = true;
                    // Cut now or before, and counted then.
                    self.cut += u64::from(at >= kept);
                }
                frames.push(ReferenceFrame { function, how, part: None, unseen: within });
            }
            self.stacks[thread] = frames;
        }
        (self.now, self.cpu) = (now, cpu);
        self.cpus = cpus.iter().map(|(thread, _)| *thread).collect();
        self.running = self.cpus[cpu];
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Enter { function, how } => self.enter(function, how),
            Event::Exit => while self.end() == EnterKind::Jump && self.top().is_some() {},
            Event::Resume => while !matches!(self.end(), EnterKind::Interrupt | EnterKind::Exception) {},
            Event::Leave => {
                while self.top().is_some_and(|top| !is_user(top.function)) {
                    self.end();
                }
            }
            Event::Unwind { frames } => (0..frames).for_each(|_| {
                self.end();
            }),
            Event::Switch { thread } => self.running = thread as usize,
            Event::Idle { ns } => self.now += ns,
            Event::RegionBegin { region } => self.regions.push(region),
            Event::RegionEnd { region } => self.regions.retain(|open| *open != region),
            Event::Cpu { cpu, .. } => {
                self.cpus[self.cpu] = self.running;
                self.cpu = cpu as usize;
                self.running = self.cpus[self.cpu];
            }
            _ => {}
        }
    }

    fn enter(&mut self, function: u32, how: EnterKind) {
        let below = self.top().filter(|_| how != EnterKind::Interrupt).cloned();
        let (mut part, mut unseen) = (None, false);
        match below {
            Some(ReferenceFrame { part: Some((call, mut way)), .. }) => {
                let depth = way.len() as u64 + 1;
                way.push((function, how as u8));
                self.recursive |= function == self.function;
                let of = &mut self.calls[call];
                if self.until[function as usize] && of.before.is_none() {
                    of.before = Some((function, of.figures()));
                    of.ways.values_mut().for_each(|counts| (counts[2], counts[3]) = (counts[0], counts[1]));
                }
                of.depth = of.depth.max(depth);
                of.ways.entry(way.clone()).or_default()[0] += 1;
                part = Some((call, way));
            }
            Some(ReferenceFrame { unseen: true, .. }) => {
                self.recursive |= function == self.function;
                unseen = true;
            }
            _ if function == self.function => {
                let way = vec![(function, 0)];
                let ways = BTreeMap::from([(way.clone(), [1, 0, 0, 0])]);
                let call = ReferenceCall {
                    begin: self.now,
                    thread: self.running,
                    ways,
                    depth: 1,
                    ..ReferenceCall::default()
                };
                self.calls.push(call);
                part = Some((self.calls.len() - 1, way));
            }
            _ => {}
        }
        self.stacks[self.running].push(ReferenceFrame { function, how, part, unseen });
    }

    fn end(&mut self) -> EnterKind {
        let frame = self.stacks[self.running].pop().unwrap();
        if let Some((call, _)) = frame.part.filter(|(_, way)| way.len() == 1) {
            self.calls[call].ended = Some(self.regions.last().copied());
        }
        frame.how
    }
}

/// Calls that ended and their total time, as the profile has them.
fn of_profile(tables: &Tables, function: u32, regions: &[bool]) -> (u64, u64) {
    let rows =
        tables.functions.iter().filter(|row| row.function.0 == function && regions[row.region as usize]);
    rows.fold((0, 0), |(ended, elapsed), row| (ended + row.ended, elapsed + row.total_ticks.0))
}

fn sum_of(calls: &[&ReferenceCall]) -> BTreeMap<CallPath, PathCounts> {
    let mut sums: BTreeMap<CallPath, PathCounts> = BTreeMap::new();
    for (way, counts) in calls.iter().flat_map(|call| &call.ways) {
        sums.entry(way.clone()).or_default().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    sums
}

/// The first of the calls with the median figure.
fn middle<'a>(calls: &[&'a ReferenceCall], of: impl Fn(&ReferenceCall) -> u64) -> Option<&'a ReferenceCall> {
    let mut order: Vec<&ReferenceCall> = calls.to_vec();
    order.sort_by_key(|call| of(call));
    let middle = of(order.get(calls.len().checked_sub(1)? / 2)?);
    calls.iter().find(|call| of(call) == middle).copied()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_anatomy_is_the_reference(
        plan in any_plan(),
        function in prop_oneof![4 => 0u32..6, 1 => KERNEL_FUNCTIONS + 1..KERNEL_FUNCTIONS + 4],
        until in prop::collection::vec(0u32..6, 0..3),
        named in prop::option::of(prop_oneof![Just("a"), Just("b")]),
    ) {
        let mut trace = write(&plan, true);
        let (bytes, recording) = trace.finish();
        let symbols = symbols(FUNCTIONS as u32);
        let (source, points) = (&bytes[..], [("p0".into(), FunctionIndex(0)), ("p1".into(), FunctionIndex(1))]);
        let input = AnalysisInput { points: &points, threads: 1, ..AnalysisInput::new(&source, &recording, &symbols) };
        let tables = analyze(&input, &mut |_| ControlFlow::Continue(())).unwrap().tables;
        let mut asked = OwnedRequest::of(function, &until, &recording);
        if let Some(scope) = named.and_then(|name| RegionScope::named(&tables, name)) {
            asked.regions = (0..tables.regions.len() as u32).map(|region| scope.contains(region)).collect();
        }
        let a = asked.look(&bytes, &recording).unwrap();
        let reference = ReferenceAnatomy::of(&trace.steps, function, &asked.until);

        let ended = |call: &&ReferenceCall| call.ended.is_some();
        let counts = |call: &&ReferenceCall| call.ended.flatten().is_some_and(|region| asked.regions[region as usize]);
        let all: Vec<&ReferenceCall> = reference.calls.iter().filter(ended).filter(counts).collect();
        let elsewhere = reference.calls.iter().filter(ended).count() - all.len();
        prop_assert_eq!((a.cut, a.elsewhere, a.crowded), (reference.cut, elsewhere as u64, 0));
        prop_assert_eq!((a.folded, a.missing.len()), (0, 0));

        // All calls together, and their sums as the profile has them.
        prop_assert_eq!(ways(&a, |node| node.all), sum_of(&all));
        let total: u64 = all.iter().map(|call| call.figures().ns).sum();
        prop_assert_eq!((a.all.ns.count, a.all.ns.sum), (all.len() as u64, total));
        prop_assert_eq!(a.nodes.first().map_or(0, |root| root.all.whole.elapsed_ns), total);
        if !reference.recursive {
            prop_assert_eq!(of_profile(&tables, function, &asked.regions), (all.len() as u64, total));
        }

        // Distribution of each figure.
        for (spread, of) in [
            (a.all.ns, (|f| f.ns) as fn(&CallFigures) -> u64),
            (a.all.calls, |f| f.calls),
            (a.all.functions, |f| f.functions),
            (a.all.depth, |f| f.depth),
        ] {
            let mut values: Vec<u64> = all.iter().map(|call| of(&call.figures())).collect();
            values.sort_unstable();
            let at = |place: usize| values.get(place).copied().unwrap_or(0);
            prop_assert_eq!(spread.sum, values.iter().sum::<u64>());
            prop_assert_eq!((spread.min, spread.greatest), (at(0), at(values.len().wrapping_sub(1))));
            prop_assert_eq!((spread.median, spread.rounding), (at(values.len().saturating_sub(1) / 2), 0));
        }

        // Single calls.
        let boundary = |call: &ReferenceCall| call.before.map_or(0, |(_, before)| before.ns);
        let reaching: Vec<&ReferenceCall> = all.iter().copied().filter(|call| call.before.is_some()).collect();
        let longest = all.iter().map(|call| call.figures().ns).max();
        let worst = all.iter().find(|call| Some(call.figures().ns) == longest).copied();
        for (found, expected, of) in [
            (a.typical, middle(&all, |call| call.figures().ns), (|node| node.typical) as fn(&kerntune_analyze::anatomy::AnatomyNode) -> NodeSums),
            (a.worst, worst, |node| node.worst),
            (a.before.typical, middle(&reaching, boundary), |node| node.boundary),
        ] {
            prop_assert_eq!(found.is_some(), expected.is_some());
            let (Some(found), Some(expected)) = (found, expected) else { continue };
            prop_assert_eq!((found.begin_ns, found.thread as usize), (expected.begin, expected.thread));
            prop_assert_eq!(found.figures, expected.figures());
            prop_assert_eq!(found.before.map(|boundary| (boundary.function.0, boundary.figures)), expected.before);
            prop_assert_eq!(ways(&a, of), expected.ways.clone());
        }

        // Before the boundary and after it.
        prop_assert_eq!(a.before.spreads.ns.count, reaching.len() as u64);
        let before: u64 = reaching.iter().map(|call| boundary(call)).sum();
        let times: u64 = reaching.iter().map(|call| call.figures().ns).sum();
        prop_assert_eq!((a.before.spreads.ns.sum, a.before.after_ns.sum), (before, times - before));
        prop_assert_eq!(a.nodes.first().map_or(0, |root| root.all.before.elapsed_ns), before);
        let mut first: BTreeMap<FunctionIndex, u64> = BTreeMap::new();
        for (function, _) in reaching.iter().filter_map(|call| call.before) {
            *first.entry(FunctionIndex(function)).or_default() += 1;
        }
        prop_assert_eq!(&a.before.functions, &first);

        // Cut into chunks or not.
        let (bytes, recording) = write(&plan, false).finish();
        let whole = asked.look(&bytes, &recording).unwrap();
        prop_assert_eq!(whole, a);
    }
}
