//! What a profile makes of the events: who has run for how long in which function.
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
use crate::accumulators::{Accumulators, Idle, ThreadAccount};
use crate::events::{Frame, Machine, Opening, Visitor};
use crate::known::Known;
use crate::record::{Ended, Record};
use crate::several::{waker_name, Several};
use crate::tree::{self, Place};
use kerntune_trace::{Event, How, Weights};

mod flush;

/// What is kept of an open call. Its times are those in this chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    /// It was open where the chunk begins.
    pub carried: bool,
    /// It was open when its time went to the accumulators: that it was made is counted.
    pub counted: bool,
    /// Where it is counted, as long as [`Thread::region`] is the current one.
    pub place: Place,
    /// Net time that is in no account yet.
    pub net: u64,
    /// Net time that is.
    pub credited: u64,
    /// Elapsed time of callees that ended.
    pub callees: u64,
    /// Virtual time at which it began; of no meaning if it was carried.
    pub begin: u64,
}

impl Open {
    pub const fn new(place: Place, begin: u64) -> Self {
        Self { carried: false, counted: false, place, net: 0, credited: 0, callees: 0, begin }
    }
}

impl Default for Open {
    fn default() -> Self {
        Self { carried: true, counted: true, ..Self::new(Place::NOWHERE, 0) }
    }
}

/// Stands for no region: [`Open::place`] is of no meaning.
const NOWHERE: u32 = u32::MAX;

/// Time of a thread with no frame open.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bare {
    pub ns: u64,
    weights: Weights,
}

/// What is not yet in the accumulators of a thread: see [`Functions::flush`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pending {
    pub account: ThreadAccount,
    pub user: Bare,
    pub unattributed: Bare,
}

/// A thread in this chunk.
#[derive(Debug)]
struct Thread {
    /// The region in whose tree [`Open::place`] of its frames and `root` are.
    region: u32,
    root: u32,
    /// Whether it ran.
    ran: bool,
    /// The carried frames that ended, in order.
    ended: Vec<Ended>,
}

/// A region that is open, and what the clocks showed when it began.
#[derive(Debug, Clone, Copy)]
struct OpenRegion {
    region: u32,
    busy: u64,
    idle: u64,
    began: bool,
}

/// Counts chunk after chunk, in any order.
pub(crate) struct Functions<'a> {
    pub known: &'a Known,
    pub sums: Accumulators,
    threads: Vec<Thread>,
    /// The threads that ran in this chunk.
    ran: Vec<u32>,
    pub pending: Vec<Pending>,
    points: Vec<u64>,
    open: Vec<OpenRegion>,
    /// The innermost region.
    region: u32,
    interrupt_root: u32,
    /// Where the chunk began.
    start: u64,
    /// Busy time that threads' accounts have, and that regions' accounts have.
    charged: u64,
    closed: u64,
    /// The same of a CPU's account, of several.
    pub charged_cpu: u64,
    record: Record,
}

impl<'a> Functions<'a> {
    pub fn new(known: &'a Known) -> Self {
        let threads = known.bounds.threads + 2;
        let thread = || Thread { region: NOWHERE, root: 0, ran: false, ended: Vec::new() };
        Self {
            known,
            sums: Accumulators::new(known.bounds.regions, known.wide),
            threads: (0..threads).map(|_| thread()).collect(),
            ran: Vec::new(),
            pending: vec![Pending::default(); threads],
            points: vec![0; known.bounds.points],
            open: Vec::new(),
            region: known.outside(),
            interrupt_root: 0,
            start: 0,
            charged: 0,
            closed: 0,
            charged_cpu: 0,
            record: Record::default(),
        }
    }

    /// The running thread is another one, or the region is.
    fn arrive(&mut self, machine: &mut Machine<Open>) {
        let running = machine.running;
        let thread = &mut self.threads[running];
        if !thread.ran {
            thread.ran = true;
            self.ran.push(running as u32);
        }
        if thread.region != self.region {
            thread.region = self.region;
            thread.root = self.sums.tree.root(self.region, self.known.root_of[running]);
            let frames = machine.stack.frames.iter_mut();
            let frames = frames.map(|frame| (frame.function, frame.how, &mut frame.data.place));
            places(frames, &mut self.sums, self.known, thread.root, self.region);
        }
    }

    fn enter_region(&mut self) {
        self.region = self.open.last().map_or(self.known.outside(), |open| open.region);
        self.interrupt_root = self.sums.tree.root(self.region, self.known.interrupt_root);
    }

