//! Restriction of a profile to threads by the recording's trace: an analysis without the other
//! threads.

use super::{SelectedThreads, ThreadTables};
use crate::{Error, Result};
use kerntune_analyze::events::{
    self, credit_caller, replay, CallTimes, ChunkOpening, EventVisitor, TraceBounds,
};
use kerntune_analyze::{call_kind, TraceFile};
use kerntune_profile::{
    bucket_of, CallArc, CallKind, FunctionIndex, FunctionStats, HistogramBucket, PathKind, PathNode, Profile,
    Ticks,
};
use kerntune_trace::{EnterKind, Event, EventWeights};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

type ReplayState = events::ReplayState<FilteredCall>;
type StackFrame = events::StackFrame<FilteredCall>;

/// Reads the whole trace, chunk by chunk.
pub(super) fn read(
    profile: &Profile,
    trace: &TraceFile<'_>,
    chosen: &SelectedThreads,
) -> Result<ThreadTables> {
    let functions = profile.tables.symbols.len();
    let bounds = TraceBounds { functions, ..TraceBounds::of(trace.recording) };
    let mut machine = ReplayState::new(bounds);
    let mut reader = ThreadReader::new(bounds, chosen);
    let mut chunks = trace.reader().map_err(Error::Trace)?;
    for number in 0..trace.chunks() {
        let chunk = chunks.read(number).map_err(Error::Trace)?;
        replay(&mut machine, &mut reader, &chunk).map_err(Error::Trace)?;
    }
    Ok(reader.counted(profile.tables.regions.len()))
}

/// State of an open call.
#[derive(Debug, Clone, Copy, Default)]
struct FilteredCall {
    times: CallTimes,
    begin: u64,
    /// The call is of a selected thread.
    mine: bool,
    /// The entry was recorded.
    whole: bool,
    /// Number of the stretch for which the calling arc is in the region's table and `node` is the
    /// call's path.
    stretch: u32,
    node: u32,
}

impl AsMut<CallTimes> for FilteredCall {
    #[inline]
    fn as_mut(&mut self) -> &mut CallTimes {
        &mut self.times
    }
}

/// Sums of a function in a region.
#[derive(Debug, Clone, Copy, Default)]
struct FunctionSums {
    calls: u64,
    ended: u64,
    self_ticks: u64,
    ended_self_ticks: u64,
    elapsed: u64,
    max: u64,
    min: u64,
    slowest: u64,
    slowest_at: u64,
}

/// Sums of a region.
#[derive(Debug, Default)]
struct RegionSums {
    functions: FxHashMap<u32, FunctionSums>,
    /// Calls, calls that ended, and the total time of these.
    arcs: FxHashMap<(u32, u32, CallKind), [u64; 3]>,
    /// Number of calls, and begin of the first.
    buckets: FxHashMap<(u32, u32, u32), (u64, u64)>,
}

/// Call path with its calls and self time.
#[derive(Debug, Clone, Copy)]
struct CountedPath {
    region: u32,
    parent: u32,
    end: PathEnd,
    calls: u64,
    self_ticks: u64,
}

/// Last element of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PathEnd {
    /// Root of a thread's paths.
    Thread(u32),
    /// Root of all interrupts' paths.
    Interrupt,
    Function(u32, CallKind),
}

struct ThreadReader<'a> {
    chosen: &'a SelectedThreads,
    bounds: TraceBounds,
    /// The innermost open region, or [`OUTSIDE`].
    region: u32,
    /// Sums of that region.
    here: RegionSums,
    regions: BTreeMap<u32, RegionSums>,
    /// Call paths of all regions, parents before children, and their indices.
    nodes: Vec<CountedPath>,
    paths: FxHashMap<(u32, u32, PathEnd), u32>,
    /// Number of stretches so far; each change of the open regions begins one.
    stretch: u32,
    events: u64,
}

/// Stands for time outside of regions, where nothing counts.
const OUTSIDE: u32 = u32::MAX;

impl<'a> ThreadReader<'a> {
    fn new(bounds: TraceBounds, chosen: &'a SelectedThreads) -> Self {
        Self {
            chosen,
            bounds,
            region: OUTSIDE,
            here: RegionSums::default(),
            regions: BTreeMap::new(),
            nodes: Vec::new(),
            paths: FxHashMap::default(),
            stretch: 1,
            events: 0,
        }
    }

    /// Stores the sums of the innermost region, and restores those of the one that is now innermost.
    fn change(&mut self, open: &[u32]) {
        self.regions.insert(self.region, std::mem::take(&mut self.here));
        self.region = open.last().copied().unwrap_or(OUTSIDE);
        self.stretch += 1;
        self.here = self.regions.remove(&self.region).unwrap_or_default();
    }

