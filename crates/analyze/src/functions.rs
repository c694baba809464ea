//! Attribution of time to functions, threads and call paths.
//!
//! # Clocks
//!
//! Definition: a thread's stack is cut into segments; each frame that an interrupt entered begins a
//! new one. Every segment has a clock, which advances while its thread runs, the CPU is not halted
//! and no other segment lies above it. The total time of a frame is the difference of its segment's
//! clock between exit and entry; its self time is the total time less the total times of its
//! callees. So an interrupt costs nothing to what it interrupted, and a nested interrupt nothing to
//! the outer one. The clock of a thread that is switched away stops, even inside an interrupt frame
//! (the kernel reschedules on the way out of an interrupt). An exception (page fault) is caused by
//! its segment's own code, and is a callee like others.
//!
//! The implementation needs no clocks: every interval between two events is self time of the
//! running thread's top frame, and a frame that ends passes its total time on to the frame below,
//! unless an interrupt entered it. This is the same sum in another order; the tests compare it with
//! an implementation that has clocks.
//!
//! # Attribution
//!
//! Each interval counts once in each of three ways:
//!
//! - for a function: the one on top of the stack, of the kernel or of user code; if the stack is
//!   empty, as user time if the thread has returned to user mode, else as unattributed time;
//! - for a thread: the running one, or the pseudo-thread of all interrupts if an interrupt's frame
//!   is open;
//! - for a path: the top frame's, or the path of user or unattributed time below the thread's root.
//!
//! Idle time is not part of an interval: it counts for the region alone.
//!
//! # Chunks
//!
//! A chunk declares what is open at its beginning, so that it can be replayed without the chunks
//! before it. Self times of one chunk are final, and so are calls that both begin and end in it.
//! Frames that were open at its beginning are *inherited*: the chunk's additions to them, and the
//! order in which they end, go into its [`ChunkRecord`], from which [`crate::stitch`] completes
//! them.

use crate::accounts::{EndedCall, NO_CALLER};
use crate::accumulators::{Accumulators, IdlePeriods, ThreadAccount};
use crate::events::{credit_caller, CallTimes, ChunkOpening, EventVisitor, ReplayState, StackFrame};
use crate::known::TraceContext;
use crate::multi_cpu::{waker_name, MultiCpuCounts};
use crate::record::{ChunkRecord, EndedFrame};
use crate::tree::{self, CallLocation};
use kerntune_trace::{EnterKind, Event, EventWeights};

mod flush;

/// Times of an open call within the current chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameTimes {
    /// True if the call was open where the chunk begins.
    pub inherited: bool,
    /// True if a flush has counted the call as made.
    pub counted: bool,
    /// Account and tree node of the call, valid while [`ChunkThread::region`] is the current
    /// region.
    pub place: CallLocation,
    pub times: CallTimes,
    /// Self time that is in an account already.
    pub credited: u64,
    /// Virtual time of the entry; meaningless for an inherited frame.
    pub begin: u64,
}

impl FrameTimes {
    pub const fn new(place: CallLocation, begin: u64) -> Self {
        let times = CallTimes { self_ticks: 0, callees: 0 };
        Self { inherited: false, counted: false, place, times, credited: 0, begin }
    }
}

impl AsMut<CallTimes> for FrameTimes {
    #[inline]
    fn as_mut(&mut self) -> &mut CallTimes {
        &mut self.times
    }
}

impl Default for FrameTimes {
    fn default() -> Self {
        Self { inherited: true, counted: true, ..Self::new(CallLocation::NOWHERE, 0) }
    }
}

/// No region: [`FrameTimes::place`] is not valid.
const NOWHERE: u32 = u32::MAX;

/// Time of a thread while no frame is open.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EmptyStackTime {
    pub ns: u64,
    weights: EventWeights,
}

/// A thread's times that are not in the accumulators yet, see [`FunctionCollector::flush`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnflushedTimes {
    pub account: ThreadAccount,
    pub user: EmptyStackTime,
    pub unattributed: EmptyStackTime,
}

/// State of a thread in the current chunk.
#[derive(Debug)]
struct ChunkThread {
    /// The region to whose tree `root` and the [`FrameTimes::place`] of the thread's frames belong.
    region: u32,
    root: u32,
    ran: bool,
    /// Inherited frames that ended, in the order of their ends.
    ended: Vec<EndedFrame>,
}

/// An open region, with busy and idle time since the chunk's beginning at the region's begin.
#[derive(Debug, Clone, Copy)]
struct OpenRegion {
    region: u32,
    busy: u64,
    idle: u64,
    began: bool,
}

/// Visitor that counts functions, arcs, threads and paths. Chunks may come in any order.
pub(crate) struct FunctionCollector<'a> {
    pub known: &'a TraceContext,
    pub sums: Accumulators,
    threads: Vec<ChunkThread>,
    /// Threads that ran in the current chunk.
    ran: Vec<u32>,
    pub pending: Vec<UnflushedTimes>,
    points: Vec<u64>,
    open: Vec<OpenRegion>,
    /// The innermost region.
    region: u32,
    interrupt_root: u32,
    /// Virtual time at which the chunk began.
    start: u64,
    /// Busy time since the chunk's beginning that is in threads' accounts, and that is in regions'
    /// accounts.
    charged: u64,
    closed: u64,
    /// Busy time that is in the accounts of CPUs; used with several CPUs only.
    pub charged_cpu: u64,
    record: ChunkRecord,
}

