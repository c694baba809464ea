//! Restriction of a profile to threads by the recording's trace: an analysis without the other
//! threads.

use super::{SelectedThreads, ThreadTables};
use crate::{Error, Result};
use kerntune_analyze::events::{replay, ChunkOpening, EventVisitor, ReplayState, StackFrame, TraceBounds};
use kerntune_analyze::TraceFile;
use kerntune_profile::{
    bucket_of, CallArc, CallKind, CallTree, FunctionIndex, FunctionStats, HistogramBucket, PathFrame,
    PathKind, PathNode, Profile, Ticks,
};
use kerntune_trace::{Event, EventWeights};
use std::collections::{BTreeMap, HashMap};

/// Reads the whole trace, chunk by chunk.
pub(super) fn read(
    profile: &Profile,
    trace: &TraceFile<'_>,
    chosen: &SelectedThreads,
) -> Result<ThreadTables> {
    let functions = profile.tables.symbols.len();
    let bounds = TraceBounds { functions, ..TraceBounds::of(trace.recording) };
    let mut machine = ReplayState::new(bounds);
    let mut reader = ThreadReader::new(&machine, bounds, chosen);
    let mut chunks = trace.reader().map_err(Error::Trace)?;
    for number in 0..trace.chunks() {
        let chunk = chunks.read(number).map_err(Error::Trace)?;
        replay(&mut machine, &mut reader, &chunk).map_err(Error::Trace)?;
    }
    Ok(reader.counted(profile.tables.regions.len()))
}

/// Open call on a thread's stack.
#[derive(Debug, Clone, Copy)]
struct FilteredCall {
    function: u32,
    how: CallKind,
    /// The call is of a selected thread.
    mine: bool,
    /// The entry was recorded.
    whole: bool,
    begin: u64,
    self_ticks: u64,
    callees: u64,
    /// Number of the stretch for which the calling arc is in the region's table and `node` is the
    /// call's path.
    stretch: u32,
    node: Option<usize>,
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
    functions: HashMap<u32, FunctionSums>,
    /// Calls, calls that ended, and the total time of these.
    arcs: HashMap<(u32, u32, CallKind), [u64; 3]>,
    /// Number of calls, and begin of the first.
    buckets: HashMap<(u32, u32, u32), (u64, u64)>,
}

/// Region, last element, and kind of call of a path; a thread is its number.
type CountedFrame = (u32, PathFrame<u32, u32>, CallKind);

/// Calls and self time of a path.
#[derive(Debug, Clone, Copy, Default)]
struct PathCounts {
    calls: u64,
    self_ticks: u64,
}

struct ThreadReader<'a> {
    chosen: &'a SelectedThreads,
    bounds: TraceBounds,
    /// Stacks by thread; the last is of unknown threads.
    stacks: Vec<Vec<FilteredCall>>,
    /// Open regions, outermost first.
    open: Vec<u32>,
    /// Sums of the innermost open region.
    here: RegionSums,
    regions: BTreeMap<u32, RegionSums>,
    /// Call paths of all regions.
    paths: CallTree<CountedFrame, PathCounts>,
    begun: bool,
    /// Number of stretches so far; each change of the open regions begins one.
    stretch: u32,
    events: u64,
}

/// Stands for time outside of regions, where nothing counts.
const OUTSIDE: u32 = u32::MAX;

impl<'a> ThreadReader<'a> {
    fn new(machine: &ReplayState<()>, bounds: TraceBounds, chosen: &'a SelectedThreads) -> Self {
        Self {
            chosen,
            bounds,
            stacks: vec![Vec::new(); machine.unknown_thread() + 1],
            open: Vec::new(),
            here: RegionSums::default(),
            regions: BTreeMap::new(),
            paths: CallTree::default(),
            begun: false,
            stretch: 1,
            events: 0,
        }
    }

    fn region(&self) -> u32 {
        self.open.last().copied().unwrap_or(OUTSIDE)
    }

    /// Stores the sums of the innermost region, changes the open regions, and restores the sums of
    /// the one that is now innermost.
    fn change(&mut self, change: impl FnOnce(&mut Vec<u32>)) {
        let was = self.region();
        let here = std::mem::take(&mut self.here);
        self.regions.insert(was, here);
        change(&mut self.open);
        self.stretch += 1;
        self.here = self.regions.remove(&self.region()).unwrap_or_default();
    }

