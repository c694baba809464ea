//! The one reading of a trace's events: what a [`Machine`] does at each, and whom it tells.
//!
//! A [`Machine`] is the recorded machine: threads with their stacks, who runs where, the mode, the open regions, the
//! time. [`replay`] takes it through a chunk, and a [`Visitor`] is told what happens. Profiles, single
//! paths, timelines and exports are visitors. Their callbacks are compiled into the reading: what a visitor
//! leaves out costs nothing, and nothing here allocates per event.
//!
//! ```
//! use kerntune_analyze::events::{replay, Bounds, Frame, Machine, Visitor};
//! use kerntune_analyze::{Error, TraceFile};
//!
//! /// Counts the calls that end.
//! struct Ends(u64);
//!
//! impl Visitor for Ends {
//!     type Frame = ();
//!     fn ended(&mut self, _: &mut Machine<()>, _: Frame<()>) {
//!         self.0 += 1;
//!     }
//! }
//!
//! fn count(trace: &TraceFile<'_>) -> Result<u64, Error> {
//!     let (mut machine, mut ends) = (Machine::new(Bounds::of(trace.recording)), Ends(0));
//!     let mut reader = trace.reader()?;
//!     for number in 0..trace.chunks() {
//!         replay(&mut machine, &mut ends, &reader.read(number)?)?;
//!     }
//!     Ok(ends.0)
//! }
//! ```

use crate::trace_file::Chunk;
use crate::Error;
use kerntune_trace::{Decoder, Event, How, Recording, WaitingCpu, Waker, Weights};

/// Frames of one stack: more than any has room for return addresses.
pub const DEPTH_LIMIT: usize = 1 << 16;
/// Virtual time, ns: more than this is no time.
pub const TIME_LIMIT: u64 = 1 << 63;

/// How many there are of what events name by number.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Functions; the number one past the last stands for code in none of them.
    pub functions: usize,
    /// Functions above this number are user code's.
    pub kernel_functions: u32,
    /// Threads.
    pub threads: usize,
    /// CPUs.
    pub cpus: usize,
    /// Regions.
    pub regions: usize,
    /// Inline points.
    pub points: usize,
}

impl Bounds {
    /// Of those who look at threads only: functions, regions and points may have any number.
    pub fn of(recording: &Recording) -> Self {
        let (threads, kernel_functions) = (recording.threads.len(), recording.kernel_functions);
        Self {
            functions: usize::MAX,
            kernel_functions,
            threads,
            cpus: recording.cpus.max(1) as usize,
            regions: usize::MAX,
            points: usize::MAX,
        }
    }

    /// Whether a function is user code's.
    #[inline]
    pub fn is_user(&self, function: u32) -> bool {
        function > self.kernel_functions
    }
}

/// An open call, with what a visitor keeps of it.
#[derive(Debug, Clone, Copy)]
pub struct Frame<T> {
    /// Its number.
    pub function: u32,
    /// How it was entered.
    pub how: How,
    /// The visitor's.
    pub data: T,
}

/// The open frames of a thread.
#[derive(Debug)]
pub(crate) struct Stack<T> {
    /// Outermost first.
    pub frames: Vec<Frame<T>>,
    /// How many of them an interrupt entered.
    pub interrupts: u32,
}

impl<T> Stack<T> {
    const fn new() -> Self {
        Self { frames: Vec::new(), interrupts: 0 }
    }
}

/// What a chunk says is going on where it begins; checked.
pub struct Opening<'a> {
    /// Virtual time, ns.
    pub begin: u64,
    /// The CPU that executes.
    pub cpu: usize,
    /// Whether it is in user mode.
    pub user: bool,
    /// The thread that runs, or [`Machine::nobody`].
    pub running: usize,
    /// The other CPUs.
    pub waiting: &'a [WaitingCpu],
    /// Open frames by thread, outermost first.
    pub stacks: Vec<&'a [(u32, How)]>,
    /// Open regions, outermost first.
    pub regions: &'a [u32],
}