impl<'a> FunctionCollector<'a> {
    pub fn new(known: &'a TraceContext) -> Self {
        let threads = known.bounds.threads + 2;
        let thread = || ChunkThread { region: NOWHERE, root: 0, ran: false, ended: Vec::new() };
        Self {
            known,
            sums: Accumulators::new(known.bounds.regions, known.wide),
            threads: (0..threads).map(|_| thread()).collect(),
            ran: Vec::new(),
            pending: vec![UnflushedTimes::default(); threads],
            points: vec![0; known.bounds.points],
            open: Vec::new(),
            region: known.outside(),
            interrupt_root: 0,
            start: 0,
            charged: 0,
            closed: 0,
            charged_cpu: 0,
            record: ChunkRecord::default(),
        }
    }

    /// Prepares the running thread's places after a change of thread or region.
    fn arrive(&mut self, machine: &mut ReplayState<FrameTimes>) {
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

    /// Returns the tree node of the running thread while no frame is open.
    pub fn root(&self, machine: &ReplayState<FrameTimes>) -> u32 {
        self.threads[machine.running].root
    }

    /// Returns the counter for time that passes while the stack is empty.
    fn bare(&mut self, machine: &ReplayState<FrameTimes>) -> &mut EmptyStackTime {
        let pending = &mut self.pending[machine.running];
        if machine.user && !self.known.idle[machine.running] {
            &mut pending.user
        } else {
            &mut pending.unattributed
        }
    }

    /// Counts an interrupt that begins.
    #[cold]
    fn interrupt(&mut self, machine: &ReplayState<FrameTimes>, function: u32) {
        self.charge_thread(machine);
        if self.known.has_several_cpus() {
            let cpu = machine.cpu as u32;
            let MultiCpuCounts { cpus, interrupts, .. } = &mut self.sums.multi_cpu;
            cpus.entry((self.region, cpu)).or_default().interrupts += 1;
            *interrupts.entry((self.region, cpu, function)).or_default() += 1;
        }
        self.record.idles.settle(function, &mut self.sums);
        self.record.first_interrupt.get_or_insert(function);
    }

    /// Ends a frame that a flush has counted as made; `since` is its self time since that flush.
    // Arguments by value: a frame passed by reference would be copied to memory for every call.
    #[inline(never)]
    fn end_spanning(&mut self, account: u32, since: u64, inherited_by: Option<usize>, call: EndedCall) {
        let spanning = self.sums.accounts.spanning(account);
        spanning.self_time = spanning.self_time.wrapping_add(since);
        match inherited_by {
            Some(thread) => {
                let times = CallTimes { self_ticks: call.self_time, callees: call.total - call.self_time };
                self.threads[thread].ended.push(EndedFrame { region: self.region, times });
            }
            None => self.sums.accounts.end_spanning(account, call),
        }
    }
}

impl EventVisitor for FunctionCollector<'_> {
    type PerFrame = FrameTimes;

    fn begin(&mut self, machine: &mut ReplayState<FrameTimes>, opening: &ChunkOpening<'_>) {
        self.sums.tree.settle();
        self.record = ChunkRecord::default();
        (self.start, self.charged, self.closed, self.charged_cpu) = (opening.begin, 0, 0, 0);
        for thread in &mut self.threads {
            (thread.region, thread.ran) = (NOWHERE, false);
            thread.ended.clear();
        }
        self.ran.clear();
        machine.adopt(opening);
        let open = |&region: &u32| OpenRegion { region, busy: 0, idle: 0, began: false };
        self.open = opening.regions.iter().map(open).collect();
        self.enter_region();
        self.arrive(machine);
    }

