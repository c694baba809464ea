//! Streaming of a part of a trace to a sink: for exports of any length, in bounded memory.

use super::cpus::{self, CpuActivity, CpuSlice, CpuState};
use super::{holder, CpuHolder, HolderSlice, HALTED};
use crate::events::{replay, ChunkOpening, EventVisitor, ReplayState, StackFrame, TraceBounds};
use crate::trace_file::TraceFile;
use crate::{Error, EventProgress};
use kerntune_trace::{EnterKind, Event, EventWeights};

/// The part of a trace to stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSelection {
    /// Virtual time of its beginning, in ticks.
    pub from: u64,
    /// Virtual time of its end, in ticks.
    pub to: u64,
    /// Only while one of these regions is open, indexed by region; `None` for everything recorded.
    pub regions: Option<Vec<bool>>,
    /// Maximum number of events.
    pub events: u64,
}

impl StreamSelection {
    /// The whole trace.
    pub const ALL: Self = Self { from: 0, to: u64::MAX, regions: None, events: u64::MAX };
}

/// Extent of what was streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSummary {
    /// Virtual time of the first streamed instant, in ticks.
    pub begin: u64,
    /// Virtual time of the last streamed instant, in ticks.
    pub end: u64,
    /// Number of streamed events.
    pub events: u64,
    /// Time within it in which a CPU executed, in ticks.
    pub busy: u64,
    /// Time within it in which all CPUs were halted, in ticks.
    pub idle: u64,
    /// True if everything that was requested was streamed.
    pub whole: bool,
}

/// Receiver of a stream. Times are virtual, in ticks, and do not decrease. Threads are indices into
/// the recording's threads; the number of threads and the one after it stand for unknown threads.
pub trait TimelineSink {
    /// Checks whether the sink accepts no more events. Then reading stops.
    fn is_full(&self) -> bool {
        false
    }

    /// A function is entered, or is open where the part begins.
    fn enter(&mut self, at: u64, thread: u32, function: u32, how: EnterKind);

    /// The top function of a thread ends, or the part does.
    fn exit(&mut self, at: u64, thread: u32);

    /// A thread executed for a period, without an event. While an interrupt has the CPU, `thread`
    /// is the one on whose stack it runs.
    fn ran(&mut self, slice: HolderSlice, thread: u32);

    /// A CPU was in one state for a period.
    fn cpu(&mut self, cpu: u32, slice: CpuSlice);

    /// A region begins, or is open where the part begins.
    fn region_begun(&mut self, at: u64, region: u32);

    /// The innermost open region ends, or the part does.
    fn region_ended(&mut self, at: u64, region: u32);
}