    /// Adds the arcs and paths that lead to the thread's open calls to the region.
    fn lead_to(&mut self, thread: usize, frames: &mut [StackFrame]) {
        let mut first = frames.len();
        while first > 0 && frames[first - 1].data.stretch != self.stretch {
            first -= 1;
            // The interrupted code did not call the interrupt's function.
            if frames[first].how == EnterKind::Interrupt {
                break;
            }
        }
        for at in first..frames.len() {
            let StackFrame { function, how, data } = frames[at];
            let below = at.checked_sub(1).map(|below| &frames[below]);
            let mut node = PathNode::ROOT;
            if data.mine {
                self.here.arcs.entry(arc(function, how, below)).or_default();
                node = self.path(thread, function, how, below);
            }
            let call = &mut frames[at].data;
            (call.stretch, call.node) = (self.stretch, node);
        }
    }

    /// Returns the path of a frame, given the one below it.
    fn path(&mut self, thread: usize, function: u32, how: EnterKind, below: Option<&StackFrame>) -> u32 {
        let parent = match below {
            _ if how == EnterKind::Interrupt => self.node(PathNode::ROOT, PathEnd::Interrupt),
            Some(below) => below.data.node,
            None => self.node(PathNode::ROOT, PathEnd::Thread(thread as u32)),
        };
        self.node(parent, PathEnd::Function(function, call_kind(how)))
    }

    fn node(&mut self, parent: u32, end: PathEnd) -> u32 {
        let (region, nodes) = (self.region, &mut self.nodes);
        *self.paths.entry((region, parent, end)).or_insert_with(|| {
            nodes.push(CountedPath { region, parent, end, calls: 0, self_ticks: 0 });
            nodes.len() as u32 - 1
        })
    }

    /// Returns the rows of the path table for the first `regions` regions.
    fn path_rows(&self, regions: usize) -> Vec<PathNode> {
        let mut rows: Vec<PathNode> = Vec::new();
        let mut place = vec![PathNode::ROOT; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| (node.region as usize) < regions) {
            place[at] = rows.len() as u32;
            let (kind, comm, function, how) = match node.end {
                PathEnd::Function(function, how) => {
                    (PathKind::Function, String::new(), FunctionIndex(function), how)
                }
                PathEnd::Interrupt => {
                    (PathKind::Interrupt, String::new(), FunctionIndex::NONE, CallKind::Call)
                }
                PathEnd::Thread(thread) => {
                    let (kind, comm) = self
                        .chosen
                        .threads
                        .get(&thread)
                        .map_or((PathKind::Thread, String::new()), super::root_of);
                    (kind, comm, FunctionIndex::NONE, CallKind::Call)
                }
            };
            rows.push(PathNode {
                region: node.region,
                path: place[at],
                parent: place.get(node.parent as usize).copied().unwrap_or(PathNode::ROOT),
                kind,
                comm,
                function,
                how,
                calls: node.calls,
                self_ticks: Ticks(node.self_ticks),
                taken_branches: 0,
                l1i_misses: 0,
                itlb_misses: 0,
            });
        }
        rows
    }

    fn is_mine(&self, thread: usize, how: EnterKind, below: Option<&StackFrame>) -> bool {
        match below {
            _ if how == EnterKind::Interrupt => self.chosen.interrupts,
            Some(below) => below.data.mine,
            None => self.chosen.threads.contains_key(&(thread as u32)),
        }
    }

    fn counted(mut self, regions: usize) -> ThreadTables {
        self.change(&[]);
        let mut counted = ThreadTables {
            functions: Vec::new(),
            arcs: Vec::new(),
            histograms: Vec::new(),
            paths: self.path_rows(regions),
            in_functions: BTreeMap::new(),
            events: self.events,
        };
        let index = |number: u32| FunctionIndex(number);
        for (region, sums) in
            std::mem::take(&mut self.regions).into_iter().filter(|(at, _)| (*at as usize) < regions)
        {
            let by_function: BTreeMap<u32, FunctionSums> = sums.functions.into_iter().collect();
            for (function, sums) in
                by_function.into_iter().filter(|(_, sums)| sums.self_ticks + sums.calls + sums.ended > 0)
            {
                let user = usize::from(self.bounds.is_user(function));
                counted.in_functions.entry(region).or_default()[user] += sums.self_ticks;
                counted.functions.push(FunctionStats {
                    region,
                    function: index(function),
                    calls: sums.calls,
                    ended: sums.ended,
                    self_ticks: Ticks(sums.self_ticks),
                    ended_self_ticks: Ticks(sums.ended_self_ticks),
                    total_ticks: Ticks(sums.elapsed),
                    max_ticks: Ticks(sums.max),
                    min_ticks: Ticks(sums.min),
                    slowest_ticks: Ticks(sums.slowest),
                    slowest_at_ticks: Ticks(sums.slowest_at),
                });
            }
            let arcs: BTreeMap<_, _> = sums.arcs.into_iter().collect();
            counted.arcs.extend(arcs.into_iter().map(|((caller, callee, how), [calls, ended, elapsed])| {
                CallArc {
                    region,
                    caller: index(caller),
                    callee: index(callee),
                    how,
                    calls,
                    ended,
                    total_ticks: Ticks(elapsed),
                }
            }));
            let buckets: BTreeMap<_, _> = sums.buckets.into_iter().collect();
            counted.histograms.extend(buckets.into_iter().map(
                |((caller, function, bucket), (count, example))| HistogramBucket {
                    region,
                    caller: index(caller),
                    function: index(function),
                    bucket,
                    count,
                    example_ticks: Ticks(example),
                },
            ));
        }
        counted
    }
}

