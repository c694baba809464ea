//! What happened in a part of a trace, told as it is read: for exports of any length, in bounded memory.

use super::cpus::{self, CpuSlice, CpuState, Doing};
use super::{holder, Holder, Slice, HALTED};
use crate::events::{replay, Bounds, Frame, Machine, Opening, Visitor};
use crate::trace_file::TraceFile;
use crate::{Error, Progress};
use kerntune_trace::{Event, How, Weights};

/// What to tell of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// From this virtual time on, ns.
    pub from: u64,
    /// Until this virtual time, ns.
    pub to: u64,
    /// Only while one of these regions is open: by its number. `None`: all that was recorded.
    pub regions: Option<Vec<bool>>,
    /// At most so many events.
    pub events: u64,
}

impl Part {
    /// The whole trace.
    pub const ALL: Self = Self { from: 0, to: u64::MAX, regions: None, events: u64::MAX };
}

/// How far it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed {
    /// Virtual time of the first instant that was told of, ns.
    pub begin: u64,
    /// Virtual time of the last, ns.
    pub end: u64,
    /// Events that were told of.
    pub events: u64,
    /// Time that a CPU executed in it, ns.
    pub busy: u64,
    /// Time that all CPUs were halted in it, ns.
    pub idle: u64,
    /// Whether that is all of what was asked for.
    pub whole: bool,
}

/// Who is told. Times are virtual, ns, and rise. Threads are numbers in the recording; the number of threads and the one
/// after it stand for threads that the trace does not name.
pub trait Sink {
    /// Whether it takes no more: reading stops.
    fn is_full(&self) -> bool {
        false
    }

    /// A function begins, or was open where the part begins.
    fn enter(&mut self, at: u64, thread: u32, function: u32, how: How);

    /// The topmost open function of a thread ends, or the part does.
    fn exit(&mut self, at: u64, thread: u32);

    /// So long the thread executed with everything as it is. While an interrupt has the CPU it is on the stack of the thread.
    fn ran(&mut self, slice: Slice, thread: u32);

    /// A CPU did one thing for so long.
    fn cpu(&mut self, cpu: u32, slice: CpuSlice);

    /// A region begins, or was open where the part begins.
    fn region_begun(&mut self, at: u64, region: u32);

    /// The innermost open region ends, or the part does.
    fn region_ended(&mut self, at: u64, region: u32);
}

