//! The recorder's view of windows whose ends the collector knows too: calls by return address,
//! times, and the functions hit by the sampler's interrupts.
//!
//! kgmon reads the clock with `ktime_get_mono_fast_ns` at a snapshot, with interrupts off. In the
//! trace, this call from code in no known function marks the snapshot. Samples lie between two
//! calls of `perf_read`, with which the collector reads the observed time.
//!
//! An interrupt may arrive between a call and the callee's first instruction. The recorder has not
//! entered the callee then, but the interrupted address, which the sample has, is in the callee.
//! This case is recognized by the time until the entry: exactly the instruction that returns from
//! the interrupt.

use crate::support::arcs::{caller, function, name, ArcCounts, SNAPSHOT};
use kerntune_analyze::events::{replay, EventVisitor, ReplayState, StackFrame, TraceBounds};
use kerntune_analyze::TraceFile;
use kerntune_kernel::Symbols;
use kerntune_machine::RunOutcome;
use kerntune_profile::Profile;
use kerntune_trace::{EnterKind, Event, EventWeights};
use std::collections::{BTreeMap, BTreeSet};

const COUNTERS_READ: &str = "perf_read";
/// Function that takes a sample of the software clock.
const SAMPLER: &str = "perf_swevent_hrtimer";

/// Duration of the instruction that returns from an interrupt, in recorded time.
const RETURN_NS: u64 = 1;

/// Event that separates windows of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowBoundary {
    /// A snapshot of kgmon.
    Snapshots,
    /// A read of the sample counters.
    Samples,
}

/// Figures of the recorder between two such events.
#[derive(Debug, Default)]
pub struct TraceWindow {
    pub arcs: ArcCounts,
    /// Self time of each function, in ns.
    pub own_ns: BTreeMap<u32, u64>,
    /// Functions that were entered.
    pub entered: BTreeSet<u32>,
    /// Samples by interrupted function, without user code.
    pub samples: BTreeMap<u32, u64>,
}

impl TraceWindow {
    /// Adds up several windows.
    pub fn sum(windows: &[Self]) -> Self {
        let mut sum = Self::default();
        for window in windows {
            window.arcs.iter().for_each(|(key, calls)| *sum.arcs.entry(*key).or_default() += calls);
            window.samples.iter().for_each(|(key, count)| *sum.samples.entry(*key).or_default() += count);
            window.own_ns.iter().for_each(|(key, ns)| *sum.own_ns.entry(*key).or_default() += ns);
        }
        sum
    }
}

struct WindowCollector {
    parts: WindowBoundary,
    snapshot: u32,
    read: u32,
    sampler: u32,
    unknown: u32,
    windows: Vec<TraceWindow>,
    /// Samples taken by interrupts that have not ended: another may arrive in the softirqs of one,
    /// or in another thread.
    taken: Vec<SampleHit>,
    /// Samples taken by the last interrupt, and the time of its end.
    ended: Option<(SampleHit, u64)>,
}

/// Samples taken by an interrupt and by earlier ones at the same instruction.
#[derive(Debug, Clone, Copy)]
struct SampleHit {
    thread: usize,
    /// Number of frames open at the interrupt.
    depth: usize,
    /// Innermost of these frames.
    function: u32,
    samples: u64,
}

impl SampleHit {
    fn is_at(&self, thread: usize, depth: usize) -> bool {
        (self.thread, self.depth) == (thread, depth)
    }
}

impl WindowCollector {
    /// Returns the samples of the last interrupt, if nothing was executed since its end.
    fn just_ended(&mut self, machine: &ReplayState<()>) -> Option<SampleHit> {
        let (hit, at) = self.ended.take()?;
        let is_here = hit.is_at(machine.running(), machine.frames().len());
        (is_here && machine.now() == at + RETURN_NS).then_some(hit)
    }

    /// Removes the samples of the interrupt at this depth of a thread.
    fn take(&mut self, thread: usize, depth: usize) -> Option<SampleHit> {
        let at = self.taken.iter().position(|hit| hit.is_at(thread, depth))?;
        Some(self.taken.swap_remove(at))
    }

    /// Counts a sample at the entry of the sampler.
    fn sample(&mut self, machine: &ReplayState<()>) {
        let frames = machine.frames();
        let depth = frames.iter().rposition(|frame| frame.how == EnterKind::Interrupt);
        let hit = depth.and_then(|depth| Some((depth, frames.get(depth.checked_sub(1)?)?.function)));
        if let (Some((depth, function)), Some(window)) = (hit, self.windows.last_mut()) {
            *window.samples.entry(function).or_default() += 1;
            let thread = machine.running();
            let before = self.take(thread, depth).map_or(0, |hit| hit.samples);
            self.taken.push(SampleHit { thread, depth, function, samples: before + 1 });
        }
    }
}

