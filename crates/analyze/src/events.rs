//! Replay of a trace's events: [`replay`] updates a [`ReplayState`] event by event and calls an
//! [`EventVisitor`].
//!
//! The [`ReplayState`] models the recorded machine: the threads' stacks, the thread and mode of
//! each CPU, the open regions, the time. Profiles, single paths, timelines and exports are
//! visitors. Visitors are compiled into the replay loop: a callback that a visitor does not
//! implement costs nothing, and the loop does not allocate per event.
//!
//! ```
//! use kerntune_analyze::events::{replay, EventVisitor, ReplayState, StackFrame, TraceBounds};
//! use kerntune_analyze::{Error, TraceFile};
//!
//! /// Counts the calls that end.
//! struct EndedCalls(u64);
//!
//! impl EventVisitor for EndedCalls {
//!     type PerFrame = ();
//!     fn ended(&mut self, _: &mut ReplayState<()>, _: StackFrame<()>) {
//!         self.0 += 1;
//!     }
//! }
//!
//! fn count(trace: &TraceFile<'_>) -> Result<u64, Error> {
//!     let (mut state, mut ended) = (ReplayState::new(TraceBounds::of(trace.recording)), EndedCalls(0));
//!     let mut reader = trace.reader()?;
//!     for number in 0..trace.chunks() {
//!         replay(&mut state, &mut ended, &reader.read(number)?)?;
//!     }
//!     Ok(ended.0)
//! }
//! ```

use crate::trace_file::TraceChunk;
use crate::Error;
use kerntune_trace::{EnterKind, Event, EventDecoder, EventWeights, Recording, WaitingCpu, Waker};

/// Maximum number of open frames on one stack: more than any kernel stack has room for.
pub const DEPTH_LIMIT: usize = 1 << 16;
/// Upper bound of virtual times, in ticks; a trace with a later time is damaged.
pub const TIME_LIMIT: u64 = 1 << 63;

/// Upper bounds of the numbers by which events name things; replay rejects an event with a higher
/// number.
#[derive(Debug, Clone, Copy)]
pub struct TraceBounds {
    /// Number of functions; this number itself stands for code outside of all known functions.
    pub functions: usize,
    /// Number of kernel functions; functions with a higher number are user code's, up to
    /// [`Self::first_loaded`].
    pub kernel_functions: u32,
    /// Number of the first function of code that the kernel loaded; they are the kernel's as well.
    pub first_loaded: u32,
    /// Number of recorded threads.
    pub threads: usize,
    /// Number of CPUs, at least 1.
    pub cpus: usize,
    /// Number of regions.
    pub regions: usize,
    /// Number of inline points.
    pub points: usize,
}

impl TraceBounds {
    /// Returns bounds for visitors that look at threads only: functions, regions and points are not
    /// bounded.
    pub fn of(recording: &Recording) -> Self {
        let (threads, kernel_functions) = (recording.threads.len(), recording.kernel_functions);
        Self {
            functions: usize::MAX,
            kernel_functions,
            first_loaded: recording.first_loaded.unwrap_or(u32::MAX),
            threads,
            cpus: recording.cpus.max(1) as usize,
            regions: usize::MAX,
            points: usize::MAX,
        }
    }

    /// Checks whether a function is user code's.
    #[inline]
    pub fn is_user(&self, function: u32) -> bool {
        function > self.kernel_functions && function < self.first_loaded
    }
}

/// An open call on a thread's stack, with the visitor's value for it.
#[derive(Debug, Clone, Copy)]
pub struct StackFrame<T> {
    /// Number of the function.
    pub function: u32,
    /// Kind of entry: call, jump, interrupt, exception or system call.
    pub how: EnterKind,
    /// The visitor's value.
    pub data: T,
}

/// Times of an open call so far, in ticks. A visitor that needs them has them in its
/// [`EventVisitor::PerFrame`], and charges each interval with [`ReplayState::charge`] and the end of
/// each call with [`credit_caller`]. The replay does not do so by itself: windows begin and end within
/// intervals, and other visitors need no times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// Time in which the call was on top of its stack.
    pub self_ticks: u64,
    /// Total time of callees that have ended.
    pub callees: u64,
}

impl CallTimes {
    /// Returns the time of the call and of its callees that have ended.
    #[inline]
    pub fn total(self) -> u64 {
        self.self_ticks + self.callees
    }
}

impl std::ops::AddAssign for CallTimes {
    fn add_assign(&mut self, more: Self) {
        self.self_ticks += more.self_ticks;
        self.callees += more.callees;
    }
}

