//! What the recorder saw of the calls that kgmon counted, in kgmon's terms.
//!
//! kgmon reads the clock with `ktime_get_mono_fast_ns` at the moment of a snapshot, with interrupts off, and calls nothing
//! else until all counters are read. So that entry, from code that is in no known function, stands in the trace for the
//! snapshot, and between two of them the recorder's calls are what the second dump has to say.

use crate::support::arcs::{caller, function, Arcs, SNAPSHOT};
use kerntune_analyze::events::{replay, Bounds, Machine, Visitor};
use kerntune_analyze::TraceFile;
use kerntune_kernel::Symbols;
use kerntune_kgmon::Dump;
use kerntune_machine::Outcome;
use kerntune_trace::How;
use std::collections::BTreeSet;

/// Counts entries between snapshots.
struct Calls {
    snapshot: u32,
    unknown: u32,
    /// One for each window between two snapshots, and one before the first.
    windows: Vec<Arcs>,
}

impl Visitor for Calls {
    type Frame = ();

    fn enter(&mut self, machine: &mut Machine<()>, function: u32, how: How) {
        let frames = machine.frames();
        if function == self.snapshot && frames.last().is_some_and(|top| top.function == self.unknown) {
            self.windows.push(Arcs::new());
        }
        if matches!(how, How::Call | How::Jump) {
            let from = caller(frames, how, self.unknown);
            if let Some(arcs) = self.windows.last_mut() {
                *arcs.entry((from, function)).or_default() += 1;
            }
        }
    }
}

/// What the recorder saw between each two snapshots, in order.
pub fn recorded(outcome: &Outcome, symbols: &Symbols) -> Vec<Arcs> {
    let recording = outcome.recording.as_ref().unwrap();
    let unknown = symbols.functions().len() as u32;
    let snapshot = function(symbols, SNAPSHOT);
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut calls = Calls { snapshot, unknown, windows: vec![Arcs::new()] };
    let mut machine = Machine::new(Bounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut calls, &reader.read(number).unwrap()).unwrap();
    }
    calls.windows
}

/// Functions that something else than a program of this name calls: other processes, the kernel's own, interrupts.
struct Others {
    ours: Vec<bool>,
    called: BTreeSet<u32>,
}

impl Visitor for Others {
    type Frame = ();

    fn enter(&mut self, machine: &mut Machine<()>, function: u32, how: How) {
        let ours = self.ours.get(machine.running()).copied().unwrap_or(false);
        let interrupts =
            how == How::Interrupt || machine.frames().iter().any(|frame| frame.how == How::Interrupt);
        if !ours || interrupts {
            self.called.insert(function);
        }
    }
}

/// Functions that the recorder saw called by anything else than `program`.
pub fn of_others(outcome: &Outcome, program: &str) -> BTreeSet<u32> {
    let recording = outcome.recording.as_ref().unwrap();
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let ours = recording.threads.iter().map(|thread| thread.comm == program).collect();
    let mut others = Others { ours, called: BTreeSet::new() };
    let mut machine = Machine::new(Bounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut others, &reader.read(number).unwrap()).unwrap();
    }
    others.called
}

/// The same of a dump.
pub fn counted(dump: &Dump, symbols: &Symbols) -> Arcs {
    let unknown = symbols.functions().len() as u32;
    let function = |address: u64| symbols.lookup(address).map_or(unknown, |at| symbols.whole(at) as u32);
    let mut arcs = Arcs::new();
    for arc in &dump.arcs {
        *arcs.entry((function(arc.caller.wrapping_sub(1)), function(arc.callee))).or_default() += arc.calls;
    }
    arcs
}