    #[inline]
    fn pass(&mut self, machine: &mut ReplayState<FrameTimes>, ns: u64, weights: EventWeights, _: &Event) {
        match machine.charge(ns) {
            Some(top) => {
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

    /// The recorder may learn of an idle period only in the interrupt that ended it.
    fn idle(&mut self, machine: &mut ReplayState<FrameTimes>, ns: u64) {
        let by_interrupt = |frame: &&StackFrame<FrameTimes>| frame.how == EnterKind::Interrupt;
        match machine.stack.frames.iter().rev().find(by_interrupt) {
            _ if ns == 0 => {}
            Some(frame) => self.sums.add_idle(self.region, frame.function, IdlePeriods::single(ns)),
            None => self.record.idles.add(self.region, IdlePeriods::single(ns)),
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut ReplayState<FrameTimes>, function: u32, how: EnterKind) -> FrameTimes {
        let (node, caller) = match machine.stack.frames.last() {
            _ if how == EnterKind::Interrupt => {
                self.interrupt(machine, function);
                (self.interrupt_root, NO_CALLER)
            }
            Some(top) => (top.data.place.node, top.function),
            None => (self.root(machine), NO_CALLER),
        };
        let place = self.sums.tree.enter(&mut self.sums.accounts, node, caller, function, how);
        FrameTimes::new(place, machine.now)
    }

    #[inline]
    fn ended(&mut self, machine: &mut ReplayState<FrameTimes>, frame: StackFrame<FrameTimes>) {
        let open = frame.data;
        let total = credit_caller(&mut machine.stack.frames, frame);
        if frame.how == EnterKind::Interrupt {
            // The frame is gone, but this time was still the interrupt's.
            self.charge_thread(machine);
        }
        let self_time = open.times.self_ticks;
        let since = self_time - open.credited;
        let node = &mut self.sums.tree.nodes[open.place.node as usize];
        node.self_time = node.self_time.wrapping_add(since);
        let call = EndedCall { self_time, total, begin: open.begin };
        if !open.counted {
            node.calls += u64::from(!open.place.folded);
            self.sums.accounts.count(open.place.account, call);
        } else {
            let inherited_by = open.inherited.then_some(machine.running);
            self.end_spanning(open.place.account, since, inherited_by, call);
        }
        if machine.bounds.is_user(frame.function) {
            self.pending[machine.running].account.user += since;
        }
    }

    fn switch(&mut self, machine: &mut ReplayState<FrameTimes>, to: usize) {
        let frames = machine.stack.frames.iter().rev().map(|frame| (frame.function, frame.how));
        let (reason, kind) = self.known.scheduler.switch_reason(frames);
        let (from, to) = (self.known.comm_of[machine.running], self.known.comm_of[to]);
        self.sums.count_switch(self.region, from, to, reason, kind);
        if self.known.has_several_cpus() {
            let key = (self.region, machine.cpu as u32);
            self.sums.multi_cpu.cpus.entry(key).or_default().switches += 1;
        }
        self.charge_thread(machine);
    }

    fn turn(&mut self, machine: &mut ReplayState<FrameTimes>, _: usize) {
        self.charge_thread(machine);
        self.charge_cpu(machine);
    }

    fn turned(&mut self, machine: &mut ReplayState<FrameTimes>) {
        self.arrive(machine);
    }

    fn between(&mut self, machine: &mut ReplayState<FrameTimes>, event: &Event) {
        let Self { known, sums, region, .. } = self;
        let frames = || machine.stack.frames.iter().rev().map(|frame| frame.function);
        match *event {
            Event::Delay { waker, ns } => {
                let waker = waker_name(waker, &known.comm_of);
                sums.multi_cpu.delay(*region, known.comm_of[machine.running], waker, ns);
            }
            Event::Migrate { thread, from, to } => {
                let reason = frames().nth(1).unwrap_or(NO_CALLER);
                let key = (*region, known.comm_of[thread as usize], from, to, reason);
                *sums.multi_cpu.migrations.entry(key).or_default() += 1;
            }
            Event::Signal { cpu } => {
                let (function, reason) =
                    (frames().next().unwrap_or(NO_CALLER), known.service_functions.client(frames()));
                let key = (*region, machine.cpu as u32, cpu, function, reason);
                *sums.multi_cpu.signals.entry(key).or_default() += 1;
            }
            Event::Lock { function, address, ns } => {
                sums.multi_cpu
                    .lock((*region, function, address, known.service_functions.client(frames())), ns);
            }
            _ => {}
        }
    }

    fn switched(&mut self, machine: &mut ReplayState<FrameTimes>) {
        self.arrive(machine);
        self.pending[machine.running].account.switches_in += 1;
    }

    fn region_begun(&mut self, machine: &mut ReplayState<FrameTimes>, region: u32) {
        self.flush(machine);
        let (busy, idle) = (self.busy(machine), machine.idle);
        self.open.push(OpenRegion { region, busy, idle, began: true });
        self.enter_region();
        self.arrive(machine);
    }

    fn region_ended(&mut self, machine: &mut ReplayState<FrameTimes>, region: u32) {
        self.flush(machine);
        if let Some(place) = self.open.iter().rposition(|open| open.region == region) {
            let part = self.measure(machine, self.open[place], true);
            self.open.remove(place);
            self.record.regions.push(part);
        }
        self.enter_region();
        self.arrive(machine);
    }

    fn point(&mut self, _: &mut ReplayState<FrameTimes>, point: u32) {
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
    frames: impl Iterator<Item = (u32, EnterKind, &'a mut CallLocation)>,
    sums: &mut Accumulators,
    known: &TraceContext,
    root: u32,
    region: u32,
) {
    let (mut node, mut caller) = (root, NO_CALLER);
    for (function, how, place) in frames {
        if how == EnterKind::Interrupt {
            (node, caller) = (sums.tree.root(region, known.interrupt_root), NO_CALLER);
        }
        *place = sums.tree.enter(&mut sums.accounts, node, caller, function, how);
        (node, caller) = (place.node, function);
    }
}