/// Reads a part of a trace through its index.
///
/// # Errors
/// Any damage in the chunks that the part lies in; [`Error::Stopped`] where progress says so.
pub fn stream(
    trace: &TraceFile<'_>,
    part: &Part,
    sink: &mut dyn Sink,
    progress: Progress<'_>,
) -> Result<Streamed, Error> {
    let bounds = Bounds::of(trace.recording);
    let mut machine = Machine::new(bounds);
    let mut teller = Teller::new(part, sink, bounds);
    let (mut from, mut to) = (part.from, part.to);
    if let Some(wanted) = &part.regions {
        let wanted = trace.recording.regions.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        let spans = wanted.map(|(region, _)| {
            // The end of one that is open to the end is not known.
            let end = region.begin_ns.saturating_add(region.elapsed_ns);
            (region.begin_ns, if region.closed { end } else { u64::MAX })
        });
        let (begin, end) = spans.fold((u64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
        (from, to) = (from.max(begin), to.min(end));
    }
    let mut reader = trace.reader()?;
    let mut read = 0;
    for number in trace.covering(from, to) {
        read += replay(&mut machine, &mut teller, &reader.read(number)?)?;
        if teller.done {
            break;
        }
        if progress(read).is_break() {
            return Err(Error::Stopped);
        }
    }
    let end = teller.told.end;
    teller.leave(&mut machine, end);
    Ok(teller.told)
}

struct Teller<'a> {
    part: &'a Part,
    sink: &'a mut dyn Sink,
    told: Streamed,
    /// Whether anything was.
    begun: bool,
    /// Whether the sink knows of what is open.
    active: bool,
    done: bool,
    /// What each CPU has been doing; nothing until it is known.
    cpus: Vec<Option<CpuSlice>>,
    /// Regions that the sink knows of, outermost first.
    regions: Vec<u32>,
}

impl Visitor for Teller<'_> {
    type Frame = ();

    fn is_done(&self) -> bool {
        self.done
    }

    fn begin(&mut self, machine: &mut Machine<()>, opening: &Opening<'_>) {
        // Outside of regions nothing is recorded.
        if self.active && machine.now() != opening.begin {
            let now = machine.now();
            self.leave(machine, now);
        }
        machine.go_on(self, opening);
        if self.active && self.regions != machine.regions {
            let now = machine.now();
            self.leave(machine, now);
        }
    }

    #[inline]
    fn pass(&mut self, machine: &mut Machine<()>, ns: u64, _: Weights, _: &Event) {
        let (before, now) = (machine.now(), machine.now() + ns);
        if now < self.part.from || !self.is_wanted(machine) {
            return;
        }
        if before >= self.part.to && before > self.part.from {
            return self.end(machine, before.min(self.part.to), true);
        }
        if self.told.events >= self.part.events || self.sink.is_full() {
            return self.end(machine, before, false);
        }
        let (begin, end) = (before.max(self.part.from), now.min(self.part.to));
        self.enter_part(machine, begin);
        self.told.events += 1;
        if end > begin {
            let holder = holder(machine);
            self.told.busy += end - begin;
            self.told.end = end;
            let slice = Slice { begin, end, holder, cpu: machine.cpu() as u32 };
            self.sink.ran(slice, machine.running() as u32);
            self.cpus(machine, begin, end, holder);
        }
        if now > self.part.to {
            self.end(machine, end, true);
        }
    }

    fn idle(&mut self, machine: &mut Machine<()>, ns: u64) {
        let (asleep, awake) = (machine.now(), machine.now() + ns);
        if awake < self.part.from || asleep > self.part.to || !self.is_wanted(machine) {
            return;
        }
        let (begin, end) = (asleep.max(self.part.from), awake.min(self.part.to));
        self.enter_part(machine, begin);
        if end > begin {
            self.told.idle += end - begin;
            self.told.end = end;
            self.cpus(machine, begin, end, HALTED);
        }
        if awake > self.part.to {
            self.end(machine, end, true);
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut Machine<()>, function: u32, how: How) {
        if self.active {
            self.sink.enter(machine.now(), machine.running() as u32, function, how);
        }
    }

    #[inline]
    fn ended(&mut self, machine: &mut Machine<()>, _: Frame<()>) {
        if self.active {
            self.sink.exit(machine.now(), machine.running() as u32);
        }
    }

    fn region_begun(&mut self, machine: &mut Machine<()>, region: u32) {
        let now = machine.now();
        if self.active {
            self.regions.push(region);
            self.sink.region_begun(now, region);
        } else if self.is_wanted(machine) && (self.part.from..self.part.to).contains(&now) {
            self.enter_part(machine, now);
        }
    }

    fn region_ended(&mut self, machine: &mut Machine<()>, region: u32) {
        if !self.active {
            return;
        }
        let now = machine.now();
        if !self.is_wanted(machine) {
            return self.leave(machine, now);
        }
        // Of regions that end in another order than they began, those within end, too, and begin again.
        let Some(place) = self.regions.iter().rposition(|open| *open == region) else { return };
        let within = self.regions.split_off(place);
        within.iter().rev().for_each(|open| self.sink.region_ended(now, *open));
        for again in within.into_iter().skip(1) {
            self.regions.push(again);
            self.sink.region_begun(now, again);
        }
    }
}

impl<'a> Teller<'a> {
    fn new(part: &'a Part, sink: &'a mut dyn Sink, bounds: Bounds) -> Self {
        let told = Streamed { begin: 0, end: 0, events: 0, busy: 0, idle: 0, whole: true };
        let cpus = vec![None; bounds.cpus];
        Self { part, sink, told, begun: false, active: false, done: false, cpus, regions: Vec::new() }
    }

    #[inline]
    fn is_wanted(&self, machine: &Machine<()>) -> bool {
        let Some(wanted) = &self.part.regions else { return true };
        machine.regions.iter().any(|region| wanted.get(*region as usize).copied().unwrap_or(false))
    }

    /// Everything that is open begins for the sink.
    #[inline]
    fn enter_part(&mut self, machine: &mut Machine<()>, at: u64) {
        if !self.active {
            self.open(machine, at);
        }
    }

    #[inline(never)]
    fn open(&mut self, machine: &mut Machine<()>, at: u64) {
        self.active = true;
        if !std::mem::replace(&mut self.begun, true) {
            (self.told.begin, self.told.end) = (at, at);
        }
        self.regions.clone_from(&machine.regions);
        self.regions.iter().for_each(|region| self.sink.region_begun(at, *region));
        for thread in 0..=machine.nobody() {
            for frame in &machine.stack_of(thread).frames {
                self.sink.enter(at, thread as u32, frame.function, frame.how);
            }
        }
    }

    /// Everything that is open ends for the sink.
    fn leave(&mut self, machine: &mut Machine<()>, at: u64) {
        for (cpu, slice) in (0..).zip(&mut self.cpus) {
            if let Some(slice) = slice.take() {
                self.sink.cpu(cpu, slice);
            }
        }
        if !std::mem::replace(&mut self.active, false) {
            return;
        }
        for thread in 0..=machine.nobody() {
            for _ in &machine.stack_of(thread).frames {
                self.sink.exit(at, thread as u32);
            }
        }
        while let Some(region) = self.regions.pop() {
            self.sink.region_ended(at, region);
        }
    }

    /// The part ends, or there is no room for more.
    #[inline(never)]
    fn end(&mut self, machine: &mut Machine<()>, at: u64, whole: bool) {
        self.leave(machine, at);
        (self.told.whole, self.done) = (whole, true);
    }

    #[inline]
    fn cpus(&mut self, machine: &Machine<()>, begin: u64, end: u64, holder: Holder) {
        if let [only] = self.cpus.as_mut_slice() {
            let doing = if holder == HALTED { Doing::Halted } else { Doing::Executes };
            let slice = CpuSlice { begin, end, state: CpuState { doing, holder } };
            return extend(only, 0, slice, self.sink);
        }
        for ((cpu, state), known) in (0..).zip(cpus::states(machine, holder)).zip(&mut self.cpus) {
            extend(known, cpu, CpuSlice { begin, end, state }, self.sink);
        }
    }
}

/// Lengthens what a CPU has been doing, or tells of it as it does something else.
#[inline]
fn extend(known: &mut Option<CpuSlice>, cpu: u32, slice: CpuSlice, sink: &mut dyn Sink) {
    match known {
        Some(known) if known.end == slice.begin && known.state == slice.state => known.end = slice.end,
        other => {
            if let Some(done) = other.replace(slice) {
                sink.cpu(cpu, done);
            }
        }
    }
}
