//! All calls of a window of time.

use super::cpus::{self, CpuSlice};
use super::{extend, holder, CpuHolder, HolderSlice, HALTED};
use crate::events::{replay, ChunkOpening, EventVisitor, ReplayState, StackFrame, TraceBounds};
use crate::trace_file::TraceFile;
use crate::Error;
use kerntune_trace::{EnterKind, Event, EventWeights};

/// End of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// Virtual time, in ticks.
    Time(u64),
    /// After this number of operations.
    Operations(u32),
    /// At the end of the call of this function that begins where the window begins.
    EndOf(u32),
}

/// A window of time for [`detail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetailWindow {
    /// Virtual time of its beginning, in ticks.
    pub begin: u64,
    /// Its end.
    pub until: WindowEnd,
    /// Maximum number of calls; the window ends earlier if there are more.
    pub calls: usize,
}

impl DetailWindow {
    /// Returns the virtual time of the window's end if that is fixed, else the maximum.
    fn end(&self) -> u64 {
        match self.until {
            WindowEnd::Time(end) => end,
            _ => u64::MAX,
        }
    }
}

/// A call, or the part of a call within a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowCall {
    /// Virtual time of the entry, or of the window's beginning if that is later, in ticks.
    pub begin: u64,
    /// Virtual time of the exit, or of the window's end if that is earlier. The difference to
    /// `begin` includes interrupts and time in which the thread did not run.
    pub end: u64,
    /// Number of the thread on whose stack the call lies. Interrupts lie on the stack of the thread
    /// that they interrupt.
    pub thread: u32,
    /// Number of frames below it.
    pub depth: u32,
    /// Number of the function.
    pub function: u32,
    /// Kind of entry.
    pub how: EnterKind,
    /// True if the call began before the window.
    pub cut_begin: bool,
    /// True if the call ended after the window.
    pub cut_end: bool,
}

/// Calls and CPU holders of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowDetail {
    /// Virtual time of its beginning, in ticks.
    pub begin: u64,
    /// Virtual time of its end, or the time up to which the limit of calls allowed to read.
    pub end: u64,
    /// True if the window was read up to its requested end.
    pub whole: bool,
    /// The calls, sorted by beginning; callers before callees.
    pub calls: Vec<WindowCall>,
    /// Holders of the executing CPU, without a gap.
    pub slices: Vec<HolderSlice>,
    /// States of each of several CPUs, without a gap; empty with one CPU.
    pub cpus: Vec<Vec<CpuSlice>>,
}

/// Reads a window through the trace's index.
///
/// # Errors
/// Damage in a chunk that overlaps the window.
pub fn detail(trace: &TraceFile<'_>, window: &DetailWindow) -> Result<WindowDetail, Error> {
    let bounds = TraceBounds::of(trace.recording);
    let (mut collect, mut machine) = (DetailCollector::new(*window, bounds), ReplayState::new(bounds));
    let mut reader = trace.reader()?;
    for number in trace.covering(window.begin, u64::MAX) {
        let chunk = reader.read(number)?;
        // Nothing is recorded outside of regions: the window ends at such a gap.
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

/// Index of an open call in [`WindowDetail::calls`]; `None` before the window.
type CallNumber = Option<usize>;

struct DetailCollector {
    window: DetailWindow,
    out: WindowDetail,
    started: bool,
    done: bool,
    /// Index of the call that [`WindowEnd::EndOf`] waits for.
    awaited: Option<usize>,
    operations: u32,
}

impl EventVisitor for DetailCollector {
    type PerFrame = CallNumber;

    fn begin(&mut self, machine: &mut ReplayState<CallNumber>, opening: &ChunkOpening<'_>) {
        machine.continue_from(self, opening);
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn pass(&mut self, machine: &mut ReplayState<CallNumber>, ns: u64, _: EventWeights, event: &Event) {
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

    fn idle(&mut self, machine: &mut ReplayState<CallNumber>, ns: u64) {
        let (asleep, awake) = (machine.now(), machine.now() + ns);
        if awake <= self.window.begin && asleep < self.window.begin {
            return;
        }
        // The window may begin while the CPU is halted.
        self.start(machine, self.window.begin);
        let end = self.window.end().max(self.window.begin);
        self.slice(machine, asleep, awake.min(end), HALTED);
        if awake >= end {
            self.end(true);
        }
    }

    fn enter(&mut self, machine: &mut ReplayState<CallNumber>, function: u32, how: EnterKind) -> CallNumber {
        let now = machine.now();
        if !self.started {
            return None;
        }
        let is_awaited = self.window.until == WindowEnd::EndOf(function) && now == self.window.begin;
        if is_awaited && self.awaited.is_none() {
            self.awaited = Some(self.out.calls.len());
        }
        self.add(machine.running(), machine.frames().len(), function, how, now, false)
    }

    fn ended(&mut self, machine: &mut ReplayState<CallNumber>, frame: StackFrame<CallNumber>) {
        let Some(at) = frame.data else { return };
        let call = &mut self.out.calls[at];
        (call.end, call.cut_end) = (machine.now(), false);
        if self.awaited == Some(at) {
            self.end(true);
        }
    }

    fn operation(&mut self, _: &mut ReplayState<CallNumber>) {
        if self.started {
            self.operations += 1;
            if matches!(self.window.until, WindowEnd::Operations(wanted) if self.operations >= wanted) {
                self.end(true);
            }
        }
    }
}

impl DetailCollector {
    fn new(window: DetailWindow, bounds: TraceBounds) -> Self {
        let cpus = cpus::lanes(bounds);
        let out = WindowDetail { begin: window.begin, end: window.begin, cpus, ..WindowDetail::default() };
        Self { window, out, started: false, done: false, awaited: None, operations: 0 }
    }

    /// Ends the window; `whole` is `false` if it exceeds the limit of calls.
    fn end(&mut self, whole: bool) {
        (self.out.whole, self.done) = (whole, true);
    }

    /// Begins the window with the calls that are open.
    fn start(&mut self, machine: &mut ReplayState<CallNumber>, begin: u64) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        (self.out.begin, self.out.end) = (begin, begin);
        for thread in 0..=machine.unknown_thread() {
            for (depth, frame) in machine.frames_of(thread).iter_mut().enumerate() {
                frame.data = self.add(thread, depth, frame.function, frame.how, begin, true);
            }
        }
    }

    /// Adds a call and returns its index.
    fn add(
        &mut self,
        thread: usize,
        depth: usize,
        function: u32,
        how: EnterKind,
        begin: u64,
        cut_begin: bool,
    ) -> CallNumber {
        self.out.calls.push(WindowCall {
            begin,
            // Until the call ends.
            end: u64::MAX,
            thread: thread as u32,
            depth: depth as u32,
            function,
            how,
            cut_begin,
            cut_end: true,
        });
        Some(self.out.calls.len() - 1)
    }

    fn slice(&mut self, machine: &ReplayState<CallNumber>, begin: u64, end: u64, holder: CpuHolder) {
        let begin = begin.max(self.out.begin);
        if end > begin {
            let cpu = if holder == HALTED { 0 } else { machine.cpu() as u32 };
            extend(&mut self.out.slices, HolderSlice { begin, end, holder, cpu });
            for (state, slices) in cpus::states(machine, holder).zip(&mut self.out.cpus) {
                cpus::extend(slices, CpuSlice { begin, end, state });
            }
        }
        self.out.end = self.out.end.max(end);
    }

    fn finish(mut self) -> WindowDetail {
        for call in self.out.calls.iter_mut().filter(|call| call.cut_end) {
            call.end = self.out.end.max(call.begin);
        }
        self.out
    }
}
