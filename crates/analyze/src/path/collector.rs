//! Reads a trace from where a path begins to where it ends.

use super::model::{EntryKind, Operation, Path, Stretch, ThreadPath};
use super::record::{Budget, Frame, Thread};
use super::select::{Begins, Plan};
use super::PathError;
use crate::{Chunk, Error, TraceFile};
use kerntune_trace::{Event, How, Recording, Weights};

/// More frames than any kernel stack has room for return addresses.
const DEPTH_LIMIT: usize = 1 << 16;
/// More time than this is no time.
const TIME_LIMIT: u64 = 1 << 63;

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
    let mut collector = Collector::new(trace.recording, functions, plan, candidate);
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
        collector.chunk(&reader.read(number)?)?;
    }
    collector.finish()
}

struct Collector<'a> {
    recording: &'a Recording,
    plan: &'a Plan,
    functions: usize,
    candidate: u64,
    threads: Vec<Thread>,
    shown: Vec<bool>,
    running: usize,
    /// The CPU is in user mode, or would be if the stack were empty.
    user: bool,
    /// Open regions, outermost first.
    regions: Vec<u32>,
    now: u64,
    /// The chunk that is read, and the one before it if that was read too.
    number: usize,
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
    gap: bool,
}

impl<'a> Collector<'a> {
    fn new(recording: &'a Recording, functions: usize, plan: &'a Plan, candidate: u64) -> Self {
        let nobody = recording.threads.len();
        Self {
            recording,
            plan,
            functions,
            candidate,
            threads: (0..=nobody).map(|_| Thread::default()).collect(),
            shown: plan.shown.clone(),
            running: nobody,
            user: true,
            regions: Vec::new(),
            now: 0,
            number: 0,
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

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<(), PathError> {
        self.number = chunk.number;
        self.path.chunks += 1;
        let contiguous = chunk.number.checked_sub(1) == self.previous && self.previous.is_some();
        let contiguous = contiguous && !self.regions.is_empty() && chunk.header.begin == self.now;
        self.previous = Some(chunk.number);
        self.adopt(chunk, contiguous)?;
        let mut decoder = chunk.decoder();
        while self.phase != Phase::Done {
            let next = decoder.next().map_err(|source| Error::Format { chunk: chunk.number, source })?;
            let Some((delta, event)) = next else { break };
            if self.phase == Phase::Active && chunk.wide && self.is_shown(self.running) {
                self.add_weights(decoder.weights());
            }
            self.event(delta, event)?;
        }
        Ok(())
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

    /// Takes the chunk's word for what is open where it begins.
    fn adopt(&mut self, chunk: &Chunk<'_>, contiguous: bool) -> Result<(), PathError> {
        let mut said: Vec<&[(u32, How)]> = vec![&[]; self.threads.len()];
        let mut running = self.nobody();
        for stack in &chunk.state.stacks {
            let thread = self.check("thread", stack.thread, self.nobody())?;
            for (function, _) in &stack.frames {
                self.check("function", *function, self.functions + 1)?;
            }
            if stack.frames.len() > DEPTH_LIMIT {
                return Err(Error::Depth { chunk: self.number, limit: DEPTH_LIMIT }.into());
            }
            if let Some(place) = said.get_mut(thread) {
                *place = &stack.frames;
            }
            if stack.running {
                running = thread;
            }
        }
        let same = |(thread, said): (&Thread, &&[(u32, How)])| {
            thread.frames.iter().map(|frame| (frame.function, frame.how)).eq(said.iter().copied())
        };
        if contiguous && running == self.running && self.threads.iter().zip(&said).all(same) {
            return Ok(());
        }
        if self.phase == Phase::Active {
            self.lose();
            if self.one_call {
                self.phase = Phase::Done;
                return Ok(());
            }
        }
        for (thread, frames) in self.threads.iter_mut().zip(said) {
            thread.frames = frames.iter().map(|&(function, how)| Frame::new(function, how)).collect();
        }
        self.running = running;
        self.user = chunk.state.user;
        self.regions.clone_from(&chunk.state.regions);
        self.now = chunk.header.begin;
        match self.phase {
            Phase::Active => self.begin_stretch(),
            Phase::Waiting if self.plan.begins == Begins::Time && self.in_window(self.now) => self.activate(),
            _ => {}
        }
        Ok(())
    }

    fn in_window(&self, time: u64) -> bool {
        self.plan.window.0 <= time && time <= self.plan.window.1
    }

    /// Something between two chunks was not recorded: no frame is known any more.
    fn lose(&mut self) {
        for thread in &mut self.threads {
            thread.lose();
        }
        if self.is_shown(self.running) {
            let now = self.now;
            self.with_running(|thread, budget| thread.leaf(EntryKind::Gap, Some(now), None, 0, budget));
        }
        self.end_stretch();
        self.gap = true;
    }

    /// The path begins here.
    fn activate(&mut self) {
        (self.phase, self.began) = (Phase::Active, true);
        self.path.begin_ns = self.now;
        for thread in &mut self.threads {
            thread.reset();
        }
        self.begin_stretch();
    }

    fn event(&mut self, delta: u64, event: Event) -> Result<(), PathError> {
        if !self.advance(delta, false)? {
            return Ok(());
        }
        match event {
            Event::Enter { function, how } => self.enter(function, how)?,
            Event::Exit => while self.end_top() == Some(How::Jump) {},
            Event::Resume => {
                let is_entry = |frame: &Frame| matches!(frame.how, How::Interrupt | How::Exception);
                if let Some(at) = self.frames().iter().rposition(is_entry) {
                    self.end_down_to(at);
                }
            }
            Event::Leave => {
                let user = |frame: &Frame| frame.function > self.recording.kernel_functions;
                let at = self.frames().iter().rposition(user).map_or(0, |at| at + 1);
                self.end_down_to(at);
                self.user = true;
            }
            Event::Unwind { frames } => {
                self.note(EntryKind::Unwind(frames));
                self.end_down_to(self.frames().len().saturating_sub(frames as usize));
            }
            Event::Switch { thread } => self.switch(thread)?,
            Event::Idle { ns } => {
                self.advance(ns, true)?;
            }
            Event::Point { point } => self.note(EntryKind::Point(point)),
            Event::Operation => self.operation(),
            Event::RegionBegin { region } => self.begin_region(region)?,
            Event::RegionEnd { region } => self.end_region(region)?,
        }
        Ok(())
    }

    /// Time passes; returns whether what happens then is still within the path.
    fn advance(&mut self, by: u64, idle: bool) -> Result<bool, PathError> {
        let after = self.now.saturating_add(by);
        if after >= TIME_LIMIT {
            return Err(Error::Time { chunk: self.number }.into());
        }
        let (begin, end) = self.plan.window;
        let mut begun_before = false;
        if self.phase == Phase::Waiting
            && self.plan.begins == Begins::Time
            && after >= begin
            && self.now <= end
        {
            begun_before = self.now < begin;
            self.now = self.now.max(begin);
            self.activate();
        }
        if self.phase == Phase::Active {
            let until = after.min(end);
            self.pass(until, idle, begun_before, after > end);
            self.now = until;
        }
        let last =
            if self.phase == Phase::Active { Some(end) } else { self.plan.windows.last().map(|w| w.1) };
        if last.is_some_and(|last| after > last) {
            self.phase = Phase::Done;
            return Ok(false);
        }
        self.now = after;
        Ok(true)
    }

    /// Gives the time from now until `until` to whom it belongs.
    fn pass(&mut self, until: u64, idle: bool, begun_before: bool, goes_on: bool) {
        let (from, ns) = (self.now, until - self.now);
        if idle {
            self.idle_ns += ns;
        }
        if !self.is_shown(self.running) {
            return;
        }
        let interrupted = self.threads.get(self.running).is_some_and(|thread| thread.interrupts > 0);
        let totals = &mut self.path.totals;
        if idle {
            totals.idle_ns += ns;
            let (begin, end) = ((!begun_before).then_some(from), (!goes_on).then_some(until));
            return self.with_running(|thread, budget| thread.leaf(EntryKind::Idle, begin, end, ns, budget));
        }
        totals.busy_ns += ns;
        totals.interrupt_ns += if interrupted { ns } else { 0 };
        if ns == 0 || self.threads.get_mut(self.running).is_some_and(|thread| thread.spend(ns)) {
            return;
        }
        let idle_task = self.recording.threads.get(self.running).is_some_and(|t| t.pid == 0 && t.task != 0);
        let kind = if self.user && !idle_task {
            totals.user_ns += ns;
            EntryKind::User
        } else {
            totals.unattributed_ns += ns;
            EntryKind::Unattributed
        };
        self.with_running(|thread, budget| thread.homeless(kind, from, ns, budget));
    }

    fn enter(&mut self, function: u32, how: How) -> Result<(), PathError> {
        self.check("function", function, self.functions + 1)?;
        if self.frames().len() >= DEPTH_LIMIT {
            return Err(Error::Depth { chunk: self.number, limit: DEPTH_LIMIT }.into());
        }
        if self.phase == Phase::Waiting && self.is_the_call(function) {
            self.begin_call();
        }
        self.user = function > self.recording.kernel_functions;
        let now = self.now;
        if self.phase != Phase::Active || !self.is_shown(self.running) {
            if let Some(thread) = self.threads.get_mut(self.running) {
                thread.frames.push(Frame::new(function, how));
            }
            return Ok(());
        }
        self.with_running(|thread, budget| thread.push(function, how, now, budget));
        let depth = self.threads.get(self.running).map_or(0, Thread::depth) as u64;
        let totals = &mut self.path.totals;
        totals.calls += 1;
        totals.depth = totals.depth.max(depth);
        match how {
            How::Interrupt => totals.interrupts += 1,
            How::Exception => totals.exceptions += 1,
            How::Syscall => totals.syscalls += 1,
            How::Call | How::Jump => {}
        }
        Ok(())
    }

    /// Whether the call that begins now is the one that was asked for.
    fn is_the_call(&mut self, function: u32) -> bool {
        let now = self.now;
        let (wanted, nth) = match self.plan.begins {
            Begins::Call { function, nth } => (function.map(|f| f.0), nth),
            Begins::CallAt { function } => (Some(function.0), self.candidate),
            _ => return false,
        };
        let here = || self.plan.windows.iter().any(|w| w.0 <= now && now <= w.1);
        if wanted.is_some_and(|wanted| wanted != function) || !self.is_shown(self.running) || !here() {
            return false;
        }
        self.seen += 1;
        self.seen == nth
    }

    /// The path is one call of the running thread, which begins now.
    fn begin_call(&mut self) {
        if let Some(thread) = self.threads.get_mut(self.running) {
            thread.base = thread.frames.len();
        }
        let running = self.running;
        for (thread, shown) in self.shown.iter_mut().enumerate() {
            *shown = self.plan.all || thread == running;
        }
        self.path.call = Some(running as u32);
        self.activate();
    }

    /// The top frame ends; returns how it was entered.
    fn end_top(&mut self) -> Option<How> {
        let (now, running) = (self.now, self.running);
        let thread = self.threads.get_mut(running)?;
        let frame = thread.pop(Some(now))?;
        if self.path.call == Some(running as u32) && !thread.is_open() {
            self.phase = Phase::Done;
            return None;
        }
        Some(frame.how)
    }

    fn end_down_to(&mut self, length: usize) {
        while self.frames().len() > length && self.phase != Phase::Done {
            self.end_top();
        }
    }

    fn switch(&mut self, to: u32) -> Result<(), PathError> {
        let next = self.check("thread", to, self.nobody())?;
        if self.phase != Phase::Active {
            (self.running, self.user) = (next, false);
            return Ok(());
        }
        let (now, switches, idle_ns) = (self.now, self.switches, self.idle_ns);
        let leaves = self.is_shown(self.running);
        if leaves {
            self.with_running(|thread, budget| thread.leave(to, now, switches, idle_ns, budget));
            self.end_stretch();
        }
        self.switches += 1;
        (self.running, self.user) = (next, false);
        if self.is_shown(next) {
            if let Some(thread) = self.threads.get_mut(next) {
                thread.come_back(now, switches + 1, idle_ns);
            }
            self.begin_stretch();
        }
        self.path.totals.switches += u64::from(leaves || self.is_shown(next));
        Ok(())
    }

    fn begin_stretch(&mut self) {
        if !self.is_shown(self.running) {
            return;
        }
        // Without room no stretch begins: what is shown is what came first.
        let room = self.budget.left > 0;
        self.with_running(|thread, budget| {
            if !thread.introduced {
                thread.introduce(budget);
            }
        });
        if !room {
            return;
        }
        let (switches, idle_ns) = self.last_stretch.unwrap_or((self.switches, self.idle_ns));
        self.path.stretches.push(Stretch {
            thread: self.running as u32,
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

    fn begin_region(&mut self, region: u32) -> Result<(), PathError> {
        self.check("region", region, self.recording.regions.len())?;
        self.regions.push(region);
        if let Begins::Operation { nth, .. } = self.plan.begins {
            if self.phase == Phase::Waiting && self.is_wanted(region) && self.seen + 1 == nth {
                self.path.operation = Some(Operation { region, marked: false });
                self.activate();
            }
        }
        self.note(EntryKind::RegionBegin(region));
        Ok(())
    }

    fn end_region(&mut self, region: u32) -> Result<(), PathError> {
        self.check("region", region, self.recording.regions.len())?;
        self.regions.retain(|&open| open != region);
        self.note(EntryKind::RegionEnd(region));
        if self.phase == Phase::Active && self.is_wanted(region) {
            self.phase = Phase::Done;
        }
        Ok(())
    }

    fn operation(&mut self) {
        let Some(&region) = self.regions.last() else { return };
        if !self.is_wanted(region) {
            return self.note(EntryKind::Operation);
        }
        self.seen += 1;
        if self.phase == Phase::Active {
            self.path.operation = Some(Operation { region, marked: true });
            self.note(EntryKind::Operation);
            self.phase = Phase::Done;
            return;
        }
        let Begins::Operation { region: name, nth } = &self.plan.begins else { return };
        let upto = self.recording.regions.iter().take(region as usize + 1).filter(|r| r.name == *name);
        if self.seen + 1 == *nth && *nth <= upto.map(|r| r.operations).sum() {
            self.path.operation = Some(Operation { region, marked: true });
            self.activate();
        }
    }

    /// Whether operations of this region are what was asked for.
    fn is_wanted(&self, region: u32) -> bool {
        let Begins::Operation { region: name, .. } = &self.plan.begins else { return false };
        self.recording.regions.get(region as usize).is_some_and(|region| region.name == *name)
    }

    fn note(&mut self, kind: EntryKind) {
        if self.phase == Phase::Active && self.is_shown(self.running) {
            let now = self.now;
            self.with_running(|thread, budget| thread.note(kind, now, budget));
        }
    }

    fn with_running(&mut self, act: impl FnOnce(&mut Thread, &mut Budget)) {
        if let Some(thread) = self.threads.get_mut(self.running) {
            act(thread, &mut self.budget);
        }
    }

    fn frames(&self) -> &[Frame] {
        self.threads.get(self.running).map_or(&[], |thread| &thread.frames)
    }

    fn is_shown(&self, thread: usize) -> bool {
        self.shown.get(thread).copied().unwrap_or(false)
    }

    fn nobody(&self) -> usize {
        self.recording.threads.len()
    }

    fn check(&self, what: &'static str, number: u32, known: usize) -> Result<usize, PathError> {
        match number as usize {
            index if index < known => Ok(index),
            _ => Err(Error::Unknown { chunk: self.number, what, number, known }.into()),
        }
    }

    fn finish(mut self) -> Result<Path, PathError> {
        if !self.began {
            return Err(self.not_found());
        }
        self.end_stretch();
        self.path.end_ns = self.now;
        for thread in &mut self.threads {
            thread.lose();
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
