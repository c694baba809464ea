//! A trace as a picture over time: who had the CPU when, and, for chosen windows, every call.
//!
//! [`overview`] reads the whole trace once, in bounded memory, and says for each of a few thousand
//! bins how long each thread, the interrupts and idling had the CPU; stretches at least as long as a
//! bin are given one by one as well. [`detail`] reads one window through the trace's index and gives
//! its calls, and [`stream`] tells of a part of any length as it reads it. Of several CPUs all say what each of
//! them does ([`CpuState`]); of one the first two leave that out.
//!
//! All keep the rules of `src/functions.rs`: an interval between two events belongs to the state
//! before the second one; interrupts are nobody's; idle time lies between intervals. Calls are not
//! paired with what they cost here: a call in [`Detail`] is where it began and where it ended.

mod cpus;
mod detail;
mod overview;
mod stream;

pub use cpus::{CpuBin, CpuSlice, CpuState, Doing};
pub use detail::{detail, Call, Detail, Until, Window};
pub use overview::{overview, Bin, Overview, Span};
pub use stream::{stream, Part, Sink, Streamed};

use crate::events::{Bounds, Machine};

/// Who had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// A thread: its number in [`kerntune_trace::Recording::threads`].
    Thread(u32),
    /// An interrupt, whichever thread it hit.
    Interrupt,
    /// The CPU was halted.
    Idle,
    /// A thread that the trace does not name.
    Unknown,
}

/// What a lane had the CPU for, and in which mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// Who.
    pub lane: Lane,
    /// In user mode; always `false` for interrupts and idle.
    pub user: bool,
}

/// A stretch of time with one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Virtual time, ns.
    pub begin: u64,
    /// Virtual time, ns; not before `begin`.
    pub end: u64,
    /// Who had the CPU.
    pub holder: Holder,
    /// Which CPU executed; 0 while all were halted.
    pub cpu: u32,
}

impl Slice {
    /// Whether this is more of the same.
    fn follows(&self, before: &Self) -> bool {
        (before.end, before.holder, before.cpu) == (self.begin, self.holder, self.cpu)
    }
}

/// Nobody has the CPU: it is halted.
const HALTED: Holder = Holder { lane: Lane::Idle, user: false };

/// Who has the CPU while it is not halted.
#[inline]
fn holder<T>(machine: &Machine<T>) -> Holder {
    holder_of(machine.bounds, machine.running, machine.user, machine.stack.interrupts)
}

/// Who has a CPU on which this thread runs, in this mode, with so many frames of interrupts.
#[inline]
fn holder_of(bounds: Bounds, running: usize, user: bool, interrupts: u32) -> Holder {
    let thread = u32::try_from(running).ok().filter(|_| running < bounds.threads);
    match thread {
        _ if interrupts > 0 => Holder { lane: Lane::Interrupt, user: false },
        Some(thread) => Holder { lane: Lane::Thread(thread), user },
        None => Holder { lane: Lane::Unknown, user },
    }
}

/// Appends a slice, or lengthens the one before it if that is its beginning.
fn extend(slices: &mut Vec<Slice>, slice: Slice) {
    match slices.last_mut() {
        Some(last) if slice.follows(last) => last.end = slice.end,
        _ => slices.push(slice),
    }
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