/// Adds the total time of a call that has ended to the callees' time of its caller, the last of
/// `frames`, and returns it. An interrupt's function is no callee of the code that it interrupted.
#[inline]
pub fn credit_caller<T: AsMut<CallTimes>>(frames: &mut [StackFrame<T>], mut ended: StackFrame<T>) -> u64 {
    let total = ended.data.as_mut().total();
    if ended.how != EnterKind::Interrupt {
        if let Some(caller) = frames.last_mut() {
            caller.data.as_mut().callees += total;
        }
    }
    total
}

/// The open frames of a thread.
#[derive(Debug)]
pub(crate) struct ThreadStack<T> {
    /// Outermost first.
    pub frames: Vec<StackFrame<T>>,
    /// Number of frames that an interrupt entered.
    pub interrupts: u32,
}

impl<T> ThreadStack<T> {
    const fn new() -> Self {
        Self { frames: Vec::new(), interrupts: 0 }
    }
}

/// The state that a chunk declares at its beginning, with all numbers checked.
pub struct ChunkOpening<'a> {
    /// Virtual time, in ticks.
    pub begin: u64,
    /// The CPU that executes.
    pub cpu: usize,
    /// True if that CPU is in user mode.
    pub user: bool,
    /// The thread that runs, or [`ReplayState::unknown_thread`].
    pub running: usize,
    /// The CPUs that do not execute.
    pub waiting: &'a [WaitingCpu],
    /// Open frames by thread, outermost first.
    pub stacks: Vec<&'a [(u32, EnterKind)]>,
    /// Open regions, outermost first.
    pub regions: &'a [u32],
}

/// Callbacks for the events of a trace. Each comes before the replay state changes, unless its
/// documentation says otherwise.
pub trait EventVisitor: Sized {
    /// Value that the visitor keeps with each open frame. Frames that are open where a chunk begins
    /// get the default.
    type PerFrame: Copy + Default;

    /// A chunk begins. The default implementation replaces the replay state by the state that the
    /// chunk declares.
    fn begin(&mut self, machine: &mut ReplayState<Self::PerFrame>, opening: &ChunkOpening<'_>) {
        machine.adopt(opening);
    }

    /// Checks whether the visitor needs no more events. Called before each event, after
    /// [`EventVisitor::pass`].
    #[inline]
    fn is_done(&self) -> bool {
        false
    }

    /// `ns` ticks and `weights` pass in the current state, then `event` happens.
    #[inline]
    fn pass(&mut self, _: &mut ReplayState<Self::PerFrame>, _ns: u64, _: EventWeights, _event: &Event) {}

    /// All CPUs are halted for `ns` ticks.
    fn idle(&mut self, _: &mut ReplayState<Self::PerFrame>, _ns: u64) {}

    /// A function is entered; returns the value to keep with its frame.
    #[inline]
    fn enter(&mut self, _: &mut ReplayState<Self::PerFrame>, _function: u32, _: EnterKind) -> Self::PerFrame {
        Self::PerFrame::default()
    }

    /// The running thread's top frame has ended and was removed. If an interrupt entered it, the
    /// stack's count of interrupts still includes it.
    #[inline]
    fn ended(&mut self, _: &mut ReplayState<Self::PerFrame>, _: StackFrame<Self::PerFrame>) {}

    /// `frames` frames end without a return.
    fn unwind(&mut self, _: &mut ReplayState<Self::PerFrame>, _frames: u32) {}

    /// The CPU is about to switch to thread `to`.
    fn switch(&mut self, _: &mut ReplayState<Self::PerFrame>, _to: usize) {}

    /// The CPU has switched to another thread.
    fn switched(&mut self, _: &mut ReplayState<Self::PerFrame>) {}

    /// Execution is about to move to another CPU.
    fn turn(&mut self, _: &mut ReplayState<Self::PerFrame>, _cpu: usize) {}

    /// Execution has moved to another CPU, and so to another thread, without a context switch.
    fn turned(&mut self, _: &mut ReplayState<Self::PerFrame>) {}

    /// CPUs or threads interact: [`Event::Wake`], [`Event::Delay`], [`Event::Migrate`],
    /// [`Event::Signal`] or [`Event::Lock`].
    fn between(&mut self, _: &mut ReplayState<Self::PerFrame>, _: &Event) {}

    /// A region has begun.
    fn region_begun(&mut self, _: &mut ReplayState<Self::PerFrame>, _region: u32) {}

