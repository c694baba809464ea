//! Joins chunks in order: completes calls that continue from one chunk to the next, and checks that
//! each chunk begins where the one before ended.

use crate::accounts::{EndedCall, NO_CALLER};
use crate::accumulators::{Accumulators, PendingIdles};
use crate::events::{CallTimes, TIME_LIMIT};
use crate::functions::places;
use crate::known::TraceContext;
use crate::record::{ChunkRecord, OpenFrame, ThreadRecord};
use crate::tree::CallLocation;
use crate::Error;
use kerntune_trace::EnterKind;

/// Times of a region in the trace, with the regions inside it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RegionTimes {
    pub busy: u64,
    pub idle: u64,
    began: bool,
    ended: bool,
}

impl RegionTimes {
    /// Checks whether both begin and end were recorded.
    pub fn whole(&self) -> bool {
        self.began && self.ended
    }
}

/// Anomaly counters of the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Anomalies {
    /// Stacks that differ from those that the next chunk declares.
    pub stack_mismatches: u64,
    /// Chunks that begin with another thread or mode than the chunk before ended with.
    pub running_mismatches: u64,
    /// Chunks that do not begin at the time at which the one before ended.
    pub clock_mismatches: u64,
    pub clock_mismatch_ns: u64,
    /// Events that end frames that are not open.
    pub unmatched_exits: u64,
    /// Calls of which some part was not recorded.
    pub cut_calls: u64,
    /// Begins of open regions, ends of others, and chunks that disagree on the open regions.
    pub region_mismatches: u64,
}

/// State between chunks, and the sums of calls that span them.
pub(crate) struct ChunkStitcher<'a> {
    known: &'a TraceContext,
    pub sums: Accumulators,
    stacks: Vec<Vec<OpenFrame>>,
    running: usize,
    user: bool,
    open: Vec<u32>,
    idles: PendingIdles,
    pub measured: Vec<RegionTimes>,
    /// Virtual time at which the last chunk ended, and the sum of the lengths of all chunks.
    end: u64,
    total: u64,
    /// True if the next chunk continues the last one, without a gap.
    follows: bool,
    pub anomalies: Anomalies,
}

impl<'a> ChunkStitcher<'a> {
    pub fn new(known: &'a TraceContext) -> Self {
        Self {
            known,
            sums: Accumulators::new(known.bounds.regions, known.wide),
            stacks: vec![Vec::new(); known.bounds.threads + 2],
            running: known.unknown_thread(),
            user: true,
            open: Vec::new(),
            idles: PendingIdles::default(),
            measured: vec![RegionTimes::default(); known.bounds.regions],
            end: 0,
            total: 0,
            follows: false,
            anomalies: Anomalies::default(),
        }
    }

    /// Adds the next chunk.
    pub fn chunk(&mut self, number: usize, record: ChunkRecord) -> Result<(), Error> {
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
        self.anomalies.unmatched_exits += record.unmatched_exits;
        self.anomalies.region_mismatches += record.region_mismatches;
        (self.end, self.running, self.user) = (record.end, record.running, record.user);
        self.open = record.open;
        // Nothing is recorded between regions.
        self.follows = !self.open.is_empty();
        Ok(())
    }

    /// Notes that the next chunk is left out.
    pub fn missing(&mut self) {
        self.follows = false;
    }

    /// Adopts the state that the chunk declares. Differences count as anomalies, unless there was a
    /// gap.
    fn join(&mut self, record: &ChunkRecord) {
        let state = &record.state;
        let mut stated: Vec<&[(u32, EnterKind)]> = vec![&[]; self.stacks.len()];
        let mut running = self.known.unknown_thread();
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
            self.anomalies.clock_mismatches += u64::from(by != 0);
            self.anomalies.clock_mismatch_ns = self.anomalies.clock_mismatch_ns.saturating_add(by);
            // The mode matters only if no frame is open.
            let bare = stated.get(running).is_some_and(|frames| frames.is_empty());
            let mode = running == self.running && (self.user == state.user || !bare);
            self.anomalies.running_mismatches += u64::from(!mode);
            self.anomalies.region_mismatches += u64::from(self.open != state.regions);
        } else {
            self.idles.settle(NO_CALLER, &mut self.sums);
        }
        for (stack, stated) in self.stacks.iter_mut().zip(stated) {
            adopt(stack, stated, self.follows, &mut self.anomalies);
        }
    }

    fn thread(&mut self, part: ThreadRecord) {
        let thread = part.thread as usize;
        let Self { known, sums, stacks, .. } = self;
        let Some(stack) = stacks.get_mut(thread) else { return };
        let mut resolved = None;
        let mut found = Vec::new();
        for ended in part.ended {
            if resolved != Some(ended.region) {
                resolved = Some(ended.region);
                found = vec![CallLocation::NOWHERE; stack.len()];
                let root = sums.tree.root(ended.region, known.root_of[thread]);
                let frames =
                    stack.iter().zip(&mut found).map(|(frame, place)| (frame.function, frame.how, place));
                places(frames, sums, known, root, ended.region);
            }
            let (Some(frame), Some(place)) = (stack.pop(), found.pop()) else { return };
            let self_time = frame.times.self_ticks + ended.times.self_ticks;
            let total = frame.times.total() + ended.times.total();
            if frame.how != EnterKind::Interrupt {
                if let Some(below) = stack.last_mut() {
                    // The chunk has added the part of its own time.
                    below.times.callees += frame.times.total();
                }
            }
            if !frame.cut {
                let call = EndedCall { self_time, total, begin: frame.begin };
                sums.accounts.end_spanning(place.account, call);
            }
        }
        for (frame, times) in stack.iter_mut().zip(part.inherited) {
            frame.times += times;
        }
        stack.extend(part.opened);
    }

    /// Ends the trace: calls that are still open count as cut.
    pub fn finish(&mut self) {
        self.idles.settle(NO_CALLER, &mut self.sums);
        let open = self.stacks.iter().flatten().filter(|frame| !frame.cut);
        self.anomalies.cut_calls += open.count() as u64;
    }
}

/// Replaces a stack by the one that the next chunk declares.
fn adopt(stack: &mut Vec<OpenFrame>, stated: &[(u32, EnterKind)], follows: bool, anomalies: &mut Anomalies) {
    let ours = || stack.iter().map(|frame| (frame.function, frame.how));
    if follows {
        if ours().eq(stated.iter().copied()) {
            return;
        }
        anomalies.stack_mismatches += 1;
    }
    let kept = ours().zip(stated).take_while(|(ours, stated)| ours == *stated).count();
    anomalies.cut_calls += (stated.len() - kept) as u64;
    anomalies.cut_calls += stack.iter().filter(|frame| !frame.cut).count() as u64;
    stack.clear();
    let cut =
        |&(function, how): &_| OpenFrame { function, how, times: CallTimes::default(), begin: 0, cut: true };
    stack.extend(stated.iter().map(cut));
}