/// Returns the arc to a function from the frame below it; an interrupt's function has no caller.
fn arc(function: u32, how: EnterKind, below: Option<&StackFrame>) -> (u32, u32, CallKind) {
    let caller = below.filter(|_| how != EnterKind::Interrupt);
    (caller.map_or(FunctionIndex::NONE.get(), |caller| caller.function), function, call_kind(how))
}

impl EventVisitor for ThreadReader<'_> {
    type PerFrame = FilteredCall;

    fn begin(&mut self, machine: &mut ReplayState, opening: &ChunkOpening<'_>) {
        if !machine.is_continued_by(opening) {
            machine.adopt(opening);
            for thread in 0..=machine.unknown_thread() {
                let frames = machine.frames_of(thread);
                for at in 0..frames.len() {
                    let below = at.checked_sub(1).map(|below| &frames[below]);
                    frames[at].data.mine = self.is_mine(thread, frames[at].how, below);
                }
            }
        }
        self.change(opening.regions);
    }

    #[inline]
    fn pass(&mut self, machine: &mut ReplayState, ns: u64, _: EventWeights, _: &Event) {
        let Some(&mut StackFrame { function, mut data, .. }) = machine.charge(ns) else { return };
        if !data.mine || ns == 0 {
            return;
        }
        self.here.functions.entry(function).or_default().self_ticks += ns;
        if data.stretch != self.stretch {
            self.lead_to(machine.running(), machine.frames_mut());
            data.node = machine.frames().last().map_or(PathNode::ROOT, |top| top.data.node);
        }
        if let Some(node) = self.nodes.get_mut(data.node as usize) {
            node.self_ticks += ns;
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut ReplayState, function: u32, how: EnterKind) -> FilteredCall {
        let running = machine.running();
        let is_led_to = machine.frames().last().is_none_or(|below| below.data.stretch == self.stretch);
        if !is_led_to && how != EnterKind::Interrupt {
            self.lead_to(running, machine.frames_mut());
        }
        let below = machine.frames().last();
        let mine = self.is_mine(running, how, below);
        let mut node = PathNode::ROOT;
        if mine {
            self.events += 1;
            self.here.functions.entry(function).or_default().calls += 1;
            self.here.arcs.entry(arc(function, how, below)).or_default()[0] += 1;
            node = self.path(running, function, how, below);
            if let Some(node) = self.nodes.get_mut(node as usize) {
                node.calls += 1;
            }
        }
        let (begin, stretch) = (machine.now(), self.stretch);
        FilteredCall { times: CallTimes::default(), begin, mine, whole: true, stretch, node }
    }

    #[inline]
    fn ended(&mut self, machine: &mut ReplayState, frame: StackFrame) {
        let total = credit_caller(machine.frames_mut(), frame);
        let FilteredCall { times: CallTimes { self_ticks, .. }, begin, mine, whole, .. } = frame.data;
        if !(mine && whole) {
            return;
        }
        self.events += 1;
        let sums = self.here.functions.entry(frame.function).or_default();
        sums.min = if sums.ended == 0 { self_ticks } else { sums.min.min(self_ticks) };
        sums.max = sums.max.max(self_ticks);
        if sums.ended == 0 || total > sums.slowest || total == sums.slowest && begin < sums.slowest_at {
            (sums.slowest, sums.slowest_at) = (total, begin);
        }
        sums.ended += 1;
        sums.ended_self_ticks += self_ticks;
        sums.elapsed += total;
        let key @ (caller, function, _) = arc(frame.function, frame.how, machine.frames().last());
        let arc = self.here.arcs.entry(key).or_default();
        (arc[1], arc[2]) = (arc[1] + 1, arc[2] + total);
        let bucket = (caller, function, bucket_of(Ticks(total)));
        let (count, first) = self.here.buckets.entry(bucket).or_insert((0, begin));
        (*count, *first) = (*count + 1, (*first).min(begin));
    }

    fn region_begun(&mut self, machine: &mut ReplayState, _: u32) {
        self.change(machine.regions());
    }

    fn region_ended(&mut self, machine: &mut ReplayState, _: u32) {
        self.change(machine.regions());
    }
}