    /// A region has ended.
    fn region_ended(&mut self, _: &mut ReplayState<Self::PerFrame>, _region: u32) {}

    /// One operation of the workload is complete.
    fn operation(&mut self, _: &mut ReplayState<Self::PerFrame>) {}

    /// Execution passes an inline point.
    fn point(&mut self, _: &mut ReplayState<Self::PerFrame>, _point: u32) {}

    /// An event ends frames that are not open.
    fn unmatched_exit(&mut self) {}

    /// A region begins that is open already, or one ends that is not open.
    fn unmatched_region(&mut self) {}
}

/// Visitor that does nothing.
impl EventVisitor for () {
    type PerFrame = ();
}

/// State of a CPU that does not execute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParkedCpu {
    pub running: usize,
    pub user: bool,
    /// True if the CPU is halted, as opposed to ready and waiting for its turn.
    pub halted: bool,
}

/// State of the recorded machine during replay. One of its CPUs executes at a time.
#[derive(Debug)]
pub struct ReplayState<T> {
    pub(crate) bounds: TraceBounds,
    /// Number of the chunk, for messages.
    pub(crate) chunk: usize,
    /// Virtual time, and the idle time since the chunk began.
    pub(crate) now: u64,
    pub(crate) idle: u64,
    /// True if the CPU is in user mode; while frames are open, if the top frame is user code's.
    pub(crate) user: bool,
    /// Open regions, outermost first.
    pub(crate) regions: Vec<u32>,
    pub(crate) running: usize,
    /// The CPU that executes.
    pub(crate) cpu: usize,
    /// The other CPUs; the element of the CPU that executes is stale.
    waiting: Vec<ParkedCpu>,
    /// Stack of the running thread, whose element in `parked` is empty.
    pub(crate) stack: ThreadStack<T>,
    parked: Vec<ThreadStack<T>>,
}

impl<T: Copy + Default> ReplayState<T> {
    /// Returns a state in which nothing is open and no known thread runs.
    pub fn new(bounds: TraceBounds) -> Self {
        let nobody = bounds.threads + 1;
        Self {
            bounds,
            chunk: 0,
            now: 0,
            idle: 0,
            user: true,
            regions: Vec::new(),
            running: nobody,
            cpu: 0,
            waiting: vec![ParkedCpu { running: nobody, user: true, halted: false }; bounds.cpus],
            stack: ThreadStack::new(),
            parked: (0..=nobody).map(|_| ThreadStack::new()).collect(),
        }
    }

    /// Returns the virtual time, in ticks.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns the CPU that executes.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Returns the state of a CPU that does not execute, and the number of interrupt frames on its
    /// thread's stack. `None` for the CPU that executes.
    pub(crate) fn waiting(&self, cpu: usize) -> Option<(ParkedCpu, u32)> {
        let waiting = self.waiting.get(cpu).filter(|_| cpu != self.cpu)?;
        let stack = match waiting.running == self.running {
            true => &self.stack,
            false => self.parked.get(waiting.running)?,
        };
        Some((*waiting, stack.interrupts))
    }

    /// Returns the number of the thread that runs.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Returns the number that stands for an unknown running thread. It is the number of threads
    /// plus one: the number in between is the pseudo-thread of all interrupts.
    pub fn unknown_thread(&self) -> usize {
        self.bounds.threads + 1
    }

    /// Checks whether the CPU is in user mode; while frames are open, whether the top frame is user
    /// code's.
    pub fn is_user_mode(&self) -> bool {
        self.user
    }

    /// Returns the open regions, outermost first.
    pub fn regions(&self) -> &[u32] {
        &self.regions
    }

    /// Returns the open frames of the running thread, outermost first.
    pub fn frames(&self) -> &[StackFrame<T>] {
        &self.stack.frames
    }

    /// Returns the open frames of the running thread, to change the visitor's values.
    #[inline]
    pub fn frames_mut(&mut self) -> &mut [StackFrame<T>] {
        &mut self.stack.frames
    }

    /// Returns the open frames of a thread, to change the visitor's values. Threads have numbers up
    /// to [`ReplayState::unknown_thread`].
    pub fn frames_of(&mut self, thread: usize) -> &mut [StackFrame<T>] {
        &mut self.stack_of(thread).frames
    }

    /// Charges time to the running thread's top frame and returns that; `None` if no frame is open.
    #[inline]
    pub fn charge(&mut self, ticks: u64) -> Option<&mut StackFrame<T>>
    where
        T: AsMut<CallTimes>,
    {
        let top = self.stack.frames.last_mut()?;
        top.data.as_mut().self_ticks += ticks;
        Some(top)
    }

