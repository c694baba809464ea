//! Visitor that follows the calls of a function through a trace.

use super::followed::{BoundaryHit, DistinctFunctions, FollowedCall, MAX_FOLLOWED};
use super::model::{CallFigures, FigureSpreads, NodeFigures, NodeSums};
use super::spread::{CallPosition, SpreadBuilder};
use super::tree::CallTree;
use super::AnatomyRequest;
use crate::events::{self, credit_caller, CallTimes, ChunkOpening, EventVisitor};
use kerntune_trace::{EnterKind, Event, EventWeights};
use std::collections::BTreeMap;

type ReplayState = events::ReplayState<AnatomyFrame>;
type StackFrame = events::StackFrame<AnatomyFrame>;

/// No call of the operation.
const NONE: u32 = u32::MAX;
/// A call of the operation that is not followed: some of it was not recorded, or a single other
/// call is wanted.
const UNSEEN: u32 = u32::MAX - 1;

/// State of an open call.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnatomyFrame {
    times: CallTimes,
    /// Index in `followed` of the operation's call that contains this one; or [`NONE`], [`UNSEEN`].
    part: u32,
    /// Index of its entry there. A call that does not fit into the tree uses the entry of its
    /// caller.
    entry: u32,
    /// 1 for the operation.
    depth: u32,
}

impl Default for AnatomyFrame {
    fn default() -> Self {
        Self { times: CallTimes::default(), part: NONE, entry: 0, depth: 0 }
    }
}

impl AsMut<CallTimes> for AnatomyFrame {
    #[inline]
    fn as_mut(&mut self) -> &mut CallTimes {
        &mut self.times
    }
}

impl AnatomyFrame {
    fn is_followed(&self) -> bool {
        self.part < UNSEEN
    }
}

/// The single call that was wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundCall {
    pub begin: u64,
    pub thread: u32,
    pub figures: CallFigures,
    pub boundary: Option<BoundaryHit>,
}

/// Builders of the spreads of all figures.
#[derive(Debug, Default)]
pub(super) struct SpreadBuilders {
    pub ns: SpreadBuilder,
    pub calls: SpreadBuilder,
    pub functions: SpreadBuilder,
    pub depth: SpreadBuilder,
}

impl SpreadBuilders {
    fn add(&mut self, figures: &CallFigures, place: CallPosition) {
        self.ns.add(figures.ns, place);
        self.calls.add(figures.calls, place);
        self.functions.add(figures.functions, place);
        self.depth.add(figures.depth, place);
    }

    pub fn spreads(&self) -> FigureSpreads {
        FigureSpreads {
            ns: self.ns.spread(),
            calls: self.calls.spread(),
            functions: self.functions.spread(),
            depth: self.depth.spread(),
        }
    }
}

/// The collected calls. Sums are indexed by node of the tree.
#[derive(Debug, Default)]
pub(super) struct CollectedCalls {
    pub tree: CallTree,
    pub sums: Vec<NodeSums>,
    pub all: SpreadBuilders,
    pub before: SpreadBuilders,
    pub after: SpreadBuilder,
    /// Number of calls by the first function of the boundary that they reached.
    pub first: BTreeMap<u32, u64>,
    pub cut: u64,
    pub elsewhere: u64,
    pub crowded: u64,
    pub folded: u64,
    /// The single call that was wanted, if one was.
    pub call: Option<FoundCall>,
}

pub(super) struct AnatomyCollector<'a> {
    request: &'a AnatomyRequest<'a>,
    /// The single call that is wanted; `None` for all.
    only: Option<CallPosition>,
    /// The chunk that was read last.
    previous: Option<usize>,
    /// Number of the operation's calls that began in this chunk.
    begun: u32,
    followed: Vec<FollowedCall>,
    /// Elements of `followed` that can be reused.
    free: Vec<u32>,
    different: DistinctFunctions,
    found: CollectedCalls,
}

