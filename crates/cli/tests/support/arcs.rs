//! Calls by return address, as both the recorder and kgmon define them.

use kerntune_analyze::events::StackFrame;
use kerntune_kernel::Symbols;
use kerntune_trace::EnterKind;
use std::collections::{BTreeMap, BTreeSet};

/// Function that kgmon calls at a snapshot, from code in no known function.
pub const SNAPSHOT: &str = "ktime_get_mono_fast_ns";

/// Calls by caller and callee, as function numbers; code in no known function has the number after
/// the last.
pub type ArcCounts = BTreeMap<(u32, u32), u64>;

/// Returns the caller by the return address on the stack: a tail call (jump) leaves the address of
/// the previous call.
pub fn caller(frames: &[StackFrame<()>], how: EnterKind, unknown: u32) -> u32 {
    let mut below = frames.len();
    if how == EnterKind::Jump {
        while below > 0 {
            below -= 1;
            match frames[below].how {
                EnterKind::Jump => {}
                EnterKind::Call => break,
                // Jumped to from entry code, which determines the address on the stack.
                EnterKind::Interrupt | EnterKind::Exception | EnterKind::Syscall => {
                    return frames[below].function
                }
            }
        }
    }
    below.checked_sub(1).map_or(unknown, |at| frames[at].function)
}

/// Returns the number of a function.
pub fn function(symbols: &Symbols, name: &str) -> u32 {
    symbols.functions().iter().position(|function| function.name == name).unwrap() as u32
}

/// Returns the name of a function.
pub fn name(symbols: &Symbols, at: u32) -> String {
    symbols.functions().get(at as usize).map_or("[unknown code]".into(), |function| function.name.clone())
}

/// Returns the functions that ftrace can trace, from `available_filter_functions_addrs`.
pub fn traceable(text: &str, symbols: &Symbols) -> BTreeSet<u32> {
    let address = |line: &str| u64::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let known = text.lines().filter_map(address).filter_map(|at| symbols.lookup(at));
    known.map(|at| symbols.whole(at) as u32).collect()
}

/// An arc with different counts.
#[derive(Debug)]
pub struct ArcDifference {
    pub caller: String,
    pub callee: String,
    pub recorder: u64,
    pub kgmon: u64,
}

/// Returns the arcs to one of `functions` on which the two disagree.
pub fn differences(
    recorder: &ArcCounts,
    kgmon: &ArcCounts,
    functions: &BTreeSet<u32>,
    symbols: &Symbols,
) -> Vec<ArcDifference> {
    let keys: BTreeSet<_> =
        recorder.keys().chain(kgmon.keys()).filter(|(_, to)| functions.contains(to)).collect();
    let count = |arcs: &ArcCounts, key| arcs.get(key).copied().unwrap_or(0);
    keys.into_iter()
        .filter(|key| count(recorder, key) != count(kgmon, key))
        .map(|key| ArcDifference {
            caller: name(symbols, key.0),
            callee: name(symbols, key.1),
            recorder: count(recorder, key),
            kgmon: count(kgmon, key),
        })
        .collect()
}