    pub(crate) fn stack_of(&mut self, thread: usize) -> &mut ThreadStack<T> {
        match thread == self.running {
            true => &mut self.stack,
            false => &mut self.parked[thread],
        }
    }

    /// Replaces the state by the state that a chunk declares.
    pub fn adopt(&mut self, opening: &ChunkOpening<'_>) {
        for (thread, frames) in opening.stacks.iter().enumerate() {
            let stack = self.stack_of(thread);
            stack.frames.clear();
            stack.frames.extend(frames.iter().map(|&(function, how)| StackFrame {
                function,
                how,
                data: T::default(),
            }));
            stack.interrupts = frames.iter().filter(|(_, how)| *how == EnterKind::Interrupt).count() as u32;
        }
        self.set_chunk_state(opening);
    }

    /// Checks whether a chunk continues this state without a gap: nothing is recorded outside of
    /// regions.
    pub fn is_continued_by(&self, opening: &ChunkOpening<'_>) -> bool {
        !self.regions.is_empty() && self.now == opening.begin && self.agrees_with(opening)
    }

    /// Checks whether running threads and open frames are those that a chunk declares.
    pub fn agrees_with(&self, opening: &ChunkOpening<'_>) -> bool {
        let is_waiting = |cpu: &WaitingCpu| {
            self.waiting.get(cpu.cpu as usize).is_some_and(|ours| ours.running == cpu.thread as usize)
        };
        if (self.cpu, self.running) != (opening.cpu, opening.running)
            || !opening.waiting.iter().all(is_waiting)
        {
            return false;
        }
        let stack = |thread| if thread == self.running { &self.stack } else { &self.parked[thread] };
        opening.stacks.iter().enumerate().all(|(thread, frames)| {
            stack(thread).frames.iter().map(|frame| (frame.function, frame.how)).eq(frames.iter().copied())
        })
    }

    /// Changes the state to the one that a chunk declares. Frames that are in both stay open; for
    /// the others the visitor gets ends and entries.
    pub fn continue_from<V: EventVisitor<PerFrame = T>>(
        &mut self,
        visitor: &mut V,
        opening: &ChunkOpening<'_>,
    ) {
        self.now = opening.begin;
        for (thread, frames) in opening.stacks.iter().enumerate() {
            self.switch_to(thread);
            let same =
                |(ours, frame): &(&StackFrame<T>, &(u32, EnterKind))| (ours.function, ours.how) == **frame;
            let kept = self.stack.frames.iter().zip(*frames).take_while(same).count();
            self.end_down_to(visitor, kept);
            for &(function, how) in &frames[kept..] {
                self.push(visitor, function, how);
            }
        }
        self.set_chunk_state(opening);
    }

    fn set_chunk_state(&mut self, opening: &ChunkOpening<'_>) {
        for &WaitingCpu { cpu, thread, user, halted } in opening.waiting {
            self.waiting[cpu as usize] = ParkedCpu { running: thread as usize, user, halted };
        }
        self.cpu = opening.cpu;
        self.switch_to(opening.running);
        (self.now, self.idle, self.user) = (opening.begin, 0, opening.user);
        self.regions.clear();
        self.regions.extend_from_slice(opening.regions);
    }

    fn switch_to(&mut self, thread: usize) {
        self.parked[self.running] = std::mem::replace(&mut self.stack, ThreadStack::new());
        self.stack = std::mem::replace(&mut self.parked[thread], ThreadStack::new());
        self.running = thread;
    }

    /// Checks the state that a chunk declares, and passes it to the visitor.
    pub(crate) fn begin<V: EventVisitor<PerFrame = T>>(
        &mut self,
        visitor: &mut V,
        chunk: &TraceChunk<'_>,
    ) -> Result<(), Error> {
        self.chunk = chunk.number;
        let mut opening = ChunkOpening {
            begin: chunk.header.begin,
            cpu: self.check("CPU", chunk.header.vcpu, self.bounds.cpus)?,
            user: chunk.state.user,
            running: self.unknown_thread(),
            waiting: &chunk.state.waiting,
            stacks: vec![&[]; self.unknown_thread() + 1],
            regions: &chunk.state.regions,
        };
        self.check_time(opening.begin)?;
        for stack in &chunk.state.stacks {
            let thread = self.check("thread", stack.thread, self.bounds.threads)?;
            for (function, _) in &stack.frames {
                self.check_function(*function)?;
            }
            if stack.frames.len() > DEPTH_LIMIT {
                return Err(Error::Depth { chunk: self.chunk, limit: DEPTH_LIMIT });
            }
            opening.stacks[thread] = &stack.frames;
            if stack.running {
                opening.running = thread;
            }
        }
        for cpu in opening.waiting {
            self.check("CPU", cpu.cpu, self.bounds.cpus)?;
            self.check("thread", cpu.thread, self.bounds.threads)?;
        }
        for &region in opening.regions {
            self.check("region", region, self.bounds.regions)?;
        }
        visitor.begin(self, &opening);
        Ok(())
    }