    /// The tree's node of the running thread while nothing is open on its stack.
    pub fn root(&self, machine: &Machine<Open>) -> u32 {
        self.threads[machine.running].root
    }

    /// Whose time it is that passes with an empty stack.
    fn bare(&mut self, machine: &Machine<Open>) -> &mut Bare {
        let pending = &mut self.pending[machine.running];
        if machine.user && !self.known.idle[machine.running] {
            &mut pending.user
        } else {
            &mut pending.unattributed
        }
    }

    /// An interrupt begins.
    #[cold]
    fn interrupt(&mut self, machine: &Machine<Open>, function: u32) {
        self.charge_thread(machine);
        if self.known.has_several_cpus() {
            let cpu = machine.cpu as u32;
            let Several { cpus, interrupts, .. } = &mut self.sums.several;
            cpus.entry((self.region, cpu)).or_default().interrupts += 1;
            *interrupts.entry((self.region, cpu, function)).or_default() += 1;
        }
        self.record.idles.settle(function, &mut self.sums);
        self.record.first_interrupt.get_or_insert(function);
    }

    /// Ends a frame that was open when its time went to the accumulators, with the net time since then.
    // Given in numbers: a frame that may be looked at in memory is copied there for every call.
    #[inline(never)]
    fn end_interrupted(
        &mut self,
        account: u32,
        since: u64,
        carried_by: Option<usize>,
        callees: u64,
        call: Call,
    ) {
        let interrupted = self.sums.accounts.interrupted(account);
        interrupted.net = interrupted.net.wrapping_add(since);
        match carried_by {
            Some(thread) => {
                self.threads[thread].ended.push(Ended { region: self.region, net: call.net, callees });
            }
            None => self.sums.accounts.end_interrupted(account, call),
        }
    }
}

