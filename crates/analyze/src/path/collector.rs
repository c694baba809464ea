//! Visitor that reads a path from a trace.

use super::model::{CodePath, PathEntryKind, SelectedOperation, ThreadPath, ThreadStretch};
use super::record::{EntryBudget, PathFrame, StackFrame, ThreadRecorder};
use super::select::{PathBegin, PathPlan};
use super::PathError;
use crate::events::{self, replay, ChunkOpening, EventVisitor, TraceBounds};
use crate::known::is_idle;
use crate::TraceFile;
use kerntune_trace::{EnterKind, Event, EventWeights, Recording};

type ReplayState = events::ReplayState<PathFrame>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathPhase {
    /// The event that begins the path has not come yet.
    Waiting,
    Active,
    Done,
}

/// Reads the path of `plan`; if several calls begin at its time, the `candidate`th of them.
pub(super) fn run(
    trace: &TraceFile<'_>,
    functions: usize,
    plan: &PathPlan,
    candidate: u64,
) -> Result<CodePath, PathError> {
    let mut collector = PathCollector::new(trace.recording, plan, candidate);
    let bounds =
        TraceBounds { functions, regions: trace.recording.regions.len(), ..TraceBounds::of(trace.recording) };
    let mut machine = ReplayState::new(bounds);
    let mut reader = trace.reader()?;
    for number in trace.covering(plan.window.0, u64::MAX) {
        let Some(index) = trace.recording.chunks.get(number) else { break };
        if collector.phase == PathPhase::Done {
            break;
        }
        if !collector.needs(index.begin_ns, index.end_ns) {
            collector.previous = None;
            continue;
        }
        collector.path.chunks += 1;
        replay(&mut machine, &mut collector, &reader.read(number)?)?;
    }
    collector.finish(&mut machine)
}

struct PathCollector<'a> {
    recording: &'a Recording,
    plan: &'a PathPlan,
    candidate: u64,
    threads: Vec<ThreadRecorder>,
    shown: Vec<bool>,
    /// The replay's virtual time; after the path's end, the time of that end.
    now: u64,
    /// Number of the chunk before this one; `None` if that was not read.
    previous: Option<usize>,
    phase: PathPhase,
    /// True if the path has begun.
    began: bool,
    /// Number of matching calls or operations so far.
    seen: u64,
    /// True if the path is a single call, which ends with that call.
    one_call: bool,
    budget: EntryBudget,
    path: CodePath,
    /// Context switches of all threads since the path began.
    switches: u64,
    idle_ns: u64,
    /// `switches` and `idle_ns` at the end of the last stretch; `None` before the first one.
    last_stretch: Option<(u64, u64)>,
    /// True if the thread that is being switched away is shown.
    leaves: bool,
    gap: bool,
}