    /// Decodes the next event of the chunk.
    #[allow(clippy::inline_always)] // see `EventDecoder::next`
    #[inline(always)]
    pub(crate) fn read(&self, decoder: &mut EventDecoder<'_>) -> Result<Option<(u64, Event)>, Error> {
        decoder.next().map_err(|source| Error::Format { chunk: self.chunk, source })
    }

    /// Applies one event, `ns` ticks and `weights` after the event before it.
    #[allow(clippy::inline_always)] // an event handed over in memory costs as much as reading it
    #[inline(always)]
    pub(crate) fn step<V: EventVisitor<PerFrame = T>>(
        &mut self,
        visitor: &mut V,
        ns: u64,
        weights: EventWeights,
        event: Event,
    ) -> Result<(), Error> {
        // Neither can be near 2^64, so that the sum does not overflow.
        let now = self.now + ns;
        self.check_time(now)?;
        visitor.pass(self, ns, weights, &event);
        self.now = now;
        match event {
            _ if visitor.is_done() => Ok(()),
            Event::Enter { function, how } => self.enter(visitor, function, how),
            Event::Exit => {
                self.exit(visitor);
                Ok(())
            }
            rest => self.rare(visitor, rest),
        }
    }

    #[inline]
    fn enter<V: EventVisitor<PerFrame = T>>(
        &mut self,
        visitor: &mut V,
        function: u32,
        how: EnterKind,
    ) -> Result<(), Error> {
        self.check_function(function)?;
        if self.stack.frames.len() >= DEPTH_LIMIT {
            return Err(Error::Depth { chunk: self.chunk, limit: DEPTH_LIMIT });
        }
        self.push(visitor, function, how);
        Ok(())
    }

    #[inline]
    fn push<V: EventVisitor<PerFrame = T>>(&mut self, visitor: &mut V, function: u32, how: EnterKind) {
        let data = visitor.enter(self, function, how);
        self.stack.interrupts += u32::from(how == EnterKind::Interrupt);
        self.user = self.bounds.is_user(function);
        self.stack.frames.push(StackFrame { function, how, data });
    }

    /// Ends the top frame, and the frames below it that were left by jumps; see [`Event::Exit`].
    #[inline]
    fn exit<V: EventVisitor<PerFrame = T>>(&mut self, visitor: &mut V) {
        if self.stack.frames.is_empty() {
            visitor.unmatched_exit();
        }
        while self.end_top(visitor) == Some(EnterKind::Jump) {}
    }

    /// Ends the top frame; returns its kind of entry.
    #[inline]
    pub(crate) fn end_top<V: EventVisitor<PerFrame = T>>(&mut self, visitor: &mut V) -> Option<EnterKind> {
        let frame = self.stack.frames.pop()?;
        visitor.ended(self, frame);
        self.stack.interrupts -= u32::from(frame.how == EnterKind::Interrupt);
        Some(frame.how)
    }

    fn end_down_to<V: EventVisitor<PerFrame = T>>(&mut self, visitor: &mut V, length: usize) {
        while self.stack.frames.len() > length {
            self.end_top(visitor);
        }
    }