/// What is told of a trace's events. Each callback comes before the machine changes, unless it says otherwise.
pub trait Visitor: Sized {
    /// What is kept with each open frame. The default is that of a frame that a chunk begins with.
    type Frame: Copy + Default;

    /// A chunk begins. The machine takes the chunk's word for everything, unless told otherwise here.
    fn begin(&mut self, machine: &mut Machine<Self::Frame>, opening: &Opening<'_>) {
        machine.take(opening);
    }

    /// Whether what comes is of no interest any more. Asked before each event, and after the time before it.
    #[inline]
    fn is_done(&self) -> bool {
        false
    }

    /// So many ns and such weights pass with everything as it is; then `event` happens.
    #[inline]
    fn pass(&mut self, _: &mut Machine<Self::Frame>, _ns: u64, _: Weights, _event: &Event) {}

    /// The CPU is halted for so many ns.
    fn idle(&mut self, _: &mut Machine<Self::Frame>, _ns: u64) {}

    /// A function begins; returns what is kept with its frame.
    #[inline]
    fn enter(&mut self, _: &mut Machine<Self::Frame>, _function: u32, _: How) -> Self::Frame {
        Self::Frame::default()
    }

    /// The running thread's top frame has ended and is taken off; if an interrupt entered it, that is
    /// counted as open still.
    #[inline]
    fn ended(&mut self, _: &mut Machine<Self::Frame>, _: Frame<Self::Frame>) {}

    /// So many frames end without a return.
    fn unwind(&mut self, _: &mut Machine<Self::Frame>, _frames: u32) {}

    /// Another thread gets the CPU.
    fn switch(&mut self, _: &mut Machine<Self::Frame>, _to: usize) {}

    /// Another thread has got the CPU.
    fn switched(&mut self, _: &mut Machine<Self::Frame>) {}

    /// Another CPU is to execute.
    fn turn(&mut self, _: &mut Machine<Self::Frame>, _cpu: usize) {}

    /// Another CPU executes: another thread runs, without a switch.
    fn turned(&mut self, _: &mut Machine<Self::Frame>) {}

    /// Something that CPUs or threads do to each other: [`Event::Wake`], [`Event::Delay`], [`Event::Migrate`],
    /// [`Event::Signal`] or [`Event::Lock`].
    fn between(&mut self, _: &mut Machine<Self::Frame>, _: &Event) {}

    /// A region has begun.
    fn region_begun(&mut self, _: &mut Machine<Self::Frame>, _region: u32) {}

    /// A region has ended.
    fn region_ended(&mut self, _: &mut Machine<Self::Frame>, _region: u32) {}

    /// An operation is done.
    fn operation(&mut self, _: &mut Machine<Self::Frame>) {}

    /// An inline point is passed.
    fn point(&mut self, _: &mut Machine<Self::Frame>, _point: u32) {}

    /// An event was to end frames that are not there.
    fn unmatched_exit(&mut self) {}

    /// An open region was to begin, or one to end that is not open.
    fn unmatched_region(&mut self) {}
}

/// A CPU that does not execute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// The thread that runs there.
    pub running: usize,
    /// The CPU is in user mode.
    pub user: bool,
    /// It is halted, and does not only wait for its turn.
    pub halted: bool,
}

/// The recorded CPUs, of which one executes.
#[derive(Debug)]
pub struct Machine<T> {
    pub(crate) bounds: Bounds,
    /// The chunk's number, for messages.
    pub(crate) chunk: usize,
    /// Virtual time, and how much of it the CPU was halted since the chunk began.
    pub(crate) now: u64,
    pub(crate) idle: u64,
    /// The CPU is in user mode, or would be if the stack were empty.
    pub(crate) user: bool,
    /// Open regions, outermost first.
    pub(crate) regions: Vec<u32>,
    pub(crate) running: usize,
    /// The CPU that executes.
    pub(crate) cpu: usize,
    /// The others; its own place is of no meaning.
    waiting: Vec<Waiting>,
    /// The running thread's; its place among the `parked` is empty.
    pub(crate) stack: Stack<T>,
    parked: Vec<Stack<T>>,
}

