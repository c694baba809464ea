//! Reads a trace from where a path begins to where it ends.

use super::model::{EntryKind, Operation, Path, Stretch, ThreadPath};
use super::record::{Budget, Frame, Open, Thread};
use super::select::{Begins, Plan};
use super::PathError;
use crate::events::{self, replay, Bounds, Opening, Visitor};
use crate::known::is_idle;
use crate::TraceFile;
use kerntune_trace::{Event, How, Recording, Weights};

type Machine = events::Machine<Open>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// What the path begins with did not happen yet.
    Waiting,
    Active,
    Done,
}

/// Reads the path of `plan`; of several calls that begin at its time, the `candidate`th.
pub(super) fn run(
    trace: &TraceFile<'_>,
    functions: usize,
    plan: &Plan,
    candidate: u64,
) -> Result<Path, PathError> {
    let mut collector = Collector::new(trace.recording, plan, candidate);
    let bounds = Bounds { functions, regions: trace.recording.regions.len(), ..Bounds::of(trace.recording) };
    let mut machine = Machine::new(bounds);
    let mut reader = trace.reader()?;
    for number in trace.covering(plan.window.0, u64::MAX) {
        let Some(index) = trace.recording.chunks.get(number) else { break };
        if collector.phase == Phase::Done {
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

struct Collector<'a> {
    recording: &'a Recording,
    plan: &'a Plan,
    candidate: u64,
    threads: Vec<Thread>,
    shown: Vec<bool>,
    /// The machine's time, or where the path ended within the last interval.
    now: u64,
    /// The chunk before this one, if that was read too.
    previous: Option<usize>,
    phase: Phase,
    /// Whether it was ever active.
    began: bool,
    /// Calls or operations of those that were asked for so far.
    seen: u64,
    /// Whether one call was asked for, and so its end is the end.
    one_call: bool,
    budget: Budget,
    path: Path,
    /// Since the path began, of all threads.
    switches: u64,
    idle_ns: u64,
    /// What they were when the last stretch ended; none before the first.
    last_stretch: Option<(u64, u64)>,
    /// Whether the thread that is being switched away is shown.
    leaves: bool,
    gap: bool,
}

impl Visitor for Collector<'_> {
    type Frame = Open;

    fn begin(&mut self, machine: &mut Machine, opening: &Opening<'_>) {
        let follows = machine.chunk.checked_sub(1) == self.previous && self.previous.is_some();
        let contiguous = follows && !machine.regions.is_empty() && opening.begin == self.now;
        self.previous = Some(machine.chunk);
        if contiguous && opening.running == machine.running && machine.is_as(opening) {
            return;
        }
        if self.phase == Phase::Active {
            self.lose(machine);
            if self.one_call {
                self.phase = Phase::Done;
                return;
            }
        }
        machine.take(opening);
        self.now = opening.begin;
        match self.phase {
            Phase::Active => self.begin_stretch(machine),
            Phase::Waiting if self.plan.begins == Begins::Time && self.in_window(self.now) => {
                self.activate(machine);
            }
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    fn pass(&mut self, machine: &mut Machine, ns: u64, weights: Weights, _: &Event) {
        if self.phase == Phase::Active && self.is_shown(machine.running) {
            self.add_weights(weights);
        }
        self.advance(machine, ns, false);
    }

    fn idle(&mut self, machine: &mut Machine, ns: u64) {
        self.advance(machine, ns, true);
    }

    fn enter(&mut self, machine: &mut Machine, function: u32, how: How) -> Open {
        let running = machine.running;
        if self.phase == Phase::Waiting && self.is_the_call(running, function) {
            self.begin_call(machine);
        }
        if self.phase != Phase::Active || !self.is_shown(running) {
            return Open::default();
        }
        let (thread, frames) = (&mut self.threads[running], &machine.stack.frames);
        let open = thread.open(frames, function, how, Some(self.now), &mut self.budget);
        let depth = (frames.len() + 1).saturating_sub(thread.base) as u64;
        let totals = &mut self.path.totals;
        totals.calls += 1;
        totals.depth = totals.depth.max(depth);
        match how {
            How::Interrupt => totals.interrupts += 1,
            How::Exception => totals.exceptions += 1,
            How::Syscall => totals.syscalls += 1,
            How::Call | How::Jump => {}
        }
        open
    }

    fn ended(&mut self, machine: &mut Machine, frame: Frame) {
        let (thread, frames) = (&mut self.threads[machine.running], &mut machine.stack.frames);
        thread.ended(frames, frame, Some(self.now));
        if self.path.call == Some(machine.running as u32) && !thread.is_open(frames) {
            self.phase = Phase::Done;
        }
    }

    fn unwind(&mut self, machine: &mut Machine, frames: u32) {
        self.note(machine, EntryKind::Unwind(frames));
    }

    fn switch(&mut self, machine: &mut Machine, to: usize) {
        self.leaves = self.leave(machine, EntryKind::Away { switches: 0, idle_ns: 0, to: to as u32 });
    }

    fn switched(&mut self, machine: &mut Machine) {
        if self.phase != Phase::Active {
            return;
        }
        self.switches += 1;
        let shown = self.come_back(machine);
        self.path.totals.switches += u64::from(self.leaves || shown);
    }

    fn turn(&mut self, machine: &mut Machine, _: usize) {
        self.leave(machine, EntryKind::Turn);
    }

    fn turned(&mut self, machine: &mut Machine) {
        if self.phase == Phase::Active {
            self.come_back(machine);
        }
    }

    fn between(&mut self, machine: &mut Machine, event: &Event) {
        let kind = match *event {
            Event::Wake { thread } => EntryKind::Wake(thread),
            Event::Delay { ns, .. } => EntryKind::Delay(ns),
            Event::Migrate { thread, from, to } => EntryKind::Migrate { thread, from, to },
            Event::Signal { cpu } => EntryKind::Signal(cpu),
            Event::Lock { address, ns, .. } => EntryKind::Lock { address, ns },
            _ => return,
        };
        self.note(machine, kind);
    }

    fn region_begun(&mut self, machine: &mut Machine, region: u32) {
        if let Begins::Operation { nth, .. } = self.plan.begins {
            if self.phase == Phase::Waiting && self.is_wanted(region) && self.seen + 1 == nth {
                self.path.operation = Some(Operation { region, marked: false });
                self.activate(machine);
            }
        }
        self.note(machine, EntryKind::RegionBegin(region));
    }

    fn region_ended(&mut self, machine: &mut Machine, region: u32) {
        self.note(machine, EntryKind::RegionEnd(region));
        if self.phase == Phase::Active && self.is_wanted(region) {
            self.phase = Phase::Done;
        }
    }

    fn operation(&mut self, machine: &mut Machine) {
        let Some(&region) = machine.regions.last() else { return };
        if !self.is_wanted(region) {
            return self.note(machine, EntryKind::Operation);
        }
        self.seen += 1;
        if self.phase == Phase::Active {
            self.path.operation = Some(Operation { region, marked: true });
            self.note(machine, EntryKind::Operation);
            self.phase = Phase::Done;
            return;
        }
        let Begins::Operation { region: name, nth } = &self.plan.begins else { return };
        let upto = self.recording.regions.iter().take(region as usize + 1).filter(|r| r.name == *name);
        if self.seen + 1 == *nth && *nth <= upto.map(|r| r.operations).sum() {
            self.path.operation = Some(Operation { region, marked: true });
            self.activate(machine);
        }
    }

    fn point(&mut self, machine: &mut Machine, point: u32) {
        self.note(machine, EntryKind::Point(point));
    }
}

impl<'a> Collector<'a> {
    fn new(recording: &'a Recording, plan: &'a Plan, candidate: u64) -> Self {
        Self {
            recording,
            plan,
            candidate,
            threads: plan.shown.iter().map(|_| Thread::default()).collect(),
            shown: plan.shown.clone(),
            now: 0,
            previous: None,
            phase: Phase::Waiting,
            began: false,
            seen: 0,
            one_call: matches!(plan.begins, Begins::Call { .. } | Begins::CallAt { .. }),
            budget: Budget { left: plan.limit.max(1), depth: plan.depth, more: 0, hidden: 0 },
            path: Path::default(),
            switches: 0,
            idle_ns: 0,
            last_stretch: None,
            leaves: false,
            gap: false,
        }
    }

    /// Whether anything in a chunk can be of interest.
    fn needs(&self, begin: u64, end: u64) -> bool {
        match self.phase {
            Phase::Waiting => self.plan.windows.iter().any(|w| w.0 <= end && begin <= w.1),
            Phase::Active => begin <= self.plan.window.1,
            Phase::Done => false,
        }
    }

    fn add_weights(&mut self, more: Weights) {
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

    /// Something between two chunks was not recorded: no frame is known any more.
    fn lose(&mut self, machine: &mut Machine) {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            thread.lose(&mut machine.stack_of(number).frames);
        }
        if self.is_shown(machine.running) {
            let now = self.now;
            self.with_running(machine, |thread, frames, budget| {
                thread.leaf(frames, EntryKind::Gap, Some(now), None, 0, budget);
            });
        }
        self.end_stretch();
        self.gap = true;
    }

    /// The path begins here.
    fn activate(&mut self, machine: &mut Machine) {
        (self.phase, self.began) = (Phase::Active, true);
        self.path.begin_ns = self.now;
        for thread in 0..self.threads.len() {
            let frames = &mut machine.stack_of(thread).frames;
            frames.iter_mut().for_each(|frame| frame.data = Open::default());
        }
        self.begin_stretch(machine);
    }

    /// Time passes; the path may begin or end in it.
    fn advance(&mut self, machine: &mut Machine, by: u64, idle: bool) {
        let after = self.now + by;
        let (begin, end) = self.plan.window;
        let mut begun_before = false;
        if self.phase == Phase::Waiting
            && self.plan.begins == Begins::Time
            && after >= begin
            && self.now <= end
        {
            begun_before = self.now < begin;
            self.now = self.now.max(begin);
            self.activate(machine);
        }
        if self.phase == Phase::Active {
            let until = after.min(end);
            self.spend(machine, until, idle, begun_before, after > end);
            self.now = until;
        }
        let last =
            if self.phase == Phase::Active { Some(end) } else { self.plan.windows.last().map(|w| w.1) };
        if last.is_some_and(|last| after > last) {
            self.phase = Phase::Done;
        } else {
            self.now = after;
        }
    }

    /// Gives the time from now until `until` to whom it belongs.
    fn spend(&mut self, machine: &mut Machine, until: u64, idle: bool, begun_before: bool, goes_on: bool) {
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
                thread.leaf(frames, EntryKind::Idle, begin, end, ns, budget);
            });
        }
        totals.busy_ns += ns;
        totals.interrupt_ns += if interrupted { ns } else { 0 };
        if ns == 0 || self.threads[machine.running].spend(&mut machine.stack.frames, ns) {
            return;
        }
        let idle_task = self.recording.threads.get(machine.running).is_some_and(is_idle);
        let kind = if machine.user && !idle_task {
            totals.user_ns += ns;
            EntryKind::User
        } else {
            totals.unattributed_ns += ns;
            EntryKind::Unattributed
        };
        self.with_running(machine, |thread, frames, budget| thread.homeless(frames, kind, from, ns, budget));
    }

    /// Whether the call that begins now is the one that was asked for.
    fn is_the_call(&mut self, running: usize, function: u32) -> bool {
        let now = self.now;
        let (wanted, nth) = match self.plan.begins {
            Begins::Call { function, nth } => (function.map(|f| f.0), nth),
            Begins::CallAt { function } => (Some(function.0), self.candidate),
            _ => return false,
        };
        let here = || self.plan.windows.iter().any(|w| w.0 <= now && now <= w.1);
        if wanted.is_some_and(|wanted| wanted != function) || !self.is_shown(running) || !here() {
            return false;
        }
        self.seen += 1;
        self.seen == nth
    }

    /// The path is one call of the running thread, which begins now.
    fn begin_call(&mut self, machine: &mut Machine) {
        let running = machine.running;
        self.threads[running].base = machine.stack.frames.len();
        for (thread, shown) in self.shown.iter_mut().enumerate() {
            *shown = self.plan.all || thread == running;
        }
        self.path.call = Some(running as u32);
        self.activate(machine);
    }

    /// The running thread, if it is shown, does not execute from here on. Whether it is.
    fn leave(&mut self, machine: &mut Machine, kind: EntryKind) -> bool {
        let shown = self.phase == Phase::Active && self.is_shown(machine.running);
        if shown {
            let (now, so_far) = (self.now, (self.switches, self.idle_ns));
            self.with_running(machine, |thread, frames, budget| {
                thread.leave(frames, kind, now, so_far, budget);
            });
            self.end_stretch();
        }
        shown
    }

    /// The running thread, if it is shown, executes again. Whether it is.
    fn come_back(&mut self, machine: &mut Machine) -> bool {
        let shown = self.is_shown(machine.running);
        if shown {
            self.threads[machine.running].come_back(self.now, self.switches, self.idle_ns);
            self.begin_stretch(machine);
        }
        shown
    }

    fn begin_stretch(&mut self, machine: &mut Machine) {
        if !self.is_shown(machine.running) {
            return;
        }
        // Without room no stretch begins: what is shown is what came first.
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
        self.path.stretches.push(Stretch {
            thread: machine.running as u32,
            begin_ns: self.now,
            end_ns: self.now,
            switches: self.switches - switches,
            idle_ns: self.idle_ns - idle_ns,
            gap: std::mem::take(&mut self.gap),
        });
        self.last_stretch = None;
    }

    /// The running thread is about to stop running.
    fn end_stretch(&mut self) {
        if let Some(stretch) = self.path.stretches.last_mut() {
            if self.last_stretch.is_none() {
                stretch.end_ns = self.now;
                self.last_stretch = Some((self.switches, self.idle_ns));
            }
        }
    }

    /// Whether operations of this region are what was asked for.
    fn is_wanted(&self, region: u32) -> bool {
        let Begins::Operation { region: name, .. } = &self.plan.begins else { return false };
        self.recording.regions.get(region as usize).is_some_and(|region| region.name == *name)
    }

    fn note(&mut self, machine: &mut Machine, kind: EntryKind) {
        if self.phase == Phase::Active && self.is_shown(machine.running) {
            let now = self.now;
            self.with_running(machine, |thread, frames, budget| thread.note(frames, kind, now, budget));
        }
    }

    fn with_running(
        &mut self,
        machine: &mut Machine,
        act: impl FnOnce(&mut Thread, &mut [Frame], &mut Budget),
    ) {
        act(&mut self.threads[machine.running], &mut machine.stack.frames, &mut self.budget);
    }

    fn is_shown(&self, thread: usize) -> bool {
        self.shown.get(thread).copied().unwrap_or(false)
    }

    fn finish(mut self, machine: &mut Machine) -> Result<Path, PathError> {
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
            Begins::Time => PathError::Outside {
                begin,
                end,
                first: chunks.first().map_or(0, |chunk| chunk.begin_ns),
                last: chunks.last().map_or(0, |chunk| chunk.end_ns),
            },
            Begins::Operation { region, nth } if self.seen == 0 && *nth > 1 => {
                PathError::NoOperations { region: region.clone(), wanted: *nth }
            }
            Begins::Operation { region, nth } => {
                PathError::NoNthOperation { region: region.clone(), wanted: *nth, found: self.seen }
            }
            Begins::Call { function: Some(_), nth } => {
                PathError::NoNthCall { wanted: *nth, found: self.seen }
            }
            Begins::Call { .. } | Begins::CallAt { .. } => PathError::NoCall { at: begin },
        }
    }
}