    #[inline(never)]
    fn rare<V: EventVisitor<PerFrame = T>>(&mut self, visitor: &mut V, event: Event) -> Result<(), Error> {
        match event {
            Event::Resume => {
                let is_entry =
                    |frame: &StackFrame<T>| matches!(frame.how, EnterKind::Interrupt | EnterKind::Exception);
                match self.stack.frames.iter().rposition(is_entry) {
                    Some(at) => self.end_down_to(visitor, at),
                    None => visitor.unmatched_exit(),
                }
            }
            Event::Leave => {
                let user = self.stack.frames.iter().rposition(|frame| self.bounds.is_user(frame.function));
                self.end_down_to(visitor, user.map_or(0, |at| at + 1));
                self.user = true;
            }
            Event::Unwind { frames } => {
                visitor.unwind(self, frames);
                let left = self.stack.frames.len().checked_sub(frames as usize);
                if left.is_none() {
                    visitor.unmatched_exit();
                }
                self.end_down_to(visitor, left.unwrap_or(0));
            }
            Event::Switch { thread } => {
                let thread = self.check("thread", thread, self.bounds.threads)?;
                visitor.switch(self, thread);
                self.switch_to(thread);
                // Only the kernel switches threads.
                self.user = false;
                visitor.switched(self);
            }
            Event::Idle { ns } => {
                let now = self.now.saturating_add(ns);
                self.check_time(now)?;
                visitor.idle(self, ns);
                (self.now, self.idle) = (now, self.idle + ns);
            }
            Event::RegionBegin { region } => {
                self.check("region", region, self.bounds.regions)?;
                if self.regions.contains(&region) {
                    visitor.unmatched_region();
                } else {
                    self.regions.push(region);
                    visitor.region_begun(self, region);
                }
            }
            Event::RegionEnd { region } => {
                self.check("region", region, self.bounds.regions)?;
                match self.regions.iter().rposition(|open| *open == region) {
                    None => visitor.unmatched_region(),
                    Some(place) => {
                        self.regions.remove(place);
                        visitor.region_ended(self, region);
                    }
                }
            }
            Event::Point { point } => {
                self.check("point", point, self.bounds.points)?;
                visitor.point(self, point);
            }
            Event::Operation => visitor.operation(self),
            Event::Cpu { cpu, halts } => {
                let cpu = self.check("CPU", cpu, self.bounds.cpus)?;
                visitor.turn(self, cpu);
                self.waiting[self.cpu] = ParkedCpu { running: self.running, user: self.user, halted: halts };
                let ParkedCpu { running, user, .. } = self.waiting[cpu];
                (self.cpu, self.user) = (cpu, user);
                self.switch_to(running);
                visitor.turned(self);
            }
            Event::Wake { thread } => {
                self.check("thread", thread, self.bounds.threads)?;
                visitor.between(self, &event);
            }
            Event::Delay { waker, ns } => {
                self.check_time(ns)?;
                if let Waker::Thread(thread) = waker {
                    self.check("thread", thread, self.bounds.threads)?;
                }
                visitor.between(self, &event);
            }
            Event::Migrate { thread, from, to } => {
                self.check("thread", thread, self.bounds.threads)?;
                self.check("CPU", from, self.bounds.cpus)?;
                self.check("CPU", to, self.bounds.cpus)?;
                visitor.between(self, &event);
            }
            Event::Signal { cpu } => {
                self.check("CPU", cpu, self.bounds.cpus)?;
                visitor.between(self, &event);
            }
            Event::Lock { function, ns, .. } => {
                self.check_function(function)?;
                self.check_time(ns)?;
                visitor.between(self, &event);
            }
            // `step` handles these two.
            Event::Enter { .. } | Event::Exit => {}
        }
        Ok(())
    }

    #[inline]
    fn check_time(&self, time: u64) -> Result<(), Error> {
        match time < TIME_LIMIT {
            true => Ok(()),
            false => Err(Error::Time { chunk: self.chunk }),
        }
    }

    #[inline]
    fn check_function(&self, function: u32) -> Result<(), Error> {
        match function as usize <= self.bounds.functions {
            true => Ok(()),
            false => self.check("function", function, self.bounds.functions).map(|_| ()),
        }
    }

    fn check(&self, what: &'static str, number: u32, known: usize) -> Result<usize, Error> {
        match number as usize {
            index if index < known => Ok(index),
            _ => Err(Error::Unknown { chunk: self.chunk, what, number, known }),
        }
    }
}

/// Replays a chunk until its end, or until the visitor is done. Returns the number of events.
///
/// # Errors
/// Events that make no sense, as in a damaged chunk. State and visitor cannot be used afterwards.
pub fn replay<V: EventVisitor>(
    machine: &mut ReplayState<V::PerFrame>,
    visitor: &mut V,
    chunk: &TraceChunk<'_>,
) -> Result<u64, Error> {
    machine.begin(visitor, chunk)?;
    let mut decoder = chunk.decoder();
    let mut events = 0;
    while !visitor.is_done() {
        let Some((ns, event)) = machine.read(&mut decoder)? else { break };
        machine.step(visitor, ns, decoder.weights(), event)?;
        events += 1;
    }
    Ok(events)
}
