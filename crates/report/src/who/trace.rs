//! What threads did, from the recording's trace: the analysis of a profile with everybody else left out.

use super::{Chosen, Counted};
use crate::{Error, Result};
use kerntune_analyze::events::{replay, Bounds, Frame, Machine, Opening, Visitor};
use kerntune_analyze::TraceFile;
use kerntune_profile::{
    bucket_of, CallArc, FunctionIndex, FunctionStats, HistogramBucket, How, Nanoseconds, PathKind, PathNode,
    Profile,
};
use kerntune_trace::{Event, Weights};
use std::collections::{BTreeMap, HashMap};

/// Reads the whole trace, chunk after chunk.
pub(super) fn read(profile: &Profile, trace: &TraceFile<'_>, chosen: &Chosen) -> Result<Counted> {
    let functions = profile.tables.symbols.len();
    let bounds = Bounds { functions, ..Bounds::of(trace.recording) };
    let mut machine = Machine::new(bounds);
    let mut reader = Reader::new(&machine, bounds, chosen);
    let mut chunks = trace.reader().map_err(Error::Trace)?;
    for number in 0..trace.chunks() {
        let chunk = chunks.read(number).map_err(Error::Trace)?;
        replay(&mut machine, &mut reader, &chunk).map_err(Error::Trace)?;
    }
    Ok(reader.counted(profile.tables.regions.len()))
}

/// An open call.
#[derive(Debug, Clone, Copy)]
struct Open {
    function: u32,
    how: How,
    /// It is of a thread that was asked for.
    mine: bool,
    /// It was seen from its entry on.
    whole: bool,
    begin: u64,
    net: u64,
    callees: u64,
    /// The stretch in which the arc over which it was called is among those of the region, and `node` is its path.
    stretch: u32,
    node: u32,
}

/// What is counted of a function in a region.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    calls: u64,
    ended: u64,
    net: u64,
    ended_net: u64,
    elapsed: u64,
    max: u64,
    min: u64,
    slowest: u64,
    slowest_at: u64,
}

/// What is counted in a region.
#[derive(Debug, Default)]
struct Region {
    functions: HashMap<u32, Sums>,
    /// Calls, those that ended, and the elapsed time of these.
    arcs: HashMap<(u32, u32, How), [u64; 3]>,
    /// How many, and when the first began.
    buckets: HashMap<(u32, u32, u32), (u64, u64)>,
}

/// A call path: its end, its calls, and the time there.
#[derive(Debug, Clone, Copy)]
struct Node {
    region: u32,
    parent: u32,
    end: End,
    calls: u64,
    net: u64,
}

/// What a path ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    /// The root of a thread's paths.
    Thread(u32),
    /// That of all interrupts.
    Interrupt,
    Function(u32, How),
}

struct Reader<'a> {
    chosen: &'a Chosen,
    bounds: Bounds,
    /// Of each thread, and of nobody.
    stacks: Vec<Vec<Open>>,
    /// Open regions, outermost first.
    open: Vec<u32>,
    /// The innermost region, and what is counted in it.
    here: Region,
    regions: BTreeMap<u32, Region>,
    /// Call paths of all regions, parents before children, and where each is.
    nodes: Vec<Node>,
    paths: HashMap<(u32, u32, End), u32>,
    begun: bool,
    /// Counts the stretches between two changes of the region.
    stretch: u32,
    events: u64,
}

/// Stands for no region: nothing is recorded there that counts.
const OUTSIDE: u32 = u32::MAX;

impl<'a> Reader<'a> {
    fn new(machine: &Machine<()>, bounds: Bounds, chosen: &'a Chosen) -> Self {
        Self {
            chosen,
            bounds,
            stacks: vec![Vec::new(); machine.nobody() + 1],
            open: Vec::new(),
            here: Region::default(),
            regions: BTreeMap::new(),
            nodes: Vec::new(),
            paths: HashMap::new(),
            begun: false,
            stretch: 1,
            events: 0,
        }
    }

    fn region(&self) -> u32 {
        self.open.last().copied().unwrap_or(OUTSIDE)
    }

    /// Puts away what was counted in the region that was the innermost, and takes up what the one that is now has.
    fn change(&mut self, change: impl FnOnce(&mut Vec<u32>)) {
        let was = self.region();
        let here = std::mem::take(&mut self.here);
        self.regions.insert(was, here);
        change(&mut self.open);
        self.stretch += 1;
        self.here = self.regions.remove(&self.region()).unwrap_or_default();
    }