impl EventVisitor for AnatomyCollector<'_> {
    type PerFrame = AnatomyFrame;

    fn begin(&mut self, machine: &mut ReplayState, opening: &ChunkOpening<'_>) {
        let follows = self.previous.is_some_and(|previous| previous + 1 == machine.chunk);
        self.previous = Some(machine.chunk);
        self.begun = 0;
        if follows && machine.is_continued_by(opening) {
            return;
        }
        for (thread, stated) in opening.stacks.iter().enumerate() {
            let frames = &machine.stack_of(thread).frames;
            let ours = frames.iter().map(|frame| (frame.function, frame.how));
            let kept = ours.zip(*stated).take_while(|(ours, stated)| ours == *stated).count();
            self.lose(thread, machine);
            let operation = self.request.function.get();
            self.found.cut += outermost(operation, stated).filter(|at| *at >= kept).count() as u64;
        }
        machine.adopt(opening);
        for (thread, stated) in opening.stacks.iter().enumerate() {
            let frames = &mut machine.stack_of(thread).frames;
            for at in outermost(self.request.function.get(), stated) {
                let interrupt = |frame: &StackFrame| frame.how == EnterKind::Interrupt;
                let end =
                    frames[at + 1..].iter().position(interrupt).map_or(frames.len(), |end| at + 1 + end);
                frames[at..end].iter_mut().for_each(|frame| frame.data.part = UNSEEN);
            }
        }
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.found.call.is_some()
    }

    #[inline]
    fn pass(&mut self, machine: &mut ReplayState, ns: u64, _: EventWeights, _: &Event) {
        machine.charge(ns);
    }

    #[inline]
    fn enter(&mut self, machine: &mut ReplayState, function: u32, how: EnterKind) -> AnatomyFrame {
        let below = machine.stack.frames.last().map_or(AnatomyFrame::default(), |frame| frame.data);
        match how {
            EnterKind::Interrupt => {}
            _ if below.is_followed() => return self.enter_within(machine, below, function, how),
            _ if below.part == UNSEEN => return AnatomyFrame { part: UNSEEN, ..AnatomyFrame::default() },
            _ => {}
        }
        match function == self.request.function.get() {
            true => self.begin_call(machine),
            false => AnatomyFrame::default(),
        }
    }

    #[inline]
    fn ended(&mut self, machine: &mut ReplayState, frame: StackFrame) {
        let open = frame.data;
        if !open.is_followed() {
            return;
        }
        let call = &mut self.followed[open.part as usize];
        call.entries[open.entry as usize].self_time += open.times.self_ticks;
        let total = credit_caller(&mut machine.stack.frames, frame);
        if open.depth == 1 {
            self.end_call(machine, open.part, total);
        }
    }
}

impl<'a> AnatomyCollector<'a> {
    /// Collects all calls, or a single one.
    pub fn new(request: &'a AnatomyRequest<'a>, only: Option<CallPosition>, tree: CallTree) -> Self {
        Self {
            request,
            only,
            previous: None,
            begun: 0,
            followed: Vec::new(),
            free: Vec::new(),
            different: DistinctFunctions::new(request.functions),
            found: CollectedCalls { tree, ..CollectedCalls::default() },
        }
    }

    pub fn finish(self) -> CollectedCalls {
        self.found
    }

    /// Ends the trace: open calls count as cut.
    pub fn lose_all(&mut self, machine: &mut ReplayState) {
        for thread in 0..=machine.unknown_thread() {
            self.lose(thread, machine);
        }
    }

    /// Stops following the calls on a thread's stack.
    fn lose(&mut self, thread: usize, machine: &mut ReplayState) {
        for frame in &machine.stack_of(thread).frames {
            if frame.data.is_followed() && frame.data.depth == 1 {
                self.found.cut += 1;
                self.free.push(frame.data.part);
            }
        }
    }

    #[inline(never)]
    fn begin_call(&mut self, machine: &ReplayState) -> AnatomyFrame {
        let place = CallPosition { chunk: machine.chunk as u32, nth: self.begun };
        self.begun = self.begun.saturating_add(1);
        let unseen = AnatomyFrame { part: UNSEEN, ..AnatomyFrame::default() };
        if self.only.is_some_and(|only| only != place) {
            return unseen;
        }
        let part = match self.free.pop() {
            Some(part) => part,
            None if self.followed.len() >= MAX_FOLLOWED => {
                self.found.crowded += 1;
                return unseen;
            }
            None => {
                self.followed.push(FollowedCall::default());
                self.followed.len() as u32 - 1
            }
        };
        self.followed[part as usize].begin(place, machine.now, machine.running as u32);
        AnatomyFrame { part, depth: 1, ..AnatomyFrame::default() }
    }

