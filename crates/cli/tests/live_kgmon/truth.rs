//! The recorder's view of the calls that kgmon counted, in kgmon's terms.
//!
//! kgmon reads the clock with `ktime_get_mono_fast_ns` at a snapshot, with interrupts off, and
//! calls nothing else until all counters are read. In the trace, this entry from code in no known
//! function marks the snapshot. The recorder's calls between two marks must equal those of the
//! second dump.

use crate::support::arcs::{caller, function, ArcCounts, SNAPSHOT};
use kerntune_analyze::events::{replay, EventVisitor, ReplayState, TraceBounds};
use kerntune_analyze::TraceFile;
use kerntune_kernel::Symbols;
use kerntune_kgmon::KgmonDump;
use kerntune_machine::RunOutcome;
use kerntune_trace::EnterKind;
use std::collections::BTreeSet;

/// Counts calls between snapshots.
struct CallCounter {
    snapshot: u32,
    unknown: u32,
    /// Counts of each window between two snapshots, and of one before the first.
    windows: Vec<ArcCounts>,
}

impl EventVisitor for CallCounter {
    type PerFrame = ();

    fn enter(&mut self, machine: &mut ReplayState<()>, function: u32, how: EnterKind) {
        let frames = machine.frames();
        if function == self.snapshot && frames.last().is_some_and(|top| top.function == self.unknown) {
            self.windows.push(ArcCounts::new());
        }
        if matches!(how, EnterKind::Call | EnterKind::Jump) {
            let from = caller(frames, how, self.unknown);
            if let Some(arcs) = self.windows.last_mut() {
                *arcs.entry((from, function)).or_default() += 1;
            }
        }
    }
}

/// Returns the recorder's calls between snapshots, in order.
pub fn recorded(outcome: &RunOutcome, symbols: &Symbols) -> Vec<ArcCounts> {
    let recording = outcome.recording.as_ref().unwrap();
    let unknown = symbols.functions().len() as u32;
    let snapshot = function(symbols, SNAPSHOT);
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut calls = CallCounter { snapshot, unknown, windows: vec![ArcCounts::new()] };
    let mut machine = ReplayState::new(TraceBounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut calls, &reader.read(number).unwrap()).unwrap();
    }
    calls.windows
}

/// Collects functions called by anything but one program: other processes, kernel threads,
/// interrupts.
struct OtherCounter {
    ours: Vec<bool>,
    called: BTreeSet<u32>,
}

impl EventVisitor for OtherCounter {
    type PerFrame = ();

    fn enter(&mut self, machine: &mut ReplayState<()>, function: u32, how: EnterKind) {
        let ours = self.ours.get(machine.running()).copied().unwrap_or(false);
        let interrupts = how == EnterKind::Interrupt
            || machine.frames().iter().any(|frame| frame.how == EnterKind::Interrupt);
        if !ours || interrupts {
            self.called.insert(function);
        }
    }
}

/// Returns the functions that anything but `program` called.
pub fn of_others(outcome: &RunOutcome, program: &str) -> BTreeSet<u32> {
    let recording = outcome.recording.as_ref().unwrap();
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let ours = recording.threads.iter().map(|thread| thread.comm == program).collect();
    let mut others = OtherCounter { ours, called: BTreeSet::new() };
    let mut machine = ReplayState::new(TraceBounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut others, &reader.read(number).unwrap()).unwrap();
    }
    others.called
}

/// Returns the calls of a dump by function number.
pub fn counted(dump: &KgmonDump, symbols: &Symbols) -> ArcCounts {
    let unknown = symbols.functions().len() as u32;
    let function = |address: u64| symbols.lookup(address).map_or(unknown, |at| symbols.whole(at) as u32);
    let mut arcs = ArcCounts::new();
    for arc in &dump.arcs {
        *arcs.entry((function(arc.caller.wrapping_sub(1)), function(arc.callee))).or_default() += arc.calls;
    }
    arcs
}