/// Streams a part of a trace, read through its index.
///
/// # Errors
/// Damage in a chunk that overlaps the part; [`Error::Stopped`] if `progress` breaks.
pub fn stream(
    trace: &TraceFile<'_>,
    part: &StreamSelection,
    sink: &mut dyn TimelineSink,
    progress: EventProgress<'_>,
) -> Result<StreamSummary, Error> {
    let bounds = TraceBounds::of(trace.recording);
    let mut machine = ReplayState::new(bounds);
    let mut visitor = StreamVisitor::new(part, sink, bounds);
    let (mut from, mut to) = (part.from, part.to);
    if let Some(wanted) = &part.regions {
        let wanted = trace.recording.regions.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        let spans = wanted.map(|(region, _)| {
            // The end of a region that was never closed is not known.
            let end = region.begin_ns.saturating_add(region.elapsed_ns);
            (region.begin_ns, if region.closed { end } else { u64::MAX })
        });
        let (begin, end) = spans.fold((u64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
        (from, to) = (from.max(begin), to.min(end));
    }
    let mut reader = trace.reader()?;
    let mut read = 0;
    for number in trace.covering(from, to) {
        read += replay(&mut machine, &mut visitor, &reader.read(number)?)?;
        if visitor.done {
            break;
        }
        if progress(read).is_break() {
            return Err(Error::Stopped);
        }
    }
    let end = visitor.summary.end;
    visitor.leave(&mut machine, end);
    Ok(visitor.summary)
}

struct StreamVisitor<'a> {
    part: &'a StreamSelection,
    sink: &'a mut dyn TimelineSink,
    summary: StreamSummary,
    /// True if anything was streamed.
    begun: bool,
    /// True if the sink knows the open functions and regions.
    active: bool,
    done: bool,
    /// Current state of each CPU; `None` while unknown.
    cpus: Vec<Option<CpuSlice>>,
    /// Regions that the sink knows, outermost first.
    regions: Vec<u32>,
}

impl EventVisitor for StreamVisitor<'_> {
    type PerFrame = ();

    fn is_done(&self) -> bool {
        self.done
    }

    fn begin(&mut self, machine: &mut ReplayState<()>, opening: &ChunkOpening<'_>) {
        // Nothing is recorded outside of regions.
        if self.active && machine.now() != opening.begin {
            let now = machine.now();
            self.leave(machine, now);
        }
        machine.continue_from(self, opening);
        if self.active && self.regions != machine.regions {
            let now = machine.now();
            self.leave(machine, now);
        }
    }

    #[inline]
    fn pass(&mut self, machine: &mut ReplayState<()>, ns: u64, _: EventWeights, _: &Event) {
        let (before, now) = (machine.now(), machine.now() + ns);
        if now < self.part.from || !self.is_wanted(machine) {
            return;
        }
        if before >= self.part.to && before > self.part.from {
            return self.end(machine, before.min(self.part.to), true);
        }
        if self.summary.events >= self.part.events || self.sink.is_full() {
            return self.end(machine, before, false);
        }
        let (begin, end) = (before.max(self.part.from), now.min(self.part.to));
        self.enter_part(machine, begin);
        self.summary.events += 1;
        if end > begin {
            let holder = holder(machine);
            self.summary.busy += end - begin;
            self.summary.end = end;
            let slice = HolderSlice { begin, end, holder, cpu: machine.cpu() as u32 };
            self.sink.ran(slice, machine.running() as u32);
            self.cpus(machine, begin, end, holder);
        }
        if now > self.part.to {
            self.end(machine, end, true);
        }
    }

    fn idle(&mut self, machine: &mut ReplayState<()>, ns: u64) {
        let (asleep, awake) = (machine.now(), machine.now() + ns);
        if awake < self.part.from || asleep > self.part.to || !self.is_wanted(machine) {
            return;
        }
        let (begin, end) = (asleep.max(self.part.from), awake.min(self.part.to));
        self.enter_part(machine, begin);
        if end > begin {
            self.summary.idle += end - begin;
            self.summary.end = end;
            self.cpus(machine, begin, end, HALTED);
        }
        if awake > self.part.to {
            self.end(machine, end, true);
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut ReplayState<()>, function: u32, how: EnterKind) {
        if self.active {
            self.sink.enter(machine.now(), machine.running() as u32, function, how);
        }
    }

    #[inline]
    fn ended(&mut self, machine: &mut ReplayState<()>, _: StackFrame<()>) {
        if self.active {
            self.sink.exit(machine.now(), machine.running() as u32);
        }
    }

    fn region_begun(&mut self, machine: &mut ReplayState<()>, region: u32) {
        let now = machine.now();
        if self.active {
            self.regions.push(region);
            self.sink.region_begun(now, region);
        } else if self.is_wanted(machine) && (self.part.from..self.part.to).contains(&now) {
            self.enter_part(machine, now);
        }
    }

    fn region_ended(&mut self, machine: &mut ReplayState<()>, region: u32) {
        if !self.active {
            return;
        }
        let now = machine.now();
        if !self.is_wanted(machine) {
            return self.leave(machine, now);
        }
        // If regions overlap, those inside the one that ends are ended, too, and begun again.
        let Some(place) = self.regions.iter().rposition(|open| *open == region) else { return };
        let within = self.regions.split_off(place);
        within.iter().rev().for_each(|open| self.sink.region_ended(now, *open));
        for again in within.into_iter().skip(1) {
            self.regions.push(again);
            self.sink.region_begun(now, again);
        }
    }
}

impl<'a> StreamVisitor<'a> {
    fn new(part: &'a StreamSelection, sink: &'a mut dyn TimelineSink, bounds: TraceBounds) -> Self {
        let summary = StreamSummary { begin: 0, end: 0, events: 0, busy: 0, idle: 0, whole: true };
        let cpus = vec![None; bounds.cpus];
        Self { part, sink, summary, begun: false, active: false, done: false, cpus, regions: Vec::new() }
    }

    #[inline]
    fn is_wanted(&self, machine: &ReplayState<()>) -> bool {
        let Some(wanted) = &self.part.regions else { return true };
        machine.regions.iter().any(|region| wanted.get(*region as usize).copied().unwrap_or(false))
    }

    /// Begins everything that is open, if the sink does not know it yet.
    #[inline]
    fn enter_part(&mut self, machine: &mut ReplayState<()>, at: u64) {
        if !self.active {
            self.open(machine, at);
        }
    }

    #[inline(never)]
    fn open(&mut self, machine: &mut ReplayState<()>, at: u64) {
        self.active = true;
        if !std::mem::replace(&mut self.begun, true) {
            (self.summary.begin, self.summary.end) = (at, at);
        }
        self.regions.clone_from(&machine.regions);
        self.regions.iter().for_each(|region| self.sink.region_begun(at, *region));
        for thread in 0..=machine.unknown_thread() {
            for frame in &machine.stack_of(thread).frames {
                self.sink.enter(at, thread as u32, frame.function, frame.how);
            }
        }
    }

    /// Ends everything that is open.
    fn leave(&mut self, machine: &mut ReplayState<()>, at: u64) {
        for (cpu, slice) in (0..).zip(&mut self.cpus) {
            if let Some(slice) = slice.take() {
                self.sink.cpu(cpu, slice);
            }
        }
        if !std::mem::replace(&mut self.active, false) {
            return;
        }
        for thread in 0..=machine.unknown_thread() {
            for _ in &machine.stack_of(thread).frames {
                self.sink.exit(at, thread as u32);
            }
        }
        while let Some(region) = self.regions.pop() {
            self.sink.region_ended(at, region);
        }
    }

    /// Ends the part; `whole` is `false` if a limit ended it.
    #[inline(never)]
    fn end(&mut self, machine: &mut ReplayState<()>, at: u64, whole: bool) {
        self.leave(machine, at);
        (self.summary.whole, self.done) = (whole, true);
    }

    #[inline]
    fn cpus(&mut self, machine: &ReplayState<()>, begin: u64, end: u64, holder: CpuHolder) {
        if let [only] = self.cpus.as_mut_slice() {
            let doing = if holder == HALTED { CpuActivity::Halted } else { CpuActivity::Executes };
            let slice = CpuSlice { begin, end, state: CpuState { doing, holder } };
            return extend(only, 0, slice, self.sink);
        }
        for ((cpu, state), known) in (0..).zip(cpus::states(machine, holder)).zip(&mut self.cpus) {
            extend(known, cpu, CpuSlice { begin, end, state }, self.sink);
        }
    }
}

/// Extends the current slice of a CPU, or passes it to the sink if the state changes.
#[inline]
fn extend(known: &mut Option<CpuSlice>, cpu: u32, slice: CpuSlice, sink: &mut dyn TimelineSink) {
    match known {
        Some(known) if known.end == slice.begin && known.state == slice.state => known.end = slice.end,
        other => {
            if let Some(done) = other.replace(slice) {
                sink.cpu(cpu, done);
            }
        }
    }
}
