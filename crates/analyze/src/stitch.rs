//! Joining chunks, in their order: calls that go on from one to the next, and whether the next
//! begins where the one before ended.

use crate::accounts::{Call, NO_CALLER};
use crate::accumulators::{Accumulators, PendingIdles};
use crate::events::TIME_LIMIT;
use crate::functions::places;
use crate::known::Known;
use crate::record::{Opened, Record, ThreadPart};
use crate::tree::Place;
use crate::Error;
use kerntune_trace::How;

/// What the trace says of a region's times, those within it included.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub busy: u64,
    pub idle: u64,
    began: bool,
    ended: bool,
}

impl Measured {
    /// Whether both its begin and its end were seen.
    pub fn whole(&self) -> bool {
        self.began && self.ended
    }
}

/// What was not as it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Troubles {
    /// Stacks that were not as the next chunk stated.
    pub stack_mismatches: u64,
    /// Chunks in which another thread ran, or another mode, than the chunk before ended with.
    pub running_mismatches: u64,
    /// Chunks that began at another time than the one before ended.
    pub clock_mismatches: u64,
    pub clock_mismatch_ns: u64,
    /// Events that ended frames that were not there.
    pub unmatched_exits: u64,
    /// Calls of which the beginning, the end or something between was not seen.
    pub cut_calls: u64,
    /// Begins of open regions, ends of others, and chunks that disagree on what is open.
    pub region_mismatches: u64,
}

/// Goes through the chunks' records.
pub(crate) struct Stitch<'a> {
    known: &'a Known,
    pub sums: Accumulators,
    stacks: Vec<Vec<Opened>>,
    running: usize,
    user: bool,
    open: Vec<u32>,
    idles: PendingIdles,
    pub measured: Vec<Measured>,
    /// Virtual time where the last chunk ended, and all that passed in chunks.
    end: u64,
    total: u64,
    /// Whether the next chunk goes on where the last one ended.
    follows: bool,
    pub troubles: Troubles,
}

impl<'a> Stitch<'a> {
    pub fn new(known: &'a Known) -> Self {
        Self {
            known,
            sums: Accumulators::new(known.bounds.regions, known.wide),
            stacks: vec![Vec::new(); known.bounds.threads + 2],
            running: known.nobody(),
            user: true,
            open: Vec::new(),
            idles: PendingIdles::default(),
            measured: vec![Measured::default(); known.bounds.regions],
            end: 0,
            total: 0,
            follows: false,
            troubles: Troubles::default(),
        }
    }

    /// Takes the next chunk.
    pub fn chunk(&mut self, number: usize, record: Record) -> Result<(), Error> {
        self.total = self.total.saturating_add(record.end - record.begin);
        if self.total >= TIME_LIMIT {
            return Err(Error::Time { chunk: number });
        }
        self.sums.tree.settle();
        self.join(&record);
        if let Some(waker) = record.first_interrupt {
            self.idles.settle(waker, &mut self.sums);
        }
        self.idles.append(record.idles);
        for part in record.threads {
            self.thread(part);
        }
        for part in record.regions {
            if let Some(sum) = self.measured.get_mut(part.region as usize) {
                sum.busy = sum.busy.saturating_add(part.busy);
                sum.idle = sum.idle.saturating_add(part.idle);
                sum.began |= part.began;
                sum.ended |= part.ended;
            }
        }
        self.troubles.unmatched_exits += record.unmatched_exits;
        self.troubles.region_mismatches += record.region_mismatches;
        (self.end, self.running, self.user) = (record.end, record.running, record.user);
        self.open = record.open;
        // Between regions nothing is recorded.
        self.follows = !self.open.is_empty();
        Ok(())
    }

    /// A chunk is not there.
    pub fn missing(&mut self) {
        self.follows = false;
    }

    /// Takes the chunk's word for what is open; counts where ours differs, unless there was a gap.
    fn join(&mut self, record: &Record) {
        let state = &record.state;
        let mut stated: Vec<&[(u32, How)]> = vec![&[]; self.stacks.len()];
        let mut running = self.known.nobody();
        for stack in &state.stacks {
            if let Some(frames) = stated.get_mut(stack.thread as usize) {
                *frames = &stack.frames;
            }
            if stack.running {
                running = stack.thread as usize;
            }
        }
        if self.follows {
            let by = record.begin.abs_diff(self.end);
            self.troubles.clock_mismatches += u64::from(by != 0);
            self.troubles.clock_mismatch_ns = self.troubles.clock_mismatch_ns.saturating_add(by);
            // The mode says whose time it is only where nothing is open.
            let bare = stated.get(running).is_some_and(|frames| frames.is_empty());
            let mode = running == self.running && (self.user == state.user || !bare);
            self.troubles.running_mismatches += u64::from(!mode);
            self.troubles.region_mismatches += u64::from(self.open != state.regions);
        } else {
            self.idles.settle(NO_CALLER, &mut self.sums);
        }
        for (stack, stated) in self.stacks.iter_mut().zip(stated) {
            adopt(stack, stated, self.follows, &mut self.troubles);
        }
    }

    fn thread(&mut self, part: ThreadPart) {
        let thread = part.thread as usize;
        let Self { known, sums, stacks, .. } = self;
        let Some(stack) = stacks.get_mut(thread) else { return };
        let mut resolved = None;
        let mut found = Vec::new();
        for ended in part.ended {
            if resolved != Some(ended.region) {
                resolved = Some(ended.region);
                found = vec![Place::NOWHERE; stack.len()];
                let root = sums.tree.root(ended.region, known.root_of[thread]);
                let frames =
                    stack.iter().zip(&mut found).map(|(frame, place)| (frame.function, frame.how, place));
                places(frames, sums, known, root, ended.region);
            }
            let (Some(frame), Some(place)) = (stack.pop(), found.pop()) else { return };
            let net = frame.net + ended.net;
            let elapsed = net + frame.callees + ended.callees;
            if frame.how != How::Interrupt {
                if let Some(below) = stack.last_mut() {
                    // The chunk has added its part.
                    below.callees += frame.net + frame.callees;
                }
            }
            if !frame.cut {
                let call = Call { net, elapsed, begin: frame.begin };
                sums.accounts.end_interrupted(place.account, call);
            }
        }
        for (frame, (net, callees)) in stack.iter_mut().zip(part.carried) {
            frame.net += net;
            frame.callees += callees;
        }
        stack.extend(part.opened);
    }

    /// The trace is over.
    pub fn finish(&mut self) {
        self.idles.settle(NO_CALLER, &mut self.sums);
        let open = self.stacks.iter().flatten().filter(|frame| !frame.cut);
        self.troubles.cut_calls += open.count() as u64;
    }
}

/// Makes a stack what the next chunk says it is.
fn adopt(stack: &mut Vec<Opened>, stated: &[(u32, How)], follows: bool, troubles: &mut Troubles) {
    let ours = || stack.iter().map(|frame| (frame.function, frame.how));
    if follows {
        if ours().eq(stated.iter().copied()) {
            return;
        }
        troubles.stack_mismatches += 1;
    }
    let kept = ours().zip(stated).take_while(|(ours, stated)| ours == *stated).count();
    troubles.cut_calls += (stated.len() - kept) as u64;
    troubles.cut_calls += stack.iter().filter(|frame| !frame.cut).count() as u64;
    stack.clear();
    let cut = |&(function, how): &_| Opened { function, how, net: 0, callees: 0, begin: 0, cut: true };
    stack.extend(stated.iter().map(cut));
}
