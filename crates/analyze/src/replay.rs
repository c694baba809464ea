//! Replaying the events of one chunk: who has run for how long in which function.
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
//! Of each interval, exactly one of these gets all: the function on top, of the kernel or of user
//! code; user time, if the stack is empty since the thread went back to user code; unattributed time,
//! if it is empty otherwise. And exactly one thread: the running one, or the pseudo-thread of all
//! interrupts if an interrupt's frame is open. And exactly one path: the top frame's, or that of user or
//! unattributed time below the thread's root. Idle time is no interval: it belongs to the region alone.
//!
//! # Chunks
//!
//! A chunk says what is open where it begins, so that it is replayed without those before it.
//! Net times are whole as they are; so are the calls that both begin and end in it. Frames that were
//! open at its beginning are *carried*: what the chunk adds to them, and in which order they end,
//! goes into its [`Record`], from which [`crate::stitch`] makes them whole.

use crate::accounts::{Call, NO_CALLER};
use crate::books::{Books, Idle, ThreadAccount};
use crate::known::Known;
use crate::record::Record;
use crate::stack::{Ended, Frame, Stack};
use crate::tree;
use crate::{Chunk, Error};
use kerntune_trace::{ChunkState, Decoder, Event, How, Weights};

mod flush;

/// More frames than any stack has room for return addresses.
pub(crate) const DEPTH_LIMIT: usize = 1 << 16;
/// More time than this is no time.
pub(crate) const TIME_LIMIT: u64 = 1 << 63;

/// Time of a thread with no frame open.
#[derive(Debug, Clone, Copy, Default)]
struct Bare {
    ns: u64,
    weights: Weights,
}

/// What is not yet in the books of a thread: see [`Replay::flush`].
#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    account: ThreadAccount,
    user: Bare,
    unattributed: Bare,
}

/// A region that is open, and what the clocks showed when it began.
#[derive(Debug, Clone, Copy)]
struct OpenRegion {
    region: u32,
    busy: u64,
    idle: u64,
    began: bool,
}

/// Replays chunk after chunk, in any order.
pub(crate) struct Replay<'a> {
    known: &'a Known,
    pub books: Books,
    /// The running thread's stack; its place among the `parked` is empty.
    stack: Stack,
    running: usize,
    parked: Vec<Stack>,
    /// The threads that ran in this chunk.
    ran: Vec<u32>,
    pending: Vec<Pending>,
    points: Vec<u64>,
    /// The CPU is in user mode, or would be if the stack were empty.
    user: bool,
    open: Vec<OpenRegion>,
    /// The innermost region.
    region: u32,
    interrupt_root: u32,
    /// Virtual time: now, where the chunk began, and how much of it the CPU was halted.
    now: u64,
    start: u64,
    idle: u64,
    /// Busy time that threads' accounts have, and that regions' accounts have.
    charged: u64,
    closed: u64,
    /// The chunk's number, for messages.
    number: usize,
    record: Record,
}

impl<'a> Replay<'a> {
    pub fn new(known: &'a Known) -> Self {
        let threads = known.threads + 2;
        Self {
            known,
            books: Books::new(known.regions, known.wide),
            stack: Stack::new(),
            running: known.nobody(),
            parked: (0..threads).map(|_| Stack::new()).collect(),
            ran: Vec::new(),
            pending: vec![Pending::default(); threads],
            points: vec![0; known.points],
            user: true,
            open: Vec::new(),
            region: known.outside(),
            interrupt_root: 0,
            now: 0,
            start: 0,
            idle: 0,
            charged: 0,
            closed: 0,
            number: 0,
            record: Record::default(),
        }
    }

    /// Replays one chunk. After an error the books are of no use.
    pub fn chunk(&mut self, chunk: Chunk<'_>) -> Result<Record, Error> {
        self.number = chunk.number;
        self.begin(&chunk.state, chunk.header.begin)?;
        let decoder = chunk.decoder();
        let events = if chunk.wide { self.events::<true>(decoder)? } else { self.events::<false>(decoder)? };
        if events != u64::from(chunk.header.events) {
            let expected = chunk.header.events.into();
            return Err(Error::Contents { chunk: self.number, what: "events", found: events, expected });
        }
        Ok(self.end(chunk.header.begin, events, chunk.state))
    }

