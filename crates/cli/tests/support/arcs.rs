//! Calls as the recorder and as kgmon have them: by return addresses.

use kerntune_analyze::events::Frame;
use kerntune_kernel::Symbols;
use kerntune_trace::How;
use std::collections::{BTreeMap, BTreeSet};

/// What kgmon calls, from code in no known function, at the moment of a snapshot.
pub const SNAPSHOT: &str = "ktime_get_mono_fast_ns";

/// Calls by caller and callee, numbers of functions; code in no known function has the number after the last.
pub type Arcs = BTreeMap<(u32, u32), u64>;

/// Who called, in the sense of a return address on the stack: a tail call (jump) leaves the address of the call before it.
pub fn caller(frames: &[Frame<()>], how: How, unknown: u32) -> u32 {
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

/// The number of a function of this name.
pub fn function(symbols: &Symbols, name: &str) -> u32 {
    symbols.functions().iter().position(|function| function.name == name).unwrap() as u32
}

/// The name of a function.
pub fn name(symbols: &Symbols, at: u32) -> String {
    symbols.functions().get(at as usize).map_or("[unknown code]".into(), |function| function.name.clone())
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
    let keys: BTreeSet<_> =
        recorder.keys().chain(kgmon.keys()).filter(|(_, to)| functions.contains(to)).collect();
    let count = |arcs: &Arcs, key| arcs.get(key).copied().unwrap_or(0);
    keys.into_iter()
        .filter(|key| count(recorder, key) != count(kgmon, key))
        .map(|key| Difference {
            caller: name(symbols, key.0),
            callee: name(symbols, key.1),
            recorder: count(recorder, key),
            kgmon: count(kgmon, key),
        })
        .collect()
}
