//! What a chunk has counted goes into the accumulators: where the innermost region changes, and at the end.

use super::{Functions, Open, OpenRegion, Pending};
use crate::events::{Frame, Machine};
use crate::record::{Opened, Record, RegionPart, ThreadPart};
use crate::tree::what;
use kerntune_trace::{ChunkState, Weights};

impl Functions<'_> {
    pub(super) fn measure(&self, machine: &Machine<Open>, open: OpenRegion, ended: bool) -> RegionPart {
        let OpenRegion { region, busy, idle, began } = open;
        RegionPart { region, busy: self.busy(machine) - busy, idle: machine.idle - idle, began, ended }
    }

    /// Busy time since the chunk began.
    pub(super) fn busy(&self, machine: &Machine<Open>) -> u64 {
        machine.now - self.start - machine.idle
    }

    /// Gives the running thread, or the interrupts, the time since this was last done. To be
    /// called before either changes.
    pub(super) fn charge_thread(&mut self, machine: &Machine<Open>) {
        let interrupted = machine.stack.interrupts > 0;
        let thread = if interrupted { self.known.interrupt() } else { machine.running };
        let busy = self.busy(machine);
        self.pending[thread].account.net += busy - self.charged;
        self.charged = busy;
    }

    /// Gives the CPU that executes, of several, the time since this was last done.
    pub(super) fn charge_cpu(&mut self, machine: &Machine<Open>) {
        if self.known.has_several_cpus() {
            let busy = self.busy(machine);
            let account = self.sums.several.cpus.entry((self.region, machine.cpu as u32)).or_default();
            account.busy = account.busy.wrapping_add(busy - self.charged_cpu);
            self.charged_cpu = busy;
        }
    }

    /// The innermost region is about to change, or the chunk is over: all of its time goes to its accounts, and
    /// the calls that are open count as made in it.
    pub(super) fn flush(&mut self, machine: &mut Machine<Open>) {
        self.charge_thread(machine);
        self.charge_cpu(machine);
        let Self { known, sums, threads, pending, region, .. } = self;
        let (region, bounds) = (*region, machine.bounds);
        let interrupt = known.interrupt() as u32;
        for &thread in self.ran.iter().chain([&interrupt]) {
            let at = thread as usize;
            let Pending { mut account, user, unattributed } = std::mem::take(&mut pending[at]);
            // Those that were not touched in this region have nothing.
            if threads[at].region == region {
                for frame in &mut machine.stack_of(at).frames {
                    let open = &mut frame.data;
                    let net = std::mem::take(&mut open.net);
                    open.credited += net;
                    let interrupted = sums.accounts.interrupted(open.place.account);
                    interrupted.net = interrupted.net.wrapping_add(net);
                    let node = &mut sums.tree.nodes[open.place.node as usize];
                    node.net = node.net.wrapping_add(net);
                    if !std::mem::replace(&mut open.counted, true) {
                        interrupted.calls += 1;
                        node.calls += u64::from(!open.place.folded);
                    }
                    if bounds.is_user(frame.function) {
                        account.user += net;
                    }
                }
            }
            for (bare, kind) in [(user, what::USER), (unattributed, what::UNATTRIBUTED)] {
                if bare.ns > 0 || bare.weights != Weights::NONE {
                    let leaf = sums.tree.leaf(threads[at].root, kind);
                    let node = &mut sums.tree.nodes[leaf as usize];
                    node.net = node.net.wrapping_add(bare.ns);
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

    /// The chunk is over.
    pub fn end(&mut self, machine: &mut Machine<Open>, begin: u64, events: u64, state: ChunkState) -> Record {
        self.flush(machine);
        for open in std::mem::take(&mut self.open) {
            let part = self.measure(machine, open, false);
            self.record.regions.push(part);
            self.record.open.push(open.region);
        }
        for &thread in &self.ran {
            let frames = &machine.stack_of(thread as usize).frames;
            let carried = frames.iter().take_while(|frame| frame.data.carried).count();
            let (carried, opened) = frames.split_at(carried);
            self.record.threads.push(ThreadPart {
                thread,
                ended: std::mem::take(&mut self.threads[thread as usize].ended),
                carried: carried.iter().map(|frame| (frame.data.credited, frame.data.callees)).collect(),
                opened: opened.iter().map(opened_from).collect(),
            });
        }
        let (end, running, user) = (machine.now, machine.running, machine.user);
        Record { begin, end, events, state, running, user, ..std::mem::take(&mut self.record) }
    }
}

fn opened_from(frame: &Frame<Open>) -> Opened {
    let Open { credited: net, callees, begin, .. } = frame.data;
    Opened { function: frame.function, how: frame.how, net, callees, begin, cut: false }
}
