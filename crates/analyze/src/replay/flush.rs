//! What a chunk has counted goes into the books: where the innermost region changes, and at the end.

use super::{OpenRegion, Pending, Replay};
use crate::record::{Opened, Record, RegionPart, ThreadPart};
use crate::stack::Stack;
use crate::tree::what;
use crate::Error;
use kerntune_trace::{ChunkState, Weights};

impl Replay<'_> {
    pub(super) fn begin_region(&mut self, region: u32) -> Result<(), Error> {
        self.check("region", region, self.known.regions)?;
        if self.open.iter().any(|open| open.region == region) {
            self.record.region_mismatches += 1;
            return Ok(());
        }
        self.flush();
        self.open.push(OpenRegion { region, busy: self.busy(), idle: self.idle, began: true });
        self.enter_region();
        self.arrive();
        Ok(())
    }

    pub(super) fn end_region(&mut self, region: u32) -> Result<(), Error> {
        self.check("region", region, self.known.regions)?;
        let Some(place) = self.open.iter().rposition(|open| open.region == region) else {
            self.record.region_mismatches += 1;
            return Ok(());
        };
        self.flush();
        let open = self.open.remove(place);
        let part = self.measure(open, true);
        self.record.regions.push(part);
        self.enter_region();
        self.arrive();
        Ok(())
    }

    fn measure(&self, open: OpenRegion, ended: bool) -> RegionPart {
        let OpenRegion { region, busy, idle, began } = open;
        RegionPart { region, busy: self.busy() - busy, idle: self.idle - idle, began, ended }
    }

    /// Busy time since the chunk began.
    pub(super) fn busy(&self) -> u64 {
        self.now - self.start - self.idle
    }

    /// Gives the running thread, or the interrupts, the time since this was last done. To be
    /// called before either changes.
    pub(super) fn charge_thread(&mut self) {
        let thread = if self.stack.interrupts > 0 { self.known.interrupt() } else { self.running };
        let busy = self.busy();
        self.pending[thread].account.net += busy - self.charged;
        self.charged = busy;
    }

    pub(super) fn park(&mut self) {
        self.parked[self.running] = std::mem::replace(&mut self.stack, Stack::new());
    }

    /// The innermost region is about to change, or the chunk is over: all of its time goes to its books, and
    /// the calls that are open count as made in it.
    fn flush(&mut self) {
        self.charge_thread();
        let Self { known, books, parked, stack, pending, region, .. } = self;
        let region = *region;
        let interrupt = known.interrupt() as u32;
        for &thread in self.ran.iter().chain([&interrupt]) {
            let at = thread as usize;
            let stack = if at == self.running { &mut *stack } else { &mut parked[at] };
            let Pending { mut account, user, unattributed } = std::mem::take(&mut pending[at]);
            // Those that were not touched in this region have nothing.
            if stack.region == region {
                for frame in &mut stack.frames {
                    let net = std::mem::take(&mut frame.net);
                    frame.credited += net;
                    let interrupted = books.accounts.interrupted(frame.place.account);
                    interrupted.net = interrupted.net.wrapping_add(net);
                    let node = &mut books.tree.nodes[frame.place.node as usize];
                    node.net = node.net.wrapping_add(net);
                    if !std::mem::replace(&mut frame.counted, true) {
                        interrupted.calls += 1;
                        node.calls += u64::from(!frame.place.folded);
                    }
                    if known.is_user(frame.function) {
                        account.user += net;
                    }
                }
            }
            for (bare, kind) in [(user, what::USER), (unattributed, what::UNATTRIBUTED)] {
                if bare.ns > 0 || bare.weights != Weights::NONE {
                    let leaf = books.tree.leaf(stack.root, kind);
                    let node = &mut books.tree.nodes[leaf as usize];
                    node.net = node.net.wrapping_add(bare.ns);
                    books.tree.add_weights(leaf, bare.weights);
                }
            }
            account.user += user.ns;
            let sums = &mut books.regions[region as usize];
            sums.user = sums.user.wrapping_add(user.ns);
            sums.unattributed = sums.unattributed.wrapping_add(unattributed.ns);
            books.add_thread(region, thread, account);
        }
        for (point, count) in self.points.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            self.books.add_point(region, point as u32, std::mem::take(count));
        }
        let busy = self.busy();
        let sum = &mut self.books.regions[region as usize].busy;
        *sum = sum.wrapping_add(busy - self.closed);
        self.closed = busy;
    }

    /// The chunk is over.
    pub(super) fn end(&mut self, begin: u64, events: u64, state: ChunkState) -> Record {
        self.flush();
        self.park();
        for open in std::mem::take(&mut self.open) {
            let part = self.measure(open, false);
            self.record.regions.push(part);
            self.record.open.push(open.region);
        }
        for &thread in &self.ran {
            let stack = &mut self.parked[thread as usize];
            let carried = stack.frames.iter().take_while(|frame| frame.carried).count();
            let (carried, opened) = stack.frames.split_at(carried);
            self.record.threads.push(ThreadPart {
                thread,
                ended: std::mem::take(&mut stack.ended),
                carried: carried.iter().map(|frame| (frame.credited, frame.callees)).collect(),
                opened: opened.iter().map(Opened::from).collect(),
            });
        }
        let (end, running, user) = (self.now, self.running, self.user);
        Record { begin, end, events, state, running, user, ..std::mem::take(&mut self.record) }
    }
}