impl Visitor for Functions<'_> {
    type Frame = Open;

    fn begin(&mut self, machine: &mut Machine<Open>, opening: &Opening<'_>) {
        self.sums.tree.settle();
        self.record = Record::default();
        (self.start, self.charged, self.closed, self.charged_cpu) = (opening.begin, 0, 0, 0);
        for thread in &mut self.threads {
            (thread.region, thread.ran) = (NOWHERE, false);
            thread.ended.clear();
        }
        self.ran.clear();
        machine.take(opening);
        let open = |&region: &u32| OpenRegion { region, busy: 0, idle: 0, began: false };
        self.open = opening.regions.iter().map(open).collect();
        self.enter_region();
        self.arrive(machine);
    }

    #[inline]
    fn pass(&mut self, machine: &mut Machine<Open>, ns: u64, weights: Weights, _: &Event) {
        match machine.stack.frames.last_mut() {
            Some(top) => {
                top.data.net += ns;
                if self.known.wide {
                    self.sums.tree.add_weights(top.data.place.node, weights);
                }
            }
            None => {
                let bare = self.bare(machine);
                bare.ns += ns;
                tree::add(&mut bare.weights, weights);
            }
        }
    }

    /// The recorder may learn of it only in the interrupt that ended it.
    fn idle(&mut self, machine: &mut Machine<Open>, ns: u64) {
        let by_interrupt = |frame: &&Frame<Open>| frame.how == How::Interrupt;
        match machine.stack.frames.iter().rev().find(by_interrupt) {
            _ if ns == 0 => {}
            Some(frame) => self.sums.add_idle(self.region, frame.function, Idle::one(ns)),
            None => self.record.idles.add(self.region, Idle::one(ns)),
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut Machine<Open>, function: u32, how: How) -> Open {
        let (node, caller) = match machine.stack.frames.last() {
            _ if how == How::Interrupt => {
                self.interrupt(machine, function);
                (self.interrupt_root, NO_CALLER)
            }
            Some(top) => (top.data.place.node, top.function),
            None => (self.root(machine), NO_CALLER),
        };
        let place = self.sums.tree.enter(&mut self.sums.accounts, node, caller, function, how);
        Open::new(place, machine.now)
    }

    #[inline]
    fn ended(&mut self, machine: &mut Machine<Open>, frame: Frame<Open>) {
        let open = frame.data;
        let net = open.credited + open.net;
        let elapsed = net + open.callees;
        if frame.how == How::Interrupt {
            // The frame is gone, but its time is the interrupt's.
            self.charge_thread(machine);
        } else if let Some(below) = machine.stack.frames.last_mut() {
            below.data.callees += elapsed;
        }
        let node = &mut self.sums.tree.nodes[open.place.node as usize];
        node.net = node.net.wrapping_add(open.net);
        let call = Call { net, elapsed, begin: open.begin };
        if !open.counted {
            node.calls += u64::from(!open.place.folded);
            self.sums.accounts.count(open.place.account, call);
        } else {
            let carried_by = open.carried.then_some(machine.running);
            self.end_interrupted(open.place.account, open.net, carried_by, open.callees, call);
        }
        if machine.bounds.is_user(frame.function) {
            self.pending[machine.running].account.user += open.net;
        }
    }

    fn switch(&mut self, machine: &mut Machine<Open>, to: usize) {
        let frames = machine.stack.frames.iter().rev().map(|frame| (frame.function, frame.how));
        let (reason, kind) = self.known.scheduler.why(frames);
        let (from, to) = (self.known.comm_of[machine.running], self.known.comm_of[to]);
        self.sums.count_switch(self.region, from, to, reason, kind);
        if self.known.has_several_cpus() {
            let key = (self.region, machine.cpu as u32);
            self.sums.several.cpus.entry(key).or_default().switches += 1;
        }
        self.charge_thread(machine);
    }

    fn turn(&mut self, machine: &mut Machine<Open>, _: usize) {
        self.charge_thread(machine);
        self.charge_cpu(machine);
    }

    fn turned(&mut self, machine: &mut Machine<Open>) {
        self.arrive(machine);
    }

    fn between(&mut self, machine: &mut Machine<Open>, event: &Event) {
        let Self { known, sums, region, .. } = self;
        let frames = || machine.stack.frames.iter().rev().map(|frame| frame.function);
        match *event {
            Event::Delay { waker, ns } => {
                let waker = waker_name(waker, &known.comm_of);
                sums.several.delay(*region, known.comm_of[machine.running], waker, ns);
            }
            Event::Migrate { thread, from, to } => {
                let reason = frames().nth(1).unwrap_or(NO_CALLER);
                let key = (*region, known.comm_of[thread as usize], from, to, reason);
                *sums.several.migrations.entry(key).or_default() += 1;
            }
            Event::Signal { cpu } => {
                let (function, reason) =
                    (frames().next().unwrap_or(NO_CALLER), known.servants.master(frames()));
                let key = (*region, machine.cpu as u32, cpu, function, reason);
                *sums.several.signals.entry(key).or_default() += 1;
            }
            Event::Lock { function, address, ns } => {
                sums.several.lock((*region, function, address, known.servants.master(frames())), ns);
            }
            _ => {}
        }
    }

    fn switched(&mut self, machine: &mut Machine<Open>) {
        self.arrive(machine);
        self.pending[machine.running].account.switches_in += 1;
    }

    fn region_begun(&mut self, machine: &mut Machine<Open>, region: u32) {
        self.flush(machine);
        let (busy, idle) = (self.busy(machine), machine.idle);
        self.open.push(OpenRegion { region, busy, idle, began: true });
        self.enter_region();
        self.arrive(machine);
    }

    fn region_ended(&mut self, machine: &mut Machine<Open>, region: u32) {
        self.flush(machine);
        if let Some(place) = self.open.iter().rposition(|open| open.region == region) {
            let part = self.measure(machine, self.open[place], true);
            self.open.remove(place);
            self.record.regions.push(part);
        }
        self.enter_region();
        self.arrive(machine);
    }

    fn point(&mut self, _: &mut Machine<Open>, point: u32) {
        self.points[point as usize] += 1;
    }

    fn unmatched_exit(&mut self) {
        self.record.unmatched_exits += 1;
    }

    fn unmatched_region(&mut self) {
        self.record.region_mismatches += 1;
    }
}

/// Finds the places of frames, given from the outermost, below a root.
pub(crate) fn places<'a>(
    frames: impl Iterator<Item = (u32, How, &'a mut Place)>,
    sums: &mut Accumulators,
    known: &Known,
    root: u32,
    region: u32,
) {
    let (mut node, mut caller) = (root, NO_CALLER);
    for (function, how, place) in frames {
        if how == How::Interrupt {
            (node, caller) = (sums.tree.root(region, known.interrupt_root), NO_CALLER);
        }
        *place = sums.tree.enter(&mut sums.accounts, node, caller, function, how);
        (node, caller) = (place.node, function);
    }
}