    /// Adds the arcs and paths that lead to the thread's open calls to the region.
    fn lead_to(&mut self, thread: usize) {
        let stack = &self.stacks[thread];
        let mut first = stack.len();
        while first > 0 && stack[first - 1].stretch != self.stretch {
            first -= 1;
            // The interrupted code did not call the interrupt's function.
            if stack[first].how == CallKind::Interrupt {
                break;
            }
        }
        for at in first..self.stacks[thread].len() {
            let FilteredCall { function, how, mine, .. } = self.stacks[thread][at];
            let below = at.checked_sub(1).map(|below| self.stacks[thread][below]);
            if mine {
                self.here.arcs.entry((caller(how, below.as_ref()), function, how)).or_default();
            }
            let node = mine.then(|| self.path(thread, function, how, below.as_ref()));
            let frame = &mut self.stacks[thread][at];
            (frame.stretch, frame.node) = (self.stretch, node);
        }
    }

    /// Returns the path of a frame, given the one below it.
    fn path(&mut self, thread: usize, function: u32, how: CallKind, below: Option<&FilteredCall>) -> usize {
        let parent = match below {
            _ if how == CallKind::Interrupt => Some(self.node(None, PathFrame::Interrupt, CallKind::Call)),
            Some(below) => below.node,
            None => Some(self.node(None, PathFrame::Thread(thread as u32), CallKind::Call)),
        };
        self.node(parent, PathFrame::Function(function), how)
    }

    fn node(&mut self, parent: Option<usize>, frame: PathFrame<u32, u32>, how: CallKind) -> usize {
        self.paths.child(parent, (self.region(), frame, how))
    }

    /// Returns the rows of the path table for the first `regions` regions.
    fn path_rows(&self, regions: usize) -> Vec<PathNode> {
        let mut rows: Vec<PathNode> = Vec::new();
        let mut place = vec![PathNode::ROOT; self.paths.nodes.len()];
        for (at, node) in self.paths.nodes.iter().enumerate() {
            let (region, frame, how) = node.frame;
            if region as usize >= regions {
                continue;
            }
            place[at] = rows.len() as u32;
            let (kind, comm) = match frame {
                PathFrame::Thread(thread) => {
                    let row = self.chosen.threads.get(&thread);
                    row.map_or((PathKind::Thread, String::new()), super::root_of)
                }
                _ => (frame.kind(), String::new()),
            };
            rows.push(PathNode {
                region,
                path: place[at],
                parent: node.parent.map_or(PathNode::ROOT, |parent| place[parent]),
                kind,
                comm,
                function: frame.function().map_or(FunctionIndex::NONE, |function| FunctionIndex(*function)),
                how,
                calls: node.figures.calls,
                self_ticks: Ticks(node.figures.self_ticks),
                ..PathNode::default()
            });
        }
        rows
    }

    fn is_mine(&self, thread: usize, how: CallKind, below: Option<&FilteredCall>) -> bool {
        match below {
            _ if how == CallKind::Interrupt => self.chosen.interrupts,
            Some(below) => below.mine,
            None => self.chosen.threads.contains_key(&(thread as u32)),
        }
    }