impl<T: Copy + Default> Machine<T> {
    /// Nothing is open and nobody runs.
    pub fn new(bounds: Bounds) -> Self {
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
            waiting: vec![Waiting { running: nobody, user: true, halted: false }; bounds.cpus],
            stack: Stack::new(),
            parked: (0..=nobody).map(|_| Stack::new()).collect(),
        }
    }

    /// Virtual time, ns.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The CPU that executes.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// A CPU that does not execute, and how many frames of its thread an interrupt entered; `None` for the one that
    /// executes.
    pub(crate) fn waiting(&self, cpu: usize) -> Option<(Waiting, u32)> {
        let waiting = self.waiting.get(cpu).filter(|_| cpu != self.cpu)?;
        let stack = match waiting.running == self.running {
            true => &self.stack,
            false => self.parked.get(waiting.running)?,
        };
        Some((*waiting, stack.interrupts))
    }

    /// The thread that runs.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Stands for the running thread where it is not known; the number before it is that of no thread.
    pub fn nobody(&self) -> usize {
        self.bounds.threads + 1
    }

    /// The running thread's open frames, outermost first.
    pub fn frames(&self) -> &[Frame<T>] {
        &self.stack.frames
    }

    pub(crate) fn stack_of(&mut self, thread: usize) -> &mut Stack<T> {
        match thread == self.running {
            true => &mut self.stack,
            false => &mut self.parked[thread],
        }
    }

    /// Everything is as a chunk says.
    pub fn take(&mut self, opening: &Opening<'_>) {
        for (thread, frames) in opening.stacks.iter().enumerate() {
            let stack = self.stack_of(thread);
            stack.frames.clear();
            stack.frames.extend(frames.iter().map(|&(function, how)| Frame {
                function,
                how,
                data: T::default(),
            }));
            stack.interrupts = frames.iter().filter(|(_, how)| *how == How::Interrupt).count() as u32;
        }
        self.be(opening);
    }

    /// Whether what runs where, and the frames that are open, are as a chunk says.
    pub fn is_as(&self, opening: &Opening<'_>) -> bool {
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

    /// Everything is as a chunk says. Frames that are open already go on; the others end, or are entered.
    pub fn go_on<V: Visitor<Frame = T>>(&mut self, visitor: &mut V, opening: &Opening<'_>) {
        self.now = opening.begin;
        for (thread, frames) in opening.stacks.iter().enumerate() {
            self.run(thread);
            let same = |(ours, frame): &(&Frame<T>, &(u32, How))| (ours.function, ours.how) == **frame;
            let kept = self.stack.frames.iter().zip(*frames).take_while(same).count();
            self.end_down_to(visitor, kept);
            for &(function, how) in &frames[kept..] {
                self.push(visitor, function, how);
            }
        }
        self.be(opening);
    }

    fn be(&mut self, opening: &Opening<'_>) {
        for &WaitingCpu { cpu, thread, user, halted } in opening.waiting {
            self.waiting[cpu as usize] = Waiting { running: thread as usize, user, halted };
        }
        self.cpu = opening.cpu;
        self.run(opening.running);
        (self.now, self.idle, self.user) = (opening.begin, 0, opening.user);
        self.regions.clear();
        self.regions.extend_from_slice(opening.regions);
    }

    fn run(&mut self, thread: usize) {
        self.parked[self.running] = std::mem::replace(&mut self.stack, Stack::new());
        self.stack = std::mem::replace(&mut self.parked[thread], Stack::new());
        self.running = thread;
    }

    /// Takes a chunk's word for what is going on where it begins, or does what the visitor says.
    pub(crate) fn begin<V: Visitor<Frame = T>>(
        &mut self,
        visitor: &mut V,
        chunk: &Chunk<'_>,
    ) -> Result<(), Error> {
        self.chunk = chunk.number;
        let mut opening = Opening {
            begin: chunk.header.begin,
            cpu: self.check("CPU", chunk.header.vcpu, self.bounds.cpus)?,
            user: chunk.state.user,
            running: self.nobody(),
            waiting: &chunk.state.waiting,
            stacks: vec![&[]; self.nobody() + 1],
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

    /// The chunk's next event.
    #[allow(clippy::inline_always)] // see `Decoder::next`
    #[inline(always)]
    pub(crate) fn read(&self, decoder: &mut Decoder<'_>) -> Result<Option<(u64, Event)>, Error> {
        decoder.next().map_err(|source| Error::Format { chunk: self.chunk, source })
    }

    /// One event, `ns` and `weights` after the one before it.
    #[allow(clippy::inline_always)] // an event handed over in memory costs as much as reading it
    #[inline(always)]
    pub(crate) fn step<V: Visitor<Frame = T>>(
        &mut self,
        visitor: &mut V,
        ns: u64,
        weights: Weights,
        event: Event,
    ) -> Result<(), Error> {
        // Neither can be near 2^64.
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
    fn enter<V: Visitor<Frame = T>>(
        &mut self,
        visitor: &mut V,
        function: u32,
        how: How,
    ) -> Result<(), Error> {
        self.check_function(function)?;
        if self.stack.frames.len() >= DEPTH_LIMIT {
            return Err(Error::Depth { chunk: self.chunk, limit: DEPTH_LIMIT });
        }
        self.push(visitor, function, how);
        Ok(())
    }

    #[inline]
    fn push<V: Visitor<Frame = T>>(&mut self, visitor: &mut V, function: u32, how: How) {
        let data = visitor.enter(self, function, how);
        self.stack.interrupts += u32::from(how == How::Interrupt);
        self.user = self.bounds.is_user(function);
        self.stack.frames.push(Frame { function, how, data });
    }

    /// The top frame and the jumps below it end, see [`Event::Exit`].
    #[inline]
    fn exit<V: Visitor<Frame = T>>(&mut self, visitor: &mut V) {
        if self.stack.frames.is_empty() {
            visitor.unmatched_exit();
        }
        while self.end_top(visitor) == Some(How::Jump) {}
    }

    /// Ends the top frame; returns how it was entered.
    #[inline]
    pub(crate) fn end_top<V: Visitor<Frame = T>>(&mut self, visitor: &mut V) -> Option<How> {
        let frame = self.stack.frames.pop()?;
        visitor.ended(self, frame);
        self.stack.interrupts -= u32::from(frame.how == How::Interrupt);
        Some(frame.how)
    }

    fn end_down_to<V: Visitor<Frame = T>>(&mut self, visitor: &mut V, length: usize) {
        while self.stack.frames.len() > length {
            self.end_top(visitor);
        }
    }

    #[inline(never)]
    fn rare<V: Visitor<Frame = T>>(&mut self, visitor: &mut V, event: Event) -> Result<(), Error> {
        match event {
            Event::Resume => {
                let is_entry = |frame: &Frame<T>| matches!(frame.how, How::Interrupt | How::Exception);
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
                self.run(thread);
                // Only the kernel switches.
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
                self.waiting[self.cpu] = Waiting { running: self.running, user: self.user, halted: halts };
                let Waiting { running, user, .. } = self.waiting[cpu];
                (self.cpu, self.user) = (cpu, user);
                self.run(running);
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
            // These do not come here.
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

/// Takes the machine through a chunk, or until the visitor is done. Returns the number of events.
///
/// # Errors
/// What the chunk's bytes cannot mean. Machine and visitor are of no use afterwards.
pub fn replay<V: Visitor>(
    machine: &mut Machine<V::Frame>,
    visitor: &mut V,
    chunk: &Chunk<'_>,
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
