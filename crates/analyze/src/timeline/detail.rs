//! Every call of a window of time.

use super::walk::{Change, Walk};
use super::{extend, Holder, Lane, Slice};
use crate::trace_file::TraceFile;
use crate::Error;
use kerntune_trace::{Event, How};

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
}

/// Reads a window through the trace's index.
///
/// # Errors
/// Any damage in the chunks that the window lies in.
pub fn detail(trace: &TraceFile<'_>, window: &Window) -> Result<Detail, Error> {
    let mut collect = Collect::new(*window, trace.recording.threads.len());
    let mut walk = Walk::new(trace.recording);
    let mut reader = trace.reader()?;
    let mut end = None;
    for number in trace.covering(window.begin, u64::MAX) {
        let chunk = reader.read(number)?;
        // Outside of regions nothing was recorded: there the window ends.
        if end.is_some_and(|end| chunk.header.begin != end) && collect.started {
            break;
        }
        walk.adopt(&chunk)?;
        let mut now = chunk.header.begin;
        let mut decoder = chunk.decoder();
        let format = |source| Error::Format { chunk: number, source };
        while let Some((delta, event)) = decoder.next().map_err(format)? {
            let before = now;
            now = now.saturating_add(delta);
            if !collect.event(&mut walk, before, now, event)? {
                return Ok(collect.finish());
            }
            if let Event::Idle { ns } = event {
                now = now.saturating_add(ns);
            }
        }
        end = Some(now);
    }
    Ok(collect.finish())
}

struct Collect {
    window: Window,
    out: Detail,
    started: bool,
    /// For each thread and depth the call that is open there.
    open: Vec<Vec<usize>>,
    /// The call that [`Until::EndOf`] waits for.
    awaited: Option<usize>,
    operations: u32,
}

impl Collect {
    fn new(window: Window, threads: usize) -> Self {
        let out = Detail { begin: window.begin, end: window.begin, ..Detail::default() };
        Self {
            window,
            out,
            started: false,
            open: vec![Vec::new(); threads + 1],
            awaited: None,
            operations: 0,
        }
    }

    /// One event, of which `before` and `now` are the interval before it. `false` ends the window.
    fn event(&mut self, walk: &mut Walk, before: u64, now: u64, event: Event) -> Result<bool, Error> {
        if now < self.window.begin {
            if let Event::Idle { ns } = event {
                // Perhaps the window begins while the CPU is halted.
                if now.saturating_add(ns) > self.window.begin {
                    self.start(walk, self.window.begin);
                    return Ok(self.idle(now, ns));
                }
            }
            walk.event(event)?;
            return Ok(true);
        }
        self.start(walk, before.max(self.window.begin));
        if let Until::Time(end) = self.window.until {
            if now >= end {
                self.slice(before, end, walk.holder());
                self.out.whole = true;
                return Ok(false);
            }
        }
        self.slice(before, now, walk.holder());
        if let Event::Idle { ns } = event {
            return Ok(self.idle(now, ns));
        }
        if self.out.calls.len() >= self.window.calls {
            return Ok(false);
        }
        let going = match walk.event(event)? {
            Change::Entered => {
                self.enter(walk, now);
                true
            }
            Change::Ended(depth) => self.end_down_to(walk.running, depth, now),
            Change::Switched => true,
            Change::Nothing => event != Event::Operation || self.operation(),
        };
        self.out.whole = !going;
        Ok(going)
    }

    /// The CPU was halted; `false` if the window ends in it.
    fn idle(&mut self, now: u64, ns: u64) -> bool {
        let awake = now.saturating_add(ns);
        let end = match self.window.until {
            Until::Time(end) => end.max(self.window.begin),
            _ => u64::MAX,
        };
        self.slice(now, awake.min(end), Holder { lane: Lane::Idle, user: false });
        self.out.whole = awake >= end;
        awake < end
    }

    /// What is open where the window begins.
    fn start(&mut self, walk: &Walk, begin: u64) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        (self.out.begin, self.out.end) = (begin, begin);
        for (thread, stack) in walk.stacks.iter().enumerate() {
            for (depth, &(function, how)) in stack.frames.iter().enumerate() {
                self.push(thread, depth, function, how, begin, true);
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

    fn enter(&mut self, walk: &Walk, now: u64) {
        let frames = walk.stacks.get(walk.running).map_or(&[][..], |stack| &stack.frames);
        let Some(&(function, how)) = frames.last() else { return };
        let is_awaited = self.window.until == Until::EndOf(function) && now == self.window.begin;
        if is_awaited && self.awaited.is_none() {
            self.awaited = Some(self.out.calls.len());
        }
        self.push(walk.running, frames.len() - 1, function, how, now, false);
    }

    /// `false` if the awaited call ended.
    fn end_down_to(&mut self, thread: usize, depth: usize, now: u64) -> bool {
        let Some(open) = self.open.get_mut(thread) else { return true };
        let mut going = true;
        while open.len() > depth {
            let Some(at) = open.pop() else { break };
            if let Some(call) = self.out.calls.get_mut(at) {
                (call.end, call.cut_end) = (now, false);
            }
            going &= self.awaited != Some(at);
        }
        going
    }

    fn operation(&mut self) -> bool {
        self.operations += 1;
        !matches!(self.window.until, Until::Operations(wanted) if self.operations >= wanted)
    }

    fn slice(&mut self, begin: u64, end: u64, holder: Holder) {
        let begin = begin.max(self.out.begin);
        if end > begin {
            extend(&mut self.out.slices, Slice { begin, end, holder });
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