    fn counted(mut self, regions: usize) -> ThreadTables {
        self.change(|open| open.clear());
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

/// Returns the caller of an arc; an interrupt's function has none.
fn caller(how: CallKind, below: Option<&FilteredCall>) -> u32 {
    below.filter(|_| how != CallKind::Interrupt).map_or(FunctionIndex::NONE.get(), |below| below.function)
}

impl EventVisitor for ThreadReader<'_> {
    type PerFrame = ();

    fn begin(&mut self, machine: &mut ReplayState<()>, opening: &ChunkOpening<'_>) {
        let goes_on = self.begun && !self.open.is_empty() && machine.now() == opening.begin;
        if !(goes_on && machine.agrees_with(opening)) {
            machine.adopt(opening);
            for (thread, frames) in opening.stacks.iter().enumerate() {
                let mut stack: Vec<FilteredCall> = Vec::with_capacity(frames.len());
                for &(function, how) in *frames {
                    let how = how_of(how);
                    let mine = self.is_mine(thread, how, stack.last());
                    let begin = opening.begin;
                    stack.push(FilteredCall {
                        function,
                        how,
                        mine,
                        whole: false,
                        begin,
                        self_ticks: 0,
                        callees: 0,
                        stretch: 0,
                        node: None,
                    });
                }
                self.stacks[thread] = stack;
            }
        }
        self.begun = true;
        self.change(|open| *open = opening.regions.to_vec());
    }

    #[inline]
    fn pass(&mut self, machine: &mut ReplayState<()>, ns: u64, _: EventWeights, _: &Event) {
        let running = machine.running();
        let Some(top) = self.stacks[running].last_mut() else { return };
        top.self_ticks += ns;
        let (mine, is_led_to) = (top.mine, top.stretch == self.stretch);
        if mine && ns > 0 {
            self.here.functions.entry(top.function).or_default().self_ticks += ns;
            if !is_led_to {
                self.lead_to(running);
            }
            if let Some(node) = self.stacks[running].last().and_then(|top| top.node) {
                self.paths.nodes[node].figures.self_ticks += ns;
            }
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut ReplayState<()>, function: u32, how: kerntune_trace::EnterKind) {
        let (how, running) = (how_of(how), machine.running());
        let is_led_to = self.stacks[running].last().is_none_or(|below| below.stretch == self.stretch);
        if !is_led_to && how != CallKind::Interrupt {
            self.lead_to(running);
        }
        let below = self.stacks[running].last().copied();
        let mine = self.is_mine(running, how, below.as_ref());
        let mut node = None;
        if mine {
            self.events += 1;
            self.here.functions.entry(function).or_default().calls += 1;
            self.here.arcs.entry((caller(how, below.as_ref()), function, how)).or_default()[0] += 1;
            let at = self.path(running, function, how, below.as_ref());
            self.paths.nodes[at].figures.calls += 1;
            node = Some(at);
        }
        let (begin, stretch) = (machine.now(), self.stretch);
        self.stacks[running].push(FilteredCall {
            function,
            how,
            mine,
            whole: true,
            begin,
            self_ticks: 0,
            callees: 0,
            stretch,
            node,
        });
    }

    #[inline]
    fn ended(&mut self, machine: &mut ReplayState<()>, _: StackFrame<()>) {
        let stack = &mut self.stacks[machine.running()];
        let Some(frame) = stack.pop() else { return };
        let elapsed = frame.self_ticks + frame.callees;
        if frame.how != CallKind::Interrupt {
            if let Some(below) = stack.last_mut() {
                below.callees += elapsed;
            }
        }
        if !(frame.mine && frame.whole) {
            return;
        }
        self.events += 1;
        let below = caller(frame.how, stack.last());
        let sums = self.here.functions.entry(frame.function).or_default();
        sums.min = if sums.ended == 0 { frame.self_ticks } else { sums.min.min(frame.self_ticks) };
        sums.max = sums.max.max(frame.self_ticks);
        if sums.ended == 0
            || elapsed > sums.slowest
            || elapsed == sums.slowest && frame.begin < sums.slowest_at
        {
            (sums.slowest, sums.slowest_at) = (elapsed, frame.begin);
        }
        sums.ended += 1;
        sums.ended_self_ticks += frame.self_ticks;
        sums.elapsed += elapsed;
        let arc = self.here.arcs.entry((below, frame.function, frame.how)).or_default();
        (arc[1], arc[2]) = (arc[1] + 1, arc[2] + elapsed);
        let bucket = bucket_of(Ticks(elapsed));
        let (count, first) =
            self.here.buckets.entry((below, frame.function, bucket)).or_insert((0, frame.begin));
        (*count, *first) = (*count + 1, (*first).min(frame.begin));
    }

    fn region_begun(&mut self, _: &mut ReplayState<()>, region: u32) {
        self.change(|open| open.push(region));
    }

    fn region_ended(&mut self, _: &mut ReplayState<()>, region: u32) {
        self.change(|open| open.retain(|other| *other != region));
    }
}

fn how_of(how: kerntune_trace::EnterKind) -> CallKind {
    match how {
        kerntune_trace::EnterKind::Call => CallKind::Call,
        kerntune_trace::EnterKind::Jump => CallKind::Jump,
        kerntune_trace::EnterKind::Interrupt => CallKind::Interrupt,
        kerntune_trace::EnterKind::Exception => CallKind::Exception,
        kerntune_trace::EnterKind::Syscall => CallKind::Syscall,
    }
}
