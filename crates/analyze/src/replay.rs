//! Replaying events: who has run for how long in which function.
//!
//! # Clocks
//!
//! The definition: a thread's stack is cut into segments, a new one at each frame that an
//! interrupt entered. Every segment has a clock that advances while its thread runs, the CPU is
//! not halted and no other segment lies above it. A frame's elapsed time is what its segment's
//! clock shows at its exit less what it showed at its entry; its net time is that less the elapsed
//! times of its callees. So an interrupt costs nothing to what it interrupted; a nested interrupt
//! nothing to the outer one; and a thread that is switched away, inside an interrupt frame or not
//! (the kernel reschedules on the way out of an interrupt), does not age until it is switched in
//! again. An exception (page fault) is of its own segment's making and is a callee like others.
//!
//! The implementation needs no clocks: every interval between two events goes to the top frame of
//! the running thread as net time, and a frame that ends passes net and callees' time on to the
//! frame below, unless an interrupt entered it. That is the same sum in another order; the
//! tests compare it with one that has clocks.
//!
//! # Where time goes
//!
//! Of each interval, exactly one of these gets all: the function on top; user time, if the stack
//! is empty since the thread went back to user code; unattributed time, if it is empty otherwise.
//! And exactly one thread: the running one, or the pseudo-thread of all interrupts if an
//! interrupt's frame is open. Idle time is no interval: it belongs to the region alone.

use crate::arcs::{ArcKey, NO_CALLER};
use crate::ledger::{Books, Histograms, Ledger};
use crate::Error;
use kerntune_trace::{ChunkHeader, Decoder, Event, How, OpenStack};

/// More frames than any kernel stack has room for return addresses.
const DEPTH_LIMIT: usize = 1 << 16;
/// More time than this is no time.
const TIME_LIMIT: u64 = 1 << 63;

/// An open call.
#[derive(Debug, Clone, Copy)]
struct Frame {
    function: u32,
    how: How,
    /// Some of it was not seen: it has net time, but does not count as a call.
    cut: bool,
    net: u64,
    /// Elapsed time of callees that ended.
    callees: u64,
    /// The part of `net` that is in the accounts already.
    credited: u64,
}

/// A thread's open frames.
#[derive(Debug, Default)]
struct Stack {
    frames: Vec<Frame>,
    /// How many of them an interrupt entered.
    interrupts: u32,
}

/// A region that is open, and what the clocks showed when it began.
#[derive(Debug, Clone, Copy)]
struct OpenRegion {
    region: u32,
    since: Option<(u64, u64)>,
}

/// What the trace says of a region's times, those within it included.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub busy: u64,
    pub idle: u64,
    /// Whether both its begin and its end were seen.
    pub whole: bool,
}

/// What was not as it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Troubles {
    /// Stacks that were not as the next chunk said.
    pub stack_mismatches: u64,
    /// Chunks in which another thread ran than the chunk before ended with.
    pub running_mismatches: u64,
    /// Chunks that began at another time than the one before ended.
    pub clock_mismatches: u64,
    pub clock_mismatch_ns: u64,
    /// Events that ended frames that were not there.
    pub unmatched_exits: u64,
    /// Calls of which the beginning, the end or something between was not seen.
    pub cut_calls: u64,
    /// Time of events outside all regions.
    pub outside_ns: u64,
    /// Begins of open regions and ends of others.
    pub region_mismatches: u64,
}

/// What recording and symbols have, and so the bounds of what events may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// Functions; the number one past the last stands for code in none of them.
    pub functions: usize,
    /// Threads. The numbers after the last are [`Known::interrupt`] and [`Known::nobody`].
    pub threads: usize,
    pub regions: usize,
    /// Whether thread `i` is an idle task: those have no user mode.
    pub idle: fn(&kerntune_trace::Thread) -> bool,
}

impl Known {
    /// The pseudo-thread of all interrupts.
    pub fn interrupt(&self) -> usize {
        self.threads
    }

    /// Stands for the running thread as long as it is not known.
    pub fn nobody(&self) -> usize {
        self.threads + 1
    }
}