    /// Something happens above these frames in this region: the arcs and paths that lead to it are part of it.
    fn lead_to(&mut self, thread: usize) {
        let stack = &self.stacks[thread];
        let mut first = stack.len();
        while first > 0 && stack[first - 1].stretch != self.stretch {
            first -= 1;
            // What an interrupt hit did not call it.
            if stack[first].how == How::Interrupt {
                break;
            }
        }
        for at in first..self.stacks[thread].len() {
            let Open { function, how, mine, .. } = self.stacks[thread][at];
            let below = at.checked_sub(1).map(|below| self.stacks[thread][below]);
            if mine {
                self.here.arcs.entry((caller(how, below.as_ref()), function, how)).or_default();
            }
            let node = if mine { self.path(thread, function, how, below.as_ref()) } else { PathNode::ROOT };
            let frame = &mut self.stacks[thread][at];
            (frame.stretch, frame.node) = (self.stretch, node);
        }
    }

    /// The path of a frame, given the one below it.
    fn path(&mut self, thread: usize, function: u32, how: How, below: Option<&Open>) -> u32 {
        let parent = match below {
            _ if how == How::Interrupt => self.node(PathNode::ROOT, End::Interrupt),
            Some(below) => below.node,
            None => self.node(PathNode::ROOT, End::Thread(thread as u32)),
        };
        self.node(parent, End::Function(function, how))
    }

    fn node(&mut self, parent: u32, end: End) -> u32 {
        let (region, nodes) = (self.region(), &mut self.nodes);
        *self.paths.entry((region, parent, end)).or_insert_with(|| {
            nodes.push(Node { region, parent, end, calls: 0, net: 0 });
            nodes.len() as u32 - 1
        })
    }

    /// The rows of the paths' table, those of the regions that there are.
    fn path_rows(&self, regions: usize) -> Vec<PathNode> {
        let mut rows: Vec<PathNode> = Vec::new();
        let mut place = vec![PathNode::ROOT; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| (node.region as usize) < regions) {
            place[at] = rows.len() as u32;
            let (kind, comm, function, how) = match node.end {
                End::Function(function, how) => {
                    (PathKind::Function, String::new(), FunctionIndex(function), how)
                }
                End::Interrupt => (PathKind::Interrupt, String::new(), FunctionIndex::NONE, How::Call),
                End::Thread(thread) => {
                    let (kind, comm) = self
                        .chosen
                        .threads
                        .get(&thread)
                        .map_or((PathKind::Thread, String::new()), super::root_of);
                    (kind, comm, FunctionIndex::NONE, How::Call)
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
                net_ns: Nanoseconds(node.net),
                taken_branches: 0,
                l1i_misses: 0,
                itlb_misses: 0,
            });
        }
        rows
    }

    fn is_mine(&self, thread: usize, how: How, below: Option<&Open>) -> bool {
        match below {
            _ if how == How::Interrupt => self.chosen.interrupts,
            Some(below) => below.mine,
            None => self.chosen.threads.contains_key(&(thread as u32)),
        }
    }

    fn counted(mut self, regions: usize) -> Counted {
        self.change(|open| open.clear());
        let mut counted = Counted {
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
            let by_function: BTreeMap<u32, Sums> = sums.functions.into_iter().collect();
            for (function, sums) in
                by_function.into_iter().filter(|(_, sums)| sums.net + sums.calls + sums.ended > 0)
            {
                let user = usize::from(self.bounds.is_user(function));
                counted.in_functions.entry(region).or_default()[user] += sums.net;
                counted.functions.push(FunctionStats {
                    region,
                    function: index(function),
                    calls: sums.calls,
                    ended: sums.ended,
                    net_ns: Nanoseconds(sums.net),
                    ended_net_ns: Nanoseconds(sums.ended_net),
                    elapsed_ns: Nanoseconds(sums.elapsed),
                    max_ns: Nanoseconds(sums.max),
                    min_ns: Nanoseconds(sums.min),
                    slowest_ns: Nanoseconds(sums.slowest),
                    slowest_at_ns: Nanoseconds(sums.slowest_at),
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
                    elapsed_ns: Nanoseconds(elapsed),
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
                    example_ns: Nanoseconds(example),
                },
            ));
        }
        counted
    }
}

/// The caller that an arc has: nothing called what an interrupt entered.
fn caller(how: How, below: Option<&Open>) -> u32 {
    below.filter(|_| how != How::Interrupt).map_or(FunctionIndex::NONE.get(), |below| below.function)
}