    /// Adds a function that is entered within a call of the operation.
    #[inline]
    fn enter_within(
        &mut self,
        machine: &ReplayState,
        below: AnatomyFrame,
        function: u32,
        how: EnterKind,
    ) -> AnatomyFrame {
        if self.request.until.get(function as usize).is_some_and(|until| *until) {
            self.reach(machine, below, function);
        }
        let call = &mut self.followed[below.part as usize];
        let depth = below.depth + 1;
        call.calls += 1;
        call.depth = call.depth.max(depth.into());
        let node = call.entries[below.entry as usize].node;
        let entry = match self.found.tree.enter(node, function, how) {
            Some(node) => {
                let entry = call.entry(node);
                call.entries[entry as usize].calls += 1;
                entry
            }
            None => {
                call.folded += 1;
                below.entry
            }
        };
        AnatomyFrame { part: below.part, entry, depth, ..AnatomyFrame::default() }
    }

    /// Notes that a call of the operation is about to enter a function of the boundary.
    #[inline(never)]
    fn reach(&mut self, machine: &ReplayState, below: AnatomyFrame, function: u32) {
        let call = &mut self.followed[below.part as usize];
        if call.boundary.is_some() {
            return;
        }
        for entry in &mut call.entries {
            (entry.calls_before, entry.self_time_before) = (entry.calls, entry.self_time);
        }
        let mut ns = 0;
        for frame in machine.stack.frames.iter().rev() {
            let open = frame.data;
            call.entries[open.entry as usize].self_time_before += open.times.self_ticks;
            ns += open.times.total();
            if open.depth == 1 {
                break;
            }
        }
        let functions = self.different.count(&self.found.tree, &call.entries);
        let figures = CallFigures { ns, calls: call.calls, functions, depth: call.depth };
        call.boundary =
            Some(BoundaryHit { function, node: call.entries[below.entry as usize].node, figures });
    }

    /// Adds a call of the operation that has ended.
    #[inline(never)]
    fn end_call(&mut self, machine: &ReplayState, part: u32, ns: u64) {
        self.free.push(part);
        let call = &self.followed[part as usize];
        let counts = |region: &u32| self.request.regions.get(*region as usize).is_some_and(|counts| *counts);
        if !machine.regions.last().is_some_and(counts) {
            self.found.elsewhere += 1;
            return;
        }
        let found = &mut self.found;
        let functions = self.different.count(&found.tree, &call.entries);
        let figures = CallFigures { ns, calls: call.calls, functions, depth: call.depth };
        found.sums.resize(found.tree.nodes.len(), NodeSums::default());
        for (order, entry) in (0..).zip(&call.entries) {
            let sums = &mut found.sums[entry.node as usize];
            sums.operations += 1;
            sums.order = order;
            add(&mut sums.whole, entry.calls, entry.self_time);
            add(&mut sums.before, entry.calls_before, entry.self_time_before);
        }
        found.folded += call.folded;
        found.all.add(&figures, call.place);
        if let Some(boundary) = &call.boundary {
            found.before.add(&boundary.figures, call.place);
            found.after.add(ns - boundary.figures.ns, call.place);
            *found.first.entry(boundary.function).or_default() += 1;
        }
        if self.only.is_some() {
            found.call =
                Some(FoundCall { begin: call.begin, thread: call.thread, figures, boundary: call.boundary });
        }
    }
}

fn add(part: &mut NodeFigures, calls: u64, self_time: u64) {
    part.calls += calls;
    part.self_ticks += self_time;
}

/// Returns the positions on a stack of the operation's calls that are not inside another one; an
/// interrupt begins outside of all calls.
fn outermost(operation: u32, frames: &[(u32, EnterKind)]) -> impl Iterator<Item = usize> + '_ {
    let mut within = false;
    frames.iter().enumerate().filter_map(move |(at, &(function, how))| {
        within &= how != EnterKind::Interrupt;
        let begins = !within && function == operation;
        within |= begins;
        begins.then_some(at)
    })
}