/// The state of an analysis.
pub(crate) struct Replay<'a> {
    threads: &'a [kerntune_trace::Thread],
    known: Known,
    ledger: Ledger,
    books: Books,
    stack: Stack,
    running: usize,
    /// Stacks of the threads that do not run.
    parked: Vec<Stack>,
    /// The CPU is in user mode, or would be if the stack were empty.
    user: bool,
    open: Vec<OpenRegion>,
    measured: Vec<Measured>,
    /// Busy time since the beginning.
    busy: u64,
    idle: u64,
    /// Busy time that threads' accounts have, and that regions' accounts have.
    charged: u64,
    closed: u64,
    started: bool,
    chunk: usize,
    /// Virtual time where the last chunk ended.
    end: u64,
    pub troubles: Troubles,
}

/// The accounts when everything is replayed.
pub(crate) struct Closing {
    pub books: Books,
    pub histograms: Histograms,
    pub measured: Vec<Measured>,
    pub troubles: Troubles,
}

impl<'a> Replay<'a> {
    /// `open` are the regions that are open where the first chunk begins, outermost first.
    pub fn new(threads: &'a [kerntune_trace::Thread], known: Known, open: &[u32]) -> Self {
        let mut books = Books::default();
        books.regions.resize(known.regions, Default::default());
        Self {
            threads,
            known,
            ledger: Ledger::new(known.functions + 1, known.threads + 2),
            books,
            stack: Stack::default(),
            running: known.nobody(),
            parked: (0..known.threads + 2).map(|_| Stack::default()).collect(),
            user: true,
            open: open.iter().map(|&region| OpenRegion { region, since: None }).collect(),
            measured: vec![Measured::default(); known.regions],
            busy: 0,
            idle: 0,
            charged: 0,
            closed: 0,
            started: false,
            chunk: 0,
            end: 0,
            troubles: Troubles::default(),
        }
    }

    /// Replays one chunk.
    pub fn chunk(
        &mut self,
        number: usize,
        header: &ChunkHeader,
        stacks: &[OpenStack],
        payload: &[u8],
    ) -> Result<(), Error> {
        self.chunk = number;
        self.begin_chunk(header, stacks)?;
        let start = self.busy + self.idle;
        let mut decoder = Decoder::new(payload);
        let mut events = 0u64;
        while let Some((delta, event)) =
            decoder.next().map_err(|source| Error::Format { chunk: number, source })?
        {
            self.event(delta, event)?;
            events += 1;
        }
        if events != u64::from(header.events) {
            let expected = header.events.into();
            return Err(Error::Contents { chunk: number, what: "events", found: events, expected });
        }
        self.end = header.begin.saturating_add(self.busy + self.idle - start);
        Ok(())
    }

    /// Takes the header's word for the stacks; counts where ours differ, unless there was a gap.
    fn begin_chunk(&mut self, header: &ChunkHeader, stacks: &[OpenStack]) -> Result<(), Error> {
        let contiguous = std::mem::replace(&mut self.started, true) && !self.open.is_empty();
        if contiguous && header.begin != self.end {
            self.troubles.clock_mismatches += 1;
            let by = header.begin.abs_diff(self.end);
            self.troubles.clock_mismatch_ns = self.troubles.clock_mismatch_ns.saturating_add(by);
        }
        if contiguous {
            self.charge_thread();
        } else {
            self.close_ledger();
        }
        self.park();
        let mut said: Vec<&[(u32, How)]> = vec![&[]; self.parked.len()];
        let mut running = self.known.nobody();
        for stack in stacks {
            let thread = self.check("thread", stack.thread, self.known.threads)?;
            for (function, _) in &stack.frames {
                self.check("function", *function, self.known.functions + 1)?;
            }
            if stack.frames.len() > DEPTH_LIMIT {
                return Err(Error::Depth { chunk: self.chunk, limit: DEPTH_LIMIT });
            }
            said[thread] = &stack.frames;
            if stack.running {
                running = thread;
            }
        }
        for (thread, frames) in said.into_iter().enumerate() {
            self.adopt(thread, frames, contiguous);
        }
        if contiguous && running != self.running {
            self.troubles.running_mismatches += 1;
        }
        let same = contiguous && running == self.running;
        self.running = running;
        self.stack = std::mem::take(&mut self.parked[running]);
        if !same {
            // A gap ends with a begin mark, which is user code.
            self.user = self.stack.frames.is_empty();
        }
        Ok(())
    }