impl EventVisitor for PathCollector<'_> {
    type PerFrame = PathFrame;

    fn begin(&mut self, machine: &mut ReplayState, opening: &ChunkOpening<'_>) {
        let follows = machine.chunk.checked_sub(1) == self.previous && self.previous.is_some();
        self.previous = Some(machine.chunk);
        if follows && machine.is_continued_by(opening) {
            return;
        }
        if self.phase == PathPhase::Active {
            self.lose(machine);
            if self.one_call {
                self.phase = PathPhase::Done;
                return;
            }
        }
        machine.adopt(opening);
        self.now = opening.begin;
        match self.phase {
            PathPhase::Active => self.begin_stretch(machine),
            PathPhase::Waiting if self.plan.begins == PathBegin::Time && self.in_window(self.now) => {
                self.activate(machine);
            }
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.phase == PathPhase::Done
    }

    fn pass(&mut self, machine: &mut ReplayState, ns: u64, weights: EventWeights, _: &Event) {
        if self.phase == PathPhase::Active && self.is_shown(machine.running) {
            self.add_weights(weights);
        }
        self.advance(machine, ns, false);
    }

    fn idle(&mut self, machine: &mut ReplayState, ns: u64) {
        self.advance(machine, ns, true);
    }

    fn enter(&mut self, machine: &mut ReplayState, function: u32, how: EnterKind) -> PathFrame {
        let running = machine.running;
        if self.phase == PathPhase::Waiting && self.is_the_call(running, function) {
            self.begin_call(machine);
        }
        if self.phase != PathPhase::Active || !self.is_shown(running) {
            return PathFrame::default();
        }
        let (thread, frames) = (&mut self.threads[running], &machine.stack.frames);
        let open = thread.open(frames, function, how, Some(self.now), &mut self.budget);
        let depth = (frames.len() + 1).saturating_sub(thread.base) as u64;
        let totals = &mut self.path.totals;
        totals.calls += 1;
        totals.depth = totals.depth.max(depth);
        match how {
            EnterKind::Interrupt => totals.interrupts += 1,
            EnterKind::Exception => totals.exceptions += 1,
            EnterKind::Syscall => totals.syscalls += 1,
            EnterKind::Call | EnterKind::Jump => {}
        }
        open
    }

    fn ended(&mut self, machine: &mut ReplayState, frame: StackFrame) {
        let (thread, frames) = (&mut self.threads[machine.running], &mut machine.stack.frames);
        thread.ended(frames, frame, Some(self.now));
        if self.path.call == Some(machine.running as u32) && !thread.is_open(frames) {
            self.phase = PathPhase::Done;
        }
    }

    fn unwind(&mut self, machine: &mut ReplayState, frames: u32) {
        self.note(machine, PathEntryKind::Unwind(frames));
    }

    fn switch(&mut self, machine: &mut ReplayState, to: usize) {
        self.leaves = self.leave(machine, PathEntryKind::Away { switches: 0, idle_ns: 0, to: to as u32 });
    }

    fn switched(&mut self, machine: &mut ReplayState) {
        if self.phase != PathPhase::Active {
            return;
        }
        self.switches += 1;
        let shown = self.come_back(machine);
        self.path.totals.switches += u64::from(self.leaves || shown);
    }

    fn turn(&mut self, machine: &mut ReplayState, _: usize) {
        self.leave(machine, PathEntryKind::Turn);
    }

    fn turned(&mut self, machine: &mut ReplayState) {
        if self.phase == PathPhase::Active {
            self.come_back(machine);
        }
    }

    fn between(&mut self, machine: &mut ReplayState, event: &Event) {
        let kind = match *event {
            Event::Wake { thread } => PathEntryKind::Wake(thread),
            Event::Delay { ns, .. } => PathEntryKind::Delay(ns),
            Event::Migrate { thread, from, to } => PathEntryKind::Migrate { thread, from, to },
            Event::Signal { cpu } => PathEntryKind::Signal(cpu),
            Event::Lock { address, ns, .. } => PathEntryKind::Lock { address, ns },
            _ => return,
        };
        self.note(machine, kind);
    }

    fn region_begun(&mut self, machine: &mut ReplayState, region: u32) {
        if let PathBegin::Operation { nth, .. } = self.plan.begins {
            if self.phase == PathPhase::Waiting && self.is_wanted(region) && self.seen + 1 == nth {
                self.path.operation = Some(SelectedOperation { region, marked: false });
                self.activate(machine);
            }
        }
        self.note(machine, PathEntryKind::RegionBegin(region));
    }

    fn region_ended(&mut self, machine: &mut ReplayState, region: u32) {
        self.note(machine, PathEntryKind::RegionEnd(region));
        if self.phase == PathPhase::Active && self.is_wanted(region) {
            self.phase = PathPhase::Done;
        }
    }

    fn operation(&mut self, machine: &mut ReplayState) {
        let Some(&region) = machine.regions.last() else { return };
        if !self.is_wanted(region) {
            return self.note(machine, PathEntryKind::Operation);
        }
        self.seen += 1;
        if self.phase == PathPhase::Active {
            self.path.operation = Some(SelectedOperation { region, marked: true });
            self.note(machine, PathEntryKind::Operation);
            self.phase = PathPhase::Done;
            return;
        }
        let PathBegin::Operation { region: name, nth } = &self.plan.begins else { return };
        let upto = self.recording.regions.iter().take(region as usize + 1).filter(|r| r.name == *name);
        if self.seen + 1 == *nth && *nth <= upto.map(|r| r.operations).sum() {
            self.path.operation = Some(SelectedOperation { region, marked: true });
            self.activate(machine);
        }
    }

    fn point(&mut self, machine: &mut ReplayState, point: u32) {
        self.note(machine, PathEntryKind::Point(point));
    }
}

