//! Flushes the counters of a chunk into the accumulators: where the innermost region changes, and
//! at the chunk's end.

use super::{FrameTimes, FunctionCollector, OpenRegion, UnflushedTimes};
use crate::events::{ReplayState, StackFrame};
use crate::record::{ChunkRecord, OpenFrame, RegionRecord, ThreadRecord};
use crate::tree::node_kind;
use kerntune_trace::{ChunkState, EventWeights};

impl FunctionCollector<'_> {
    pub(super) fn measure(
        &self,
        machine: &ReplayState<FrameTimes>,
        open: OpenRegion,
        ended: bool,
    ) -> RegionRecord {
        let OpenRegion { region, busy, idle, began } = open;
        RegionRecord { region, busy: self.busy(machine) - busy, idle: machine.idle - idle, began, ended }
    }

    /// Returns the busy time since the chunk began.
    pub(super) fn busy(&self, machine: &ReplayState<FrameTimes>) -> u64 {
        machine.now - self.start - machine.idle
    }

    /// Adds the time since the last call to the running thread's account, or to that of interrupts.
    /// Must be called before either changes.
    pub(super) fn charge_thread(&mut self, machine: &ReplayState<FrameTimes>) {
        let interrupted = machine.stack.interrupts > 0;
        let thread = if interrupted { self.known.interrupt() } else { machine.running };
        let busy = self.busy(machine);
        self.pending[thread].account.self_time += busy - self.charged;
        self.charged = busy;
    }

    /// With several CPUs, adds the time since the last call to the account of the CPU that
    /// executes.
    pub(super) fn charge_cpu(&mut self, machine: &ReplayState<FrameTimes>) {
        if self.known.has_several_cpus() {
            let busy = self.busy(machine);
            let account = self.sums.multi_cpu.cpus.entry((self.region, machine.cpu as u32)).or_default();
            account.busy = account.busy.wrapping_add(busy - self.charged_cpu);
            self.charged_cpu = busy;
        }
    }

    /// Moves all pending time into the accounts of the innermost region, and counts its open calls
    /// as made there. Called before the innermost region changes, and at the end of a chunk.
    pub(super) fn flush(&mut self, machine: &mut ReplayState<FrameTimes>) {
        self.charge_thread(machine);
        self.charge_cpu(machine);
        let Self { known, sums, threads, pending, region, .. } = self;
        let (region, bounds) = (*region, machine.bounds);
        let interrupt = known.interrupt() as u32;
        for &thread in self.ran.iter().chain([&interrupt]) {
            let at = thread as usize;
            let UnflushedTimes { mut account, user, unattributed } = std::mem::take(&mut pending[at]);
            // Frames of a thread that did not run in this region have no new time.
            if threads[at].region == region {
                for frame in &mut machine.stack_of(at).frames {
                    let open = &mut frame.data;
                    let self_time = open.times.self_ticks - open.credited;
                    open.credited = open.times.self_ticks;
                    let spanning = sums.accounts.spanning(open.place.account);
                    spanning.self_time = spanning.self_time.wrapping_add(self_time);
                    let node = &mut sums.tree.nodes[open.place.node as usize];
                    node.self_time = node.self_time.wrapping_add(self_time);
                    if !std::mem::replace(&mut open.counted, true) {
                        spanning.calls += 1;
                        node.calls += u64::from(!open.place.folded);
                    }
                    if bounds.is_user(frame.function) {
                        account.user += self_time;
                    }
                }
            }
            for (bare, kind) in [(user, node_kind::USER), (unattributed, node_kind::UNATTRIBUTED)] {
                if bare.ns > 0 || bare.weights != EventWeights::NONE {
                    let leaf = sums.tree.leaf(threads[at].root, kind);
                    let node = &mut sums.tree.nodes[leaf as usize];
                    node.self_time = node.self_time.wrapping_add(bare.ns);
                    sums.tree.add_weights(leaf, bare.weights);
                }
            }
            account.user += user.ns;
            let of_region = &mut sums.regions[region as usize];
            of_region.user = of_region.user.wrapping_add(user.ns);
            of_region.unattributed = of_region.unattributed.wrapping_add(unattributed.ns);
            sums.add_thread(region, thread, account);
        }
        for (point, count) in self.points.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            self.sums.add_point(region, point as u32, std::mem::take(count));
        }
        let busy = self.busy(machine);
        let sum = &mut self.sums.regions[region as usize].busy;
        *sum = sum.wrapping_add(busy - self.closed);
        self.closed = busy;
    }

    /// Ends the chunk and returns its record.
    pub fn end(
        &mut self,
        machine: &mut ReplayState<FrameTimes>,
        begin: u64,
        events: u64,
        state: ChunkState,
    ) -> ChunkRecord {
        self.flush(machine);
        for open in std::mem::take(&mut self.open) {
            let part = self.measure(machine, open, false);
            self.record.regions.push(part);
            self.record.open.push(open.region);
        }
        for &thread in &self.ran {
            let frames = &machine.stack_of(thread as usize).frames;
            let inherited = frames.iter().take_while(|frame| frame.data.inherited).count();
            let (inherited, opened) = frames.split_at(inherited);
            self.record.threads.push(ThreadRecord {
                thread,
                ended: std::mem::take(&mut self.threads[thread as usize].ended),
                inherited: inherited.iter().map(|frame| frame.data.times).collect(),
                opened: opened.iter().map(opened_from).collect(),
            });
        }
        let (end, running, user) = (machine.now, machine.running, machine.user);
        ChunkRecord { begin, end, events, state, running, user, ..std::mem::take(&mut self.record) }
    }
}

fn opened_from(frame: &StackFrame<FrameTimes>) -> OpenFrame {
    let FrameTimes { times, begin, .. } = frame.data;
    OpenFrame { function: frame.function, how: frame.how, times, begin, cut: false }
}