    /// Makes a parked stack what the chunk says it is.
    fn adopt(&mut self, thread: usize, said: &[(u32, How)], contiguous: bool) {
        let stack = &mut self.parked[thread];
        let ours = || stack.frames.iter().map(|frame| (frame.function, frame.how));
        if contiguous {
            if ours().eq(said.iter().copied()) {
                return;
            }
            self.troubles.stack_mismatches += 1;
        }
        let kept = ours().zip(said).take_while(|(ours, said)| ours == *said).count();
        self.troubles.cut_calls += (said.len() - kept) as u64;
        for frame in stack.frames.drain(..) {
            self.ledger.add_net(frame.function, frame.net - frame.credited);
            self.troubles.cut_calls += u64::from(!frame.cut);
        }
        stack.interrupts = 0;
        for &(function, how) in said {
            stack.interrupts += u32::from(how == How::Interrupt);
            stack.frames.push(Frame { function, how, cut: true, net: 0, callees: 0, credited: 0 });
        }
    }

    #[inline]
    fn event(&mut self, delta: u64, event: Event) -> Result<(), Error> {
        self.advance(delta)?;
        match event {
            Event::Enter { function, how } => self.enter(function, how),
            Event::Exit => {
                self.exit();
                Ok(())
            }
            rest => self.rare(rest),
        }
    }

    /// So much time has passed with everything as it is.
    #[inline]
    fn advance(&mut self, delta: u64) -> Result<(), Error> {
        self.busy = self.busy.saturating_add(delta);
        if self.busy >= TIME_LIMIT {
            return Err(Error::Time { chunk: self.chunk });
        }
        match self.stack.frames.last_mut() {
            Some(top) => top.net += delta,
            None => self.advance_without_frames(delta),
        }
        Ok(())
    }

    fn advance_without_frames(&mut self, delta: u64) {
        if self.user && !self.threads.get(self.running).is_some_and(self.known.idle) {
            self.ledger.threads[self.running].user += delta;
        } else {
            self.ledger.unattributed += delta;
        }
    }

    #[inline]
    fn enter(&mut self, function: u32, how: How) -> Result<(), Error> {
        if function as usize > self.known.functions {
            self.check("function", function, self.known.functions)?;
        }
        if self.stack.frames.len() >= DEPTH_LIMIT {
            return Err(Error::Depth { chunk: self.chunk, limit: DEPTH_LIMIT });
        }
        if how == How::Interrupt {
            self.charge_thread();
            self.stack.interrupts += 1;
        }
        self.user = false;
        self.stack.frames.push(Frame { function, how, cut: false, net: 0, callees: 0, credited: 0 });
        Ok(())
    }

    /// The top frame and the jumps below it end, see [`Event::Exit`].
    #[inline]
    fn exit(&mut self) {
        if self.stack.frames.is_empty() {
            self.troubles.unmatched_exits += 1;
        }
        while let Some(how) = self.end_top() {
            if how != How::Jump {
                break;
            }
        }
    }

    /// Ends the top frame; returns how it was entered.
    #[inline]
    fn end_top(&mut self) -> Option<How> {
        let frame = self.stack.frames.pop()?;
        let elapsed = frame.net + frame.callees;
        let mut caller = NO_CALLER;
        if frame.how == How::Interrupt {
            // The frame is gone, but its time is the interrupt's.
            self.charge_thread();
            self.stack.interrupts -= 1;
        } else if let Some(below) = self.stack.frames.last_mut() {
            below.callees += elapsed;
            caller = below.function;
        }
        let uncredited = frame.net - frame.credited;
        if frame.cut || self.open.is_empty() {
            self.ledger.add_net(frame.function, uncredited);
        } else {
            let arc = ArcKey::new(caller, frame.function, frame.how);
            self.ledger.add_call(frame.function, arc, uncredited, frame.net, elapsed);
        }
        Some(frame.how)
    }