impl<'a> PathCollector<'a> {
    fn new(recording: &'a Recording, plan: &'a PathPlan, candidate: u64) -> Self {
        Self {
            recording,
            plan,
            candidate,
            threads: plan.shown.iter().map(|_| ThreadRecorder::default()).collect(),
            shown: plan.shown.clone(),
            now: 0,
            previous: None,
            phase: PathPhase::Waiting,
            began: false,
            seen: 0,
            one_call: matches!(plan.begins, PathBegin::Call { .. } | PathBegin::CallAt { .. }),
            budget: EntryBudget { left: plan.limit.max(1), depth: plan.depth, more: 0, hidden: 0 },
            path: CodePath::default(),
            switches: 0,
            idle_ns: 0,
            last_stretch: None,
            leaves: false,
            gap: false,
        }
    }

    /// Checks whether a chunk with these times can contain a part of the path.
    fn needs(&self, begin: u64, end: u64) -> bool {
        match self.phase {
            PathPhase::Waiting => self.plan.windows.iter().any(|w| w.0 <= end && begin <= w.1),
            PathPhase::Active => begin <= self.plan.window.1,
            PathPhase::Done => false,
        }
    }

    fn add_weights(&mut self, more: EventWeights) {
        let sum = &mut self.path.totals.weights;
        for (sum, more) in [
            (&mut sum.taken_branches, more.taken_branches),
            (&mut sum.l1i_misses, more.l1i_misses),
            (&mut sum.itlb_misses, more.itlb_misses),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    fn in_window(&self, time: u64) -> bool {
        self.plan.window.0 <= time && time <= self.plan.window.1
    }

    /// Discards all frames after a gap in the recording.
    fn lose(&mut self, machine: &mut ReplayState) {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            thread.lose(&mut machine.stack_of(number).frames);
        }
        if self.is_shown(machine.running) {
            let now = self.now;
            self.with_running(machine, |thread, frames, budget| {
                thread.leaf(frames, PathEntryKind::Gap, Some(now), None, 0, budget);
            });
        }
        self.end_stretch();
        self.gap = true;
    }

    /// Begins the path.
    fn activate(&mut self, machine: &mut ReplayState) {
        (self.phase, self.began) = (PathPhase::Active, true);
        self.path.begin_ns = self.now;
        for thread in 0..self.threads.len() {
            let frames = &mut machine.stack_of(thread).frames;
            frames.iter_mut().for_each(|frame| frame.data = PathFrame::default());
        }
        self.begin_stretch(machine);
    }

    /// Lets time pass, during which the path may begin or end.
    fn advance(&mut self, machine: &mut ReplayState, by: u64, idle: bool) {
        let after = self.now + by;
        let (begin, end) = self.plan.window;
        let mut begun_before = false;
        if self.phase == PathPhase::Waiting
            && self.plan.begins == PathBegin::Time
            && after >= begin
            && self.now <= end
        {
            begun_before = self.now < begin;
            self.now = self.now.max(begin);
            self.activate(machine);
        }
        if self.phase == PathPhase::Active {
            let until = after.min(end);
            self.spend(machine, until, idle, begun_before, after > end);
            self.now = until;
        }
        let last =
            if self.phase == PathPhase::Active { Some(end) } else { self.plan.windows.last().map(|w| w.1) };
        if last.is_some_and(|last| after > last) {
            self.phase = PathPhase::Done;
        } else {
            self.now = after;
        }
    }

    /// Attributes the time from now until `until`.
    fn spend(
        &mut self,
        machine: &mut ReplayState,
        until: u64,
        idle: bool,
        begun_before: bool,
        goes_on: bool,
    ) {
        let (from, ns) = (self.now, until - self.now);
        if idle {
            self.idle_ns += ns;
        }
        if !self.is_shown(machine.running) {
            return;
        }
        let interrupted = self.threads[machine.running].interrupts > 0;
        let totals = &mut self.path.totals;
        if idle {
            totals.idle_ns += ns;
            let (begin, end) = ((!begun_before).then_some(from), (!goes_on).then_some(until));
            return self.with_running(machine, |thread, frames, budget| {
                thread.leaf(frames, PathEntryKind::Idle, begin, end, ns, budget);
            });
        }
        totals.busy_ticks += ns;
        totals.interrupt_ns += if interrupted { ns } else { 0 };
        if ns == 0 {
            return;
        }
        if self.threads[machine.running].is_open(&machine.stack.frames) {
            machine.charge(ns);
            return;
        }
        let idle_task = self.recording.threads.get(machine.running).is_some_and(is_idle);
        let kind = if machine.user && !idle_task {
            totals.user_ticks += ns;
            PathEntryKind::User
        } else {
            totals.unattributed_ticks += ns;
            PathEntryKind::Unattributed
        };
        self.with_running(machine, |thread, frames, budget| thread.homeless(frames, kind, from, ns, budget));
    }

    /// Checks whether the call that begins now is the selected one.
    fn is_the_call(&mut self, running: usize, function: u32) -> bool {
        let now = self.now;
        let (wanted, nth) = match self.plan.begins {
            PathBegin::Call { function, nth } => (function.map(|f| f.0), nth),
            PathBegin::CallAt { function } => (Some(function.0), self.candidate),
            _ => return false,
        };
        let here = || self.plan.windows.iter().any(|w| w.0 <= now && now <= w.1);
        if wanted.is_some_and(|wanted| wanted != function) || !self.is_shown(running) || !here() {
            return false;
        }
        self.seen += 1;
        self.seen == nth
    }

    /// Begins a path that is one call of the running thread.
    fn begin_call(&mut self, machine: &mut ReplayState) {
        let running = machine.running;
        self.threads[running].base = machine.stack.frames.len();
        for (thread, shown) in self.shown.iter_mut().enumerate() {
            *shown = self.plan.all || thread == running;
        }
        self.path.call = Some(running as u32);
        self.activate(machine);
    }

    /// Notes that the running thread stops executing. Returns whether it is shown.
    fn leave(&mut self, machine: &mut ReplayState, kind: PathEntryKind) -> bool {
        let shown = self.phase == PathPhase::Active && self.is_shown(machine.running);
        if shown {
            let (now, so_far) = (self.now, (self.switches, self.idle_ns));
            self.with_running(machine, |thread, frames, budget| {
                thread.leave(frames, kind, now, so_far, budget);
            });
            self.end_stretch();
        }
        shown
    }

    /// Notes that the running thread executes again. Returns whether it is shown.
    fn come_back(&mut self, machine: &mut ReplayState) -> bool {
        let shown = self.is_shown(machine.running);
        if shown {
            self.threads[machine.running].come_back(self.now, self.switches, self.idle_ns);
            self.begin_stretch(machine);
        }
        shown
    }

    fn begin_stretch(&mut self, machine: &mut ReplayState) {
        if !self.is_shown(machine.running) {
            return;
        }
        // If the budget is used up no stretch begins, so that the first entries are shown.
        let room = self.budget.left > 0;
        self.with_running(machine, |thread, frames, budget| {
            if !thread.introduced {
                thread.introduce(frames, budget);
            }
        });
        if !room {
            return;
        }
        let (switches, idle_ns) = self.last_stretch.unwrap_or((self.switches, self.idle_ns));
        self.path.stretches.push(ThreadStretch {
            thread: machine.running as u32,
            begin_ns: self.now,
            end_ns: self.now,
            switches: self.switches - switches,
            idle_ns: self.idle_ns - idle_ns,
            gap: std::mem::take(&mut self.gap),
        });
        self.last_stretch = None;
    }

    /// Ends the running thread's stretch.
    fn end_stretch(&mut self) {
        if let Some(stretch) = self.path.stretches.last_mut() {
            if self.last_stretch.is_none() {
                stretch.end_ns = self.now;
                self.last_stretch = Some((self.switches, self.idle_ns));
            }
        }
    }

    /// Checks whether operations of this region are selected.
    fn is_wanted(&self, region: u32) -> bool {
        let PathBegin::Operation { region: name, .. } = &self.plan.begins else { return false };
        self.recording.regions.get(region as usize).is_some_and(|region| region.name == *name)
    }

    fn note(&mut self, machine: &mut ReplayState, kind: PathEntryKind) {
        if self.phase == PathPhase::Active && self.is_shown(machine.running) {
            let now = self.now;
            self.with_running(machine, |thread, frames, budget| thread.note(frames, kind, now, budget));
        }
    }

    fn with_running(
        &mut self,
        machine: &mut ReplayState,
        act: impl FnOnce(&mut ThreadRecorder, &mut [StackFrame], &mut EntryBudget),
    ) {
        act(&mut self.threads[machine.running], &mut machine.stack.frames, &mut self.budget);
    }

    fn is_shown(&self, thread: usize) -> bool {
        self.shown.get(thread).copied().unwrap_or(false)
    }

    fn finish(mut self, machine: &mut ReplayState) -> Result<CodePath, PathError> {
        if !self.began {
            return Err(self.not_found());
        }
        self.end_stretch();
        self.path.end_ns = self.now;
        for (number, thread) in self.threads.iter_mut().enumerate() {
            thread.lose(&mut machine.stack_of(number).frames);
        }
        let mut order: Vec<u32> = Vec::new();
        for stretch in &self.path.stretches {
            if !order.contains(&stretch.thread) {
                order.push(stretch.thread);
            }
        }
        for thread in order {
            if let Some(state) = self.threads.get_mut(thread as usize) {
                let entries = std::mem::take(&mut state.entries);
                self.path.threads.push(ThreadPath { thread, entries });
            }
        }
        (self.path.more, self.path.hidden) = (self.budget.more, self.budget.hidden);
        Ok(self.path)
    }

    fn not_found(&self) -> PathError {
        let (begin, end) = self.plan.window;
        let chunks = &self.recording.chunks;
        match &self.plan.begins {
            PathBegin::Time => PathError::Outside {
                begin,
                end,
                first: chunks.first().map_or(0, |chunk| chunk.begin_ns),
                last: chunks.last().map_or(0, |chunk| chunk.end_ns),
            },
            PathBegin::Operation { region, nth } if self.seen == 0 && *nth > 1 => {
                PathError::NoOperations { region: region.clone(), wanted: *nth }
            }
            PathBegin::Operation { region, nth } => {
                PathError::NoNthOperation { region: region.clone(), wanted: *nth, found: self.seen }
            }
            PathBegin::Call { function: Some(_), nth } => {
                PathError::NoNthCall { wanted: *nth, found: self.seen }
            }
            PathBegin::Call { .. } | PathBegin::CallAt { .. } => PathError::NoCall { at: begin },
        }
    }
}