impl Visitor for Reader<'_> {
    type Frame = ();

    fn begin(&mut self, machine: &mut Machine<()>, opening: &Opening<'_>) {
        let goes_on = self.begun && !self.open.is_empty() && machine.now() == opening.begin;
        if !(goes_on && machine.is_as(opening)) {
            machine.take(opening);
            for (thread, frames) in opening.stacks.iter().enumerate() {
                let mut stack: Vec<Open> = Vec::with_capacity(frames.len());
                for &(function, how) in *frames {
                    let how = how_of(how);
                    let mine = self.is_mine(thread, how, stack.last());
                    let begin = opening.begin;
                    stack.push(Open {
                        function,
                        how,
                        mine,
                        whole: false,
                        begin,
                        net: 0,
                        callees: 0,
                        stretch: 0,
                        node: PathNode::ROOT,
                    });
                }
                self.stacks[thread] = stack;
            }
        }
        self.begun = true;
        self.change(|open| *open = opening.regions.to_vec());
    }

    #[inline]
    fn pass(&mut self, machine: &mut Machine<()>, ns: u64, _: Weights, _: &Event) {
        let running = machine.running();
        let Some(top) = self.stacks[running].last_mut() else { return };
        top.net += ns;
        let (mine, is_led_to) = (top.mine, top.stretch == self.stretch);
        if mine && ns > 0 {
            self.here.functions.entry(top.function).or_default().net += ns;
            if !is_led_to {
                self.lead_to(running);
            }
            let node = self.stacks[running].last().map_or(PathNode::ROOT, |top| top.node);
            if let Some(node) = self.nodes.get_mut(node as usize) {
                node.net += ns;
            }
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut Machine<()>, function: u32, how: kerntune_trace::How) {
        let (how, running) = (how_of(how), machine.running());
        let is_led_to = self.stacks[running].last().is_none_or(|below| below.stretch == self.stretch);
        if !is_led_to && how != How::Interrupt {
            self.lead_to(running);
        }
        let below = self.stacks[running].last().copied();
        let mine = self.is_mine(running, how, below.as_ref());
        let mut node = PathNode::ROOT;
        if mine {
            self.events += 1;
            self.here.functions.entry(function).or_default().calls += 1;
            self.here.arcs.entry((caller(how, below.as_ref()), function, how)).or_default()[0] += 1;
            node = self.path(running, function, how, below.as_ref());
            if let Some(node) = self.nodes.get_mut(node as usize) {
                node.calls += 1;
            }
        }
        let (begin, stretch) = (machine.now(), self.stretch);
        self.stacks[running].push(Open {
            function,
            how,
            mine,
            whole: true,
            begin,
            net: 0,
            callees: 0,
            stretch,
            node,
        });
    }

    #[inline]
    fn ended(&mut self, machine: &mut Machine<()>, _: Frame<()>) {
        let stack = &mut self.stacks[machine.running()];
        let Some(frame) = stack.pop() else { return };
        let elapsed = frame.net + frame.callees;
        if frame.how != How::Interrupt {
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
        sums.min = if sums.ended == 0 { frame.net } else { sums.min.min(frame.net) };
        sums.max = sums.max.max(frame.net);
        if sums.ended == 0
            || elapsed > sums.slowest
            || elapsed == sums.slowest && frame.begin < sums.slowest_at
        {
            (sums.slowest, sums.slowest_at) = (elapsed, frame.begin);
        }
        sums.ended += 1;
        sums.ended_net += frame.net;
        sums.elapsed += elapsed;
        let arc = self.here.arcs.entry((below, frame.function, frame.how)).or_default();
        (arc[1], arc[2]) = (arc[1] + 1, arc[2] + elapsed);
        let bucket = bucket_of(Nanoseconds(elapsed));
        let (count, first) =
            self.here.buckets.entry((below, frame.function, bucket)).or_insert((0, frame.begin));
        (*count, *first) = (*count + 1, (*first).min(frame.begin));
    }

    fn region_begun(&mut self, _: &mut Machine<()>, region: u32) {
        self.change(|open| open.push(region));
    }

    fn region_ended(&mut self, _: &mut Machine<()>, region: u32) {
        self.change(|open| open.retain(|other| *other != region));
    }
}

fn how_of(how: kerntune_trace::How) -> How {
    match how {
        kerntune_trace::How::Call => How::Call,
        kerntune_trace::How::Jump => How::Jump,
        kerntune_trace::How::Interrupt => How::Interrupt,
        kerntune_trace::How::Exception => How::Exception,
        kerntune_trace::How::Syscall => How::Syscall,
    }
}
