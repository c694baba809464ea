//! Every call of a window of time.

use super::cpus::{self, CpuSlice};
use super::{extend, holder, Holder, Slice, HALTED};
use crate::events::{replay, Bounds, Frame, Machine, Visitor};
use crate::trace_file::TraceFile;
use crate::Error;
use kerntune_trace::{Event, How, Weights};

/// When a window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// At this virtual time, ns.
    Time(u64),
    /// When so many operations are done.
    Operations(u32),
    /// When the call of this function that began where the window begins has ended.
    EndOf(u32),
}

/// What to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Virtual time at which it begins, ns.
    pub begin: u64,
    /// When it ends.
    pub until: Until,
    /// It ends earlier where there are more calls than this.
    pub calls: usize,
}

impl Window {
    /// Virtual time at which it ends, ns, if that is what ends it.
    fn end(&self) -> u64 {
        match self.until {
            Until::Time(end) => end,
            _ => u64::MAX,
        }
    }
}

/// A call, or the part of one that lies in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// When it began, or the window did; virtual ns.
    pub begin: u64,
    /// When it ended, or the window did. Includes what interrupted it and the time in which its
    /// thread did not run.
    pub end: u64,
    /// Number of the thread on whose stack it lies: interrupts lie on the stack that they hit.
    pub thread: u32,
    /// Frames below it.
    pub depth: u32,
    /// Number of the function.
    pub function: u32,
    /// How it came to run.
    pub how: How,
    /// It began before the window.
    pub cut_begin: bool,
    /// It ended after the window.
    pub cut_end: bool,
}

/// What happened in a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// Virtual time, ns.
    pub begin: u64,
    /// Virtual time at which it ended, or from where on there would have been too many calls.
    pub end: u64,
    /// Whether it goes as far as was asked for.
    pub whole: bool,
    /// The calls in the order in which they began, callers before callees.
    pub calls: Vec<Call>,
    /// Who had the CPU, without a gap.
    pub slices: Vec<Slice>,
    /// What each of several CPUs did, without a gap; empty of one.
    pub cpus: Vec<Vec<CpuSlice>>,
}

/// Reads a window through the trace's index.
///
/// # Errors
/// Any damage in the chunks that the window lies in.
pub fn detail(trace: &TraceFile<'_>, window: &Window) -> Result<Detail, Error> {
    let bounds = Bounds::of(trace.recording);
    let (mut collect, mut machine) = (Collect::new(*window, bounds), Machine::new(bounds));
    let mut reader = trace.reader()?;
    for number in trace.covering(window.begin, u64::MAX) {
        let chunk = reader.read(number)?;
        // Outside of regions nothing was recorded: there the window ends.
        if collect.started && chunk.header.begin != machine.now() {
            break;
        }
        replay(&mut machine, &mut collect, &chunk)?;
        if collect.done {
            break;
        }
    }
    Ok(collect.finish())
}

struct Collect {
    window: Window,
    out: Detail,
    started: bool,
    done: bool,
    /// For each thread and depth the call that is open there.
    open: Vec<Vec<usize>>,
    /// The call that [`Until::EndOf`] waits for.
    awaited: Option<usize>,
    operations: u32,
}

impl Visitor for Collect {
    type Frame = ();

    fn is_done(&self) -> bool {
        self.done
    }

    fn pass(&mut self, machine: &mut Machine<()>, ns: u64, _: Weights, event: &Event) {
        let (before, now) = (machine.now(), machine.now() + ns);
        if now < self.window.begin {
            return;
        }
        self.start(machine, before.max(self.window.begin));
        let end = self.window.end();
        self.slice(machine, before, now.min(end), holder(machine));
        if now >= end {
            self.end(true);
        } else if self.out.calls.len() >= self.window.calls && !matches!(event, Event::Idle { .. }) {
            self.end(false);
        }
    }

    fn idle(&mut self, machine: &mut Machine<()>, ns: u64) {
        let (asleep, awake) = (machine.now(), machine.now() + ns);
        if awake <= self.window.begin && asleep < self.window.begin {
            return;
        }
        // Perhaps the window begins while the CPU is halted.
        self.start(machine, self.window.begin);
        let end = self.window.end().max(self.window.begin);
        self.slice(machine, asleep, awake.min(end), HALTED);
        if awake >= end {
            self.end(true);
        }
    }

    fn enter(&mut self, machine: &mut Machine<()>, function: u32, how: How) {
        let now = machine.now();
        if self.started {
            let is_awaited = self.window.until == Until::EndOf(function) && now == self.window.begin;
            if is_awaited && self.awaited.is_none() {
                self.awaited = Some(self.out.calls.len());
            }
            self.push(machine.running(), machine.frames().len(), function, how, now, false);
        }
    }

    fn ended(&mut self, machine: &mut Machine<()>, _: Frame<()>) {
        let open = &mut self.open[machine.running()];
        while open.len() > machine.frames().len() {
            let Some(at) = open.pop() else { break };
            if let Some(call) = self.out.calls.get_mut(at) {
                (call.end, call.cut_end) = (machine.now(), false);
            }
            if self.awaited == Some(at) {
                (self.out.whole, self.done) = (true, true);
            }
        }
    }

    fn operation(&mut self, _: &mut Machine<()>) {
        if self.started {
            self.operations += 1;
            if matches!(self.window.until, Until::Operations(wanted) if self.operations >= wanted) {
                self.end(true);
            }
        }
    }
}

impl Collect {
    fn new(window: Window, bounds: Bounds) -> Self {
        let cpus = cpus::lanes(bounds);
        let out = Detail { begin: window.begin, end: window.begin, cpus, ..Detail::default() };
        Self {
            window,
            out,
            started: false,
            done: false,
            open: vec![Vec::new(); bounds.threads + 2],
            awaited: None,
            operations: 0,
        }
    }

    /// The window ends, or there is no room for more.
    fn end(&mut self, whole: bool) {
        (self.out.whole, self.done) = (whole, true);
    }

    /// What is open where the window begins.
    fn start(&mut self, machine: &mut Machine<()>, begin: u64) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        (self.out.begin, self.out.end) = (begin, begin);
        for thread in 0..self.open.len() {
            for (depth, frame) in machine.stack_of(thread).frames.iter().enumerate() {
                self.push(thread, depth, frame.function, frame.how, begin, true);
            }
        }
    }

    fn push(&mut self, thread: usize, depth: usize, function: u32, how: How, begin: u64, cut_begin: bool) {
        let Some(open) = self.open.get_mut(thread) else { return };
        open.truncate(depth);
        open.push(self.out.calls.len());
        self.out.calls.push(Call {
            begin,
            // Until it is seen to end.
            end: u64::MAX,
            thread: thread as u32,
            depth: depth as u32,
            function,
            how,
            cut_begin,
            cut_end: true,
        });
    }

    fn slice(&mut self, machine: &Machine<()>, begin: u64, end: u64, holder: Holder) {
        let begin = begin.max(self.out.begin);
        if end > begin {
            let cpu = if holder == HALTED { 0 } else { machine.cpu() as u32 };
            extend(&mut self.out.slices, Slice { begin, end, holder, cpu });
            for (state, slices) in cpus::states(machine, holder).zip(&mut self.out.cpus) {
                cpus::extend(slices, CpuSlice { begin, end, state });
            }
        }
        self.out.end = self.out.end.max(end);
    }

    fn finish(mut self) -> Detail {
        for call in self.out.calls.iter_mut().filter(|call| call.cut_end) {
            call.end = self.out.end.max(call.begin);
        }
        self.out
    }
}
