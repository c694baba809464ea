//! What the recorder saw of the calls that kgmon counted, in kgmon's terms.
//!
//! kgmon reads the clock with `ktime_get_mono_fast_ns` at the moment of a snapshot, with interrupts off, and calls nothing
//! else until all counters are read. So that entry, from code that is in no known function, stands in the trace for the
//! snapshot, and between two of them the recorder's calls are what the second dump has to say.

use kerntune_analyze::events::{replay, Bounds, Frame, Machine, Visitor};
use kerntune_analyze::TraceFile;
use kerntune_kernel::Symbols;
use kerntune_kgmon::Dump;
use kerntune_machine::Outcome;
use kerntune_trace::How;
use std::collections::{BTreeMap, BTreeSet};

pub const SNAPSHOT: &str = "ktime_get_mono_fast_ns";

/// Calls by caller and callee, numbers of functions; code in no known function has the number after the last.
pub type Arcs = BTreeMap<(u32, u32), u64>;

/// Counts entries between snapshots.
struct Calls {
    snapshot: u32,
    unknown: u32,
    /// One for each window between two snapshots, and one before the first.
    windows: Vec<Arcs>,
}

/// Who called, in the sense of a return address on the stack: a tail call (jump) leaves the address of the call before it.
fn caller(frames: &[Frame<()>], how: How, unknown: u32) -> u32 {
    let mut below = frames.len();
    if how == How::Jump {
        while below > 0 {
            below -= 1;
            match frames[below].how {
                How::Jump => {}
                How::Call => break,
                // Jumped to from entry code: the address is whatever the entry code put there.
                How::Interrupt | How::Exception | How::Syscall => return frames[below].function,
            }
        }
    }
    below.checked_sub(1).map_or(unknown, |at| frames[at].function)
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

/// The number of a function of this name.
pub fn function(symbols: &Symbols, name: &str) -> u32 {
    symbols.functions().iter().position(|function| function.name == name).unwrap() as u32
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

/// Functions that ftrace can trace, from `available_filter_functions_addrs`.
pub fn traceable(text: &str, symbols: &Symbols) -> BTreeSet<u32> {
    let address = |line: &str| u64::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let known = text.lines().filter_map(address).filter_map(|at| symbols.lookup(at));
    known.map(|at| symbols.whole(at) as u32).collect()
}

/// One arc on which the two do not agree.
#[derive(Debug)]
pub struct Difference {
    pub caller: String,
    pub callee: String,
    pub recorder: u64,
    pub kgmon: u64,
}

/// Every arc to a function of `functions` on which the two do not agree.
pub fn differences(
    recorder: &Arcs,
    kgmon: &Arcs,
    functions: &BTreeSet<u32>,
    symbols: &Symbols,
) -> Vec<Difference> {
    let name = |at: u32| {
        symbols.functions().get(at as usize).map_or("[unknown code]".into(), |function| function.name.clone())
    };
    let keys: BTreeSet<_> =
        recorder.keys().chain(kgmon.keys()).filter(|(_, to)| functions.contains(to)).collect();
    let count = |arcs: &Arcs, key| arcs.get(key).copied().unwrap_or(0);
    keys.into_iter()
        .filter(|key| count(recorder, key) != count(kgmon, key))
        .map(|key| Difference {
            caller: name(key.0),
            callee: name(key.1),
            recorder: count(recorder, key),
            kgmon: count(kgmon, key),
        })
        .collect()
}