    /// Everything is as the chunk says.
    fn begin(&mut self, state: &ChunkState, begin: u64) -> Result<(), Error> {
        if begin >= TIME_LIMIT {
            return Err(Error::Time { chunk: self.number });
        }
        self.books.tree.settle();
        self.record = Record::default();
        (self.now, self.start, self.idle, self.charged, self.closed) = (begin, begin, 0, 0, 0);
        self.parked.iter_mut().for_each(|stack| stack.reset(&[]));
        self.ran.clear();
        self.running = self.known.nobody();
        for stack in &state.stacks {
            let thread = self.check("thread", stack.thread, self.known.threads)?;
            for (function, _) in &stack.frames {
                self.check("function", *function, self.known.functions + 1)?;
            }
            if stack.frames.len() > DEPTH_LIMIT {
                return Err(Error::Depth { chunk: self.number, limit: DEPTH_LIMIT });
            }
            self.parked[thread].reset(&stack.frames);
            if stack.running {
                self.running = thread;
            }
        }
        self.open.clear();
        for &region in &state.regions {
            self.check("region", region, self.known.regions)?;
            self.open.push(OpenRegion { region, busy: 0, idle: 0, began: false });
        }
        self.user = state.user;
        self.enter_region();
        self.stack = std::mem::replace(&mut self.parked[self.running], Stack::new());
        self.arrive();
        Ok(())
    }

    /// The running thread is another one, or the region is.
    fn arrive(&mut self) {
        if !self.stack.ran {
            self.stack.ran = true;
            self.ran.push(self.running as u32);
        }
        if self.stack.region != self.region {
            self.stack.resolve(&mut self.books, self.known, self.running, self.region);
        }
    }

    fn enter_region(&mut self) {
        self.region = self.open.last().map_or(self.known.outside(), |open| open.region);
        self.interrupt_root = self.books.tree.root(self.region, self.known.interrupt_root);
    }

    fn events<const WIDE: bool>(&mut self, mut decoder: Decoder<'_>) -> Result<u64, Error> {
        let mut events = 0u64;
        loop {
            let (delta, event) = match decoder.next() {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(events),
                Err(source) => return Err(Error::Format { chunk: self.number, source }),
            };
            if WIDE {
                self.weigh(decoder.weights());
            }
            self.advance(delta)?;
            match event {
                Event::Enter { function, how } => self.enter(function, how)?,
                Event::Exit => self.exit(),
                rest => self.rare(rest)?,
            }
            events += 1;
        }
    }

    /// So much time has passed with everything as it is.
    #[inline]
    fn advance(&mut self, delta: u64) -> Result<(), Error> {
        // Neither can be near 2^64.
        self.now += delta;
        if self.now >= TIME_LIMIT {
            return Err(Error::Time { chunk: self.number });
        }
        match self.stack.frames.last_mut() {
            Some(top) => top.net += delta,
            None => self.bare().ns += delta,
        }
        Ok(())
    }

    #[inline]
    fn weigh(&mut self, weights: Weights) {
        match self.stack.frames.last() {
            Some(top) => self.books.tree.add_weights(top.place.node, weights),
            None => tree::add(&mut self.bare().weights, weights),
        }
    }

    /// Whose time it is that passes with an empty stack.
    fn bare(&mut self) -> &mut Bare {
        let pending = &mut self.pending[self.running];
        if self.user && !self.known.idle[self.running] {
            &mut pending.user
        } else {
            &mut pending.unattributed
        }
    }

    #[inline]
    fn enter(&mut self, function: u32, how: How) -> Result<(), Error> {
        if function as usize > self.known.functions {
            self.check("function", function, self.known.functions)?;
        }
        if self.stack.frames.len() >= DEPTH_LIMIT {
            return Err(Error::Depth { chunk: self.number, limit: DEPTH_LIMIT });
        }
        let (node, caller) = match self.stack.frames.last() {
            _ if how == How::Interrupt => {
                self.interrupt(function);
                (self.interrupt_root, NO_CALLER)
            }
            Some(top) => (top.place.node, top.function),
            None => (self.stack.root, NO_CALLER),
        };
        self.user = self.known.is_user(function);
        let place = self.books.tree.enter(&mut self.books.accounts, node, caller, function, how);
        self.stack.frames.push(Frame::new(function, how, place, self.now));
        Ok(())
    }

    /// An interrupt begins.
    #[cold]
    fn interrupt(&mut self, function: u32) {
        self.charge_thread();
        self.stack.interrupts += 1;
        self.record.idles.settle(function, &mut self.books);
        self.record.first_interrupt.get_or_insert(function);
    }