    fn rare(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Resume => {
                let is_entry = |frame: &Frame| matches!(frame.how, How::Interrupt | How::Exception);
                match self.stack.frames.iter().rposition(is_entry) {
                    Some(at) => self.end_down_to(at),
                    None => self.troubles.unmatched_exits += 1,
                }
            }
            Event::Leave => {
                self.end_down_to(0);
                self.user = true;
            }
            Event::Unwind { frames } => match self.stack.frames.len().checked_sub(frames as usize) {
                Some(left) => self.end_down_to(left),
                None => {
                    self.troubles.unmatched_exits += 1;
                    self.end_down_to(0);
                }
            },
            Event::Switch { thread } => {
                let thread = self.check("thread", thread, self.known.threads)?;
                self.charge_thread();
                self.park();
                self.running = thread;
                self.stack = std::mem::take(&mut self.parked[thread]);
                // Only the kernel switches.
                self.user = false;
                self.ledger.threads[thread].switches_in += 1;
            }
            Event::Idle { ns } => {
                self.idle = self.idle.saturating_add(ns);
                if self.idle >= TIME_LIMIT {
                    return Err(Error::Time { chunk: self.chunk });
                }
            }
            Event::RegionBegin { region } => self.begin_region(region)?,
            Event::RegionEnd { region } => self.end_region(region)?,
            // The recording has counted operations; the others do not come here.
            Event::Operation | Event::Point { .. } | Event::Enter { .. } | Event::Exit => {}
        }
        Ok(())
    }

    fn end_down_to(&mut self, length: usize) {
        while self.stack.frames.len() > length {
            self.end_top();
        }
    }

    fn begin_region(&mut self, region: u32) -> Result<(), Error> {
        self.check("region", region, self.known.regions)?;
        if self.open.iter().any(|open| open.region == region) {
            self.troubles.region_mismatches += 1;
            return Ok(());
        }
        self.close_ledger();
        self.open.push(OpenRegion { region, since: Some((self.busy, self.idle)) });
        Ok(())
    }

    fn end_region(&mut self, region: u32) -> Result<(), Error> {
        let index = self.check("region", region, self.known.regions)?;
        let Some(place) = self.open.iter().rposition(|open| open.region == region) else {
            self.troubles.region_mismatches += 1;
            return Ok(());
        };
        self.close_ledger();
        let open = self.open.remove(place);
        self.measured[index] = self.measure(open, true);
        Ok(())
    }

    fn measure(&self, open: OpenRegion, ended: bool) -> Measured {
        let (busy, idle) = open.since.unwrap_or_default();
        Measured { busy: self.busy - busy, idle: self.idle - idle, whole: ended && open.since.is_some() }
    }

    /// Gives the running thread, or the interrupts, the time since this was last done. To be
    /// called before either changes.
    fn charge_thread(&mut self) {
        let thread = if self.stack.interrupts > 0 { self.known.interrupt() } else { self.running };
        self.ledger.threads[thread].net += self.busy - self.charged;
        self.charged = self.busy;
    }

    fn park(&mut self) {
        self.parked[self.running] = std::mem::take(&mut self.stack);
    }

    /// The innermost region is about to change: its time goes to its books.
    fn close_ledger(&mut self) {
        self.charge_thread();
        for stack in self.parked.iter_mut().chain([&mut self.stack]) {
            for frame in &mut stack.frames {
                self.ledger.add_net(frame.function, frame.net - frame.credited);
                frame.credited = frame.net;
            }
        }
        let region = self.open.last().map(|open| open.region);
        if region.is_none() {
            self.troubles.outside_ns += self.busy - self.closed;
        }
        self.closed = self.busy;
        self.ledger.close(region, &mut self.books);
    }

    /// The trace is over.
    pub fn finish(mut self) -> Closing {
        self.close_ledger();
        for open in std::mem::take(&mut self.open) {
            self.measured[open.region as usize] = self.measure(open, false);
        }
        let all = self.parked.iter().chain([&self.stack]);
        self.troubles.cut_calls += all.flat_map(|s| &s.frames).filter(|frame| !frame.cut).count() as u64;
        let Self { books, ledger, measured, troubles, .. } = self;
        Closing { books, histograms: ledger.into_histograms(), measured, troubles }
    }

    fn check(&self, what: &'static str, number: u32, known: usize) -> Result<usize, Error> {
        match number as usize {
            index if index < known => Ok(index),
            _ => Err(Error::Unknown { chunk: self.chunk, what, number, known }),
        }
    }
}