impl EventVisitor for WindowCollector {
    type PerFrame = ();

    fn pass(&mut self, machine: &mut ReplayState<()>, ns: u64, _: EventWeights, _: &Event) {
        if let (Some(window), Some(top)) = (self.windows.last_mut(), machine.frames().last()) {
            *window.own_ns.entry(top.function).or_default() += ns;
        }
    }

    fn enter(&mut self, machine: &mut ReplayState<()>, function: u32, how: EnterKind) {
        let frames = machine.frames();
        let begins = match self.parts {
            WindowBoundary::Snapshots => {
                function == self.snapshot && frames.last().is_some_and(|top| top.function == self.unknown)
            }
            WindowBoundary::Samples => function == self.read,
        };
        if begins {
            self.windows.push(TraceWindow::default());
            (self.taken, self.ended) = (Vec::new(), None);
        }
        if function == self.sampler {
            self.sample(machine);
        }
        let interrupted = self.just_ended(machine);
        if how == EnterKind::Interrupt {
            self.taken.extend(interrupted);
        }
        if let Some(window) = self.windows.last_mut() {
            window.entered.insert(function);
        }
        if matches!(how, EnterKind::Call | EnterKind::Jump) {
            let from = caller(machine.frames(), how, self.unknown);
            if let Some(window) = self.windows.last_mut() {
                if let Some(hit) = interrupted {
                    *window.samples.get_mut(&hit.function).unwrap() -= hit.samples;
                    *window.samples.entry(function).or_default() += hit.samples;
                }
                *window.arcs.entry((from, function)).or_default() += 1;
            }
        }
    }

    fn ended(&mut self, machine: &mut ReplayState<()>, frame: StackFrame<()>) {
        let (thread, depth) = (machine.running(), machine.frames().len());
        if frame.how == EnterKind::Interrupt {
            self.ended = self.take(thread, depth).map(|hit| (hit, machine.now())).or(self.ended);
        }
    }
}

/// Returns the windows of a recording, in order.
pub fn recorded(outcome: &RunOutcome, symbols: &Symbols, parts: WindowBoundary) -> Vec<TraceWindow> {
    let recording = outcome.recording.as_ref().unwrap();
    let unknown = symbols.functions().len() as u32;
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut seen = WindowCollector {
        parts,
        snapshot: function(symbols, SNAPSHOT),
        read: function(symbols, COUNTERS_READ),
        sampler: function(symbols, SAMPLER),
        unknown,
        windows: vec![TraceWindow::default()],
        taken: Vec::new(),
        ended: None,
    };
    let mut machine = ReplayState::new(TraceBounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut seen, &reader.read(number).unwrap()).unwrap();
    }
    seen.windows
}

/// Returns the functions that were entered at any time of the recording, in any way.
pub fn entered(windows: &[TraceWindow]) -> BTreeSet<u32> {
    windows.iter().flat_map(|window| &window.entered).copied().collect()
}

/// A function: the collector's samples, the sampler's interrupts that hit it, and its exact time in
/// units of a sample.
#[derive(Debug)]
pub struct FunctionSamples {
    pub name: String,
    pub sampled: u64,
    pub hit: u64,
    pub exact: f64,
}

/// Returns all functions that one of the three sources knows, by descending time. Functions of one
/// name share a row.
pub fn rows(profile: &Profile, window: &TraceWindow, symbols: &Symbols) -> Vec<FunctionSamples> {
    let sampled = profile.manifest.sampled.as_ref().unwrap();
    let mut rows: BTreeMap<String, FunctionSamples> = BTreeMap::new();
    let mut row = |name: String, change: &dyn Fn(&mut FunctionSamples)| {
        change(rows.entry(name.clone()).or_insert(FunctionSamples { name, sampled: 0, hit: 0, exact: 0.0 }));
    };
    let names: BTreeMap<_, _> =
        profile.tables.symbols.iter().map(|symbol| (symbol.function, symbol.name.as_str())).collect();
    for function in &profile.tables.functions {
        row(names[&function.function].into(), &|row| row.sampled += sampled.samples_in(function.self_ticks));
    }
    window.samples.iter().for_each(|(at, count)| row(name(symbols, *at), &|row| row.hit += count));
    let each = sampled.sample_ns.get() as f64;
    window.own_ns.iter().for_each(|(at, ns)| row(name(symbols, *at), &|row| row.exact += *ns as f64 / each));
    let mut rows: Vec<FunctionSamples> = rows.into_values().collect();
    rows.sort_by(|a, b| (b.sampled as f64).max(b.exact).total_cmp(&(a.sampled as f64).max(a.exact)));
    rows
}