    /// The top frame and the jumps below it end, see [`Event::Exit`].
    #[inline]
    fn exit(&mut self) {
        if self.stack.frames.is_empty() {
            self.record.unmatched_exits += 1;
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
        let net = frame.credited + frame.net;
        let elapsed = net + frame.callees;
        if frame.how == How::Interrupt {
            // The frame is gone, but its time is the interrupt's.
            self.charge_thread();
            self.stack.interrupts -= 1;
        } else if let Some(below) = self.stack.frames.last_mut() {
            below.callees += elapsed;
        }
        let node = &mut self.books.tree.nodes[frame.place.node as usize];
        node.net = node.net.wrapping_add(frame.net);
        let call = Call { net, elapsed, begin: frame.begin };
        if !frame.counted {
            node.calls += u64::from(!frame.place.folded);
            self.books.accounts.count(frame.place.account, call);
        } else {
            self.end_interrupted(&frame, call);
        }
        if self.known.is_user(frame.function) {
            self.pending[self.running].account.user += frame.net;
        }
        Some(frame.how)
    }

    /// Ends a frame that was open when its time went to the books.
    #[inline(never)]
    fn end_interrupted(&mut self, frame: &Frame, call: Call) {
        let interrupted = self.books.accounts.interrupted(frame.place.account);
        interrupted.net = interrupted.net.wrapping_add(frame.net);
        if frame.carried {
            self.stack.ended.push(Ended { region: self.region, net: call.net, callees: frame.callees });
        } else {
            self.books.accounts.end_interrupted(frame.place.account, call);
        }
    }

    #[inline(never)]
    fn rare(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Resume => {
                let is_entry = |frame: &Frame| matches!(frame.how, How::Interrupt | How::Exception);
                match self.stack.frames.iter().rposition(is_entry) {
                    Some(at) => self.end_down_to(at),
                    None => self.record.unmatched_exits += 1,
                }
            }
            Event::Leave => {
                let user = self.stack.frames.iter().rposition(|frame| self.known.is_user(frame.function));
                self.end_down_to(user.map_or(0, |at| at + 1));
                self.user = true;
            }
            Event::Unwind { frames } => match self.stack.frames.len().checked_sub(frames as usize) {
                Some(left) => self.end_down_to(left),
                None => {
                    self.record.unmatched_exits += 1;
                    self.end_down_to(0);
                }
            },
            Event::Switch { thread } => self.switch(thread)?,
            Event::Idle { ns } => self.halted(ns)?,
            Event::RegionBegin { region } => self.begin_region(region)?,
            Event::RegionEnd { region } => self.end_region(region)?,
            Event::Point { point } => {
                let point = self.check("point", point, self.known.points)?;
                self.points[point] += 1;
            }
            // The recording has counted operations; the others do not come here.
            Event::Operation | Event::Enter { .. } | Event::Exit => {}
        }
        Ok(())
    }

    fn end_down_to(&mut self, length: usize) {
        while self.stack.frames.len() > length {
            self.end_top();
        }
    }

    fn switch(&mut self, thread: u32) -> Result<(), Error> {
        let known = self.known;
        let thread = self.check("thread", thread, known.threads)?;
        let frames = self.stack.frames.iter().rev().map(|frame| (frame.function, frame.how));
        let (reason, kind) = known.scheduler.why(frames);
        let (from, to) = (known.comm_of[self.running], known.comm_of[thread]);
        self.books.count_switch(self.region, from, to, reason, kind);
        self.charge_thread();
        self.park();
        self.running = thread;
        self.stack = std::mem::replace(&mut self.parked[thread], Stack::new());
        self.arrive();
        // Only the kernel switches.
        self.user = false;
        self.pending[thread].account.switches_in += 1;
        Ok(())
    }

    /// The CPU was halted. The recorder may learn of it only in the interrupt that ended it.
    fn halted(&mut self, ns: u64) -> Result<(), Error> {
        self.now = self.now.saturating_add(ns);
        if self.now >= TIME_LIMIT {
            return Err(Error::Time { chunk: self.number });
        }
        self.idle += ns;
        let by_interrupt = |frame: &&Frame| frame.how == How::Interrupt;
        match self.stack.frames.iter().rev().find(by_interrupt) {
            _ if ns == 0 => {}
            Some(frame) => self.books.add_idle(self.region, frame.function, Idle::one(ns)),
            None => self.record.idles.add(self.region, Idle::one(ns)),
        }
        Ok(())
    }

    fn check(&self, what: &'static str, number: u32, known: usize) -> Result<usize, Error> {
        match number as usize {
            index if index < known => Ok(index),
            _ => Err(Error::Unknown { chunk: self.number, what, number, known }),
        }
    }
}
