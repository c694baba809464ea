//! What the recorder saw between two moments that the collector knows, too: calls as return addresses have them, times, and
//! what the sampler's interrupts hit.
//!
//! kgmon reads the clock with `ktime_get_mono_fast_ns` at the moment of a snapshot, with interrupts off. That call, from code
//! in no known function, stands in the trace for the snapshot. Samples are those between two calls of `perf_read`, by which
//! the collector asks how much time was watched.
//!
//! An interrupt may come between a call and the callee's first instruction. The recorder has not entered the callee then; the
//! interrupted address, which is what a sample has, is the callee's. It is known by the time to that entry: the instruction that
//! ends the interrupt, and no other.

use crate::support::arcs::{caller, function, name, Arcs, SNAPSHOT};
use kerntune_analyze::events::{replay, Bounds, Frame, Machine, Visitor};
use kerntune_analyze::TraceFile;
use kerntune_kernel::Symbols;
use kerntune_machine::Outcome;
use kerntune_profile::Profile;
use kerntune_trace::{Event, How, Weights};
use std::collections::{BTreeMap, BTreeSet};

const COUNTERS_READ: &str = "perf_read";
/// What takes a sample of the software clock.
const SAMPLER: &str = "perf_swevent_hrtimer";

/// The instruction that returns from an interrupt, in the time of the recording.
const RETURN_NS: u64 = 1;

/// What parts the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Snapshots of kgmon.
    Snapshots,
    /// Times at which counters of samples are read.
    Samples,
}

/// What happened between two snapshots.
#[derive(Debug, Default)]
pub struct Window {
    pub arcs: Arcs,
    /// ns in each function itself.
    pub own_ns: BTreeMap<u32, u64>,
    /// Functions that were entered.
    pub entered: BTreeSet<u32>,
    /// Samples by the function that was interrupted; user code is none.
    pub samples: BTreeMap<u32, u64>,
}

impl Window {
    /// What happened in all of them.
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

struct Seen {
    parts: Parts,
    snapshot: u32,
    read: u32,
    sampler: u32,
    unknown: u32,
    windows: Vec<Window>,
    /// Samples of the interrupt that is under way.
    taken: Option<Hit>,
    /// Those of the interrupt that ended last, and when.
    ended: Option<(Hit, u64)>,
}

/// Samples that an interrupt took, and others that came before it at the same instruction.
#[derive(Debug, Clone, Copy)]
struct Hit {
    thread: usize,
    /// Frames that were open when the interrupt came.
    depth: usize,
    /// The innermost of them.
    function: u32,
    samples: u64,
}

impl Hit {
    fn is_at(&self, thread: usize, depth: usize) -> bool {
        (self.thread, self.depth) == (thread, depth)
    }
}

impl Seen {
    /// Samples of the interrupt that ended last, if nothing was executed since.
    fn just_ended(&mut self, machine: &Machine<()>) -> Option<Hit> {
        let (hit, at) = self.ended.take()?;
        let is_here = hit.is_at(machine.running(), machine.frames().len());
        (is_here && machine.now() == at + RETURN_NS).then_some(hit)
    }

    /// The sampler begins.
    fn sample(&mut self, machine: &Machine<()>) {
        let frames = machine.frames();
        let depth = frames.iter().rposition(|frame| frame.how == How::Interrupt);
        let hit = depth.and_then(|depth| Some((depth, frames.get(depth.checked_sub(1)?)?.function)));
        if let (Some((depth, function)), Some(window)) = (hit, self.windows.last_mut()) {
            *window.samples.entry(function).or_default() += 1;
            let thread = machine.running();
            let before = self.taken.filter(|hit| hit.is_at(thread, depth)).map_or(0, |hit| hit.samples);
            self.taken = Some(Hit { thread, depth, function, samples: before + 1 });
        }
    }
}

impl Visitor for Seen {
    type Frame = ();

    fn pass(&mut self, machine: &mut Machine<()>, ns: u64, _: Weights, _: &Event) {
        if let (Some(window), Some(top)) = (self.windows.last_mut(), machine.frames().last()) {
            *window.own_ns.entry(top.function).or_default() += ns;
        }
    }

    fn enter(&mut self, machine: &mut Machine<()>, function: u32, how: How) {
        let frames = machine.frames();
        let begins = match self.parts {
            Parts::Snapshots => {
                function == self.snapshot && frames.last().is_some_and(|top| top.function == self.unknown)
            }
            Parts::Samples => function == self.read,
        };
        if begins {
            self.windows.push(Window::default());
            (self.taken, self.ended) = (None, None);
        }
        if function == self.sampler {
            self.sample(machine);
        }
        let interrupted = self.just_ended(machine);
        if how == How::Interrupt && interrupted.is_some() {
            self.taken = interrupted;
        }
        if let Some(window) = self.windows.last_mut() {
            window.entered.insert(function);
        }
        if matches!(how, How::Call | How::Jump) {
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

    fn ended(&mut self, machine: &mut Machine<()>, frame: Frame<()>) {
        let (thread, depth) = (machine.running(), machine.frames().len());
        let taken = self.taken.take_if(|hit| frame.how == How::Interrupt && hit.is_at(thread, depth));
        if let Some(hit) = taken {
            self.ended = Some((hit, machine.now()));
        }
    }
}

/// What the recorder saw between each two of such moments, in order.
pub fn recorded(outcome: &Outcome, symbols: &Symbols, parts: Parts) -> Vec<Window> {
    let recording = outcome.recording.as_ref().unwrap();
    let unknown = symbols.functions().len() as u32;
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut seen = Seen {
        parts,
        snapshot: function(symbols, SNAPSHOT),
        read: function(symbols, COUNTERS_READ),
        sampler: function(symbols, SAMPLER),
        unknown,
        windows: vec![Window::default()],
        taken: None,
        ended: None,
    };
    let mut machine = Machine::new(Bounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut seen, &reader.read(number).unwrap()).unwrap();
    }
    seen.windows
}

/// Functions that were entered at any time of the recording, by whatever way.
pub fn entered(windows: &[Window]) -> BTreeSet<u32> {
    windows.iter().flat_map(|window| &window.entered).copied().collect()
}

/// One function: samples of the collector, interrupts of the sampler that hit it, and its exact time in units of a sample.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub sampled: u64,
    pub hit: u64,
    pub exact: f64,
}

/// All functions that one of the three knows, those with the most time first. Functions of one name are a row.
pub fn rows(profile: &Profile, window: &Window, symbols: &Symbols) -> Vec<Row> {
    let sampled = profile.manifest.sampled.as_ref().unwrap();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut row = |name: String, change: &dyn Fn(&mut Row)| {
        change(rows.entry(name.clone()).or_insert(Row { name, sampled: 0, hit: 0, exact: 0.0 }));
    };
    let names: BTreeMap<_, _> =
        profile.tables.symbols.iter().map(|symbol| (symbol.function, symbol.name.as_str())).collect();
    for function in &profile.tables.functions {
        row(names[&function.function].into(), &|row| row.sampled += sampled.samples_in(function.net_ns));
    }
    window.samples.iter().for_each(|(at, count)| row(name(symbols, *at), &|row| row.hit += count));
    let each = sampled.sample_ns.get() as f64;
    window.own_ns.iter().for_each(|(at, ns)| row(name(symbols, *at), &|row| row.exact += *ns as f64 / each));
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by(|a, b| (b.sampled as f64).max(b.exact).total_cmp(&(a.sampled as f64).max(a.exact)));
    rows
}
