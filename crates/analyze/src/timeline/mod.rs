//! Timelines: holders of the CPU over time, and all calls of chosen windows.
//!
//! [`overview`] reads the whole trace once, in bounded memory. It returns how long each thread,
//! interrupts and idling had the CPU in each of a few thousand bins, and lists periods that are at
//! least as long as a bin. [`detail`] reads one window through the trace's index and returns its
//! calls. [`stream`] reports a part of any length while reading it. With several CPUs all three
//! also report the state of each CPU ([`CpuState`]); with one CPU only `stream` does.
//!
//! All follow the rules of `src/functions.rs`: an interval between two events belongs to the state
//! before the second one; interrupts do not belong to threads; idle time lies between intervals. A
//! call in [`WindowDetail`] has only its beginning and end, not its self and total time.

mod cpus;
mod detail;
mod overview;
mod stream;

pub use cpus::{CpuActivity, CpuBin, CpuSlice, CpuState};
pub use detail::{detail, DetailWindow, WindowCall, WindowDetail, WindowEnd};
pub use overview::{overview, HolderBin, RecordedSpan, TimelineOverview};
pub use stream::{stream, StreamSelection, StreamSummary, TimelineSink};

use crate::events::{ReplayState, TraceBounds};

/// Holder of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimelineLane {
    /// A thread; index into [`kerntune_trace::Recording::threads`].
    Thread(u32),
    /// An interrupt of any thread.
    Interrupt,
    /// No holder: the CPU is halted.
    Idle,
    /// A thread that the trace does not name.
    Unknown,
}

/// Holder of a CPU, with the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuHolder {
    /// Thread, interrupt or idle.
    pub lane: TimelineLane,
    /// True if the CPU is in user mode; always `false` for interrupts and idle.
    pub user: bool,
}

/// A period in which the holder does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HolderSlice {
    /// Virtual time of its beginning, in ticks.
    pub begin: u64,
    /// Virtual time of its end, in ticks; not before `begin`.
    pub end: u64,
    /// Holder of the executing CPU.
    pub holder: CpuHolder,
    /// Number of the executing CPU; 0 while all are halted.
    pub cpu: u32,
}

impl HolderSlice {
    /// Checks whether this slice continues another one.
    fn follows(&self, before: &Self) -> bool {
        (before.end, before.holder, before.cpu) == (self.begin, self.holder, self.cpu)
    }
}

/// Holder while all CPUs are halted.
const HALTED: CpuHolder = CpuHolder { lane: TimelineLane::Idle, user: false };

/// Returns the holder of the executing CPU.
#[inline]
fn holder<T>(machine: &ReplayState<T>) -> CpuHolder {
    holder_of(machine.bounds, machine.running, machine.user, machine.stack.interrupts)
}

/// Returns the holder of a CPU with this thread, mode and number of interrupt frames.
#[inline]
fn holder_of(bounds: TraceBounds, running: usize, user: bool, interrupts: u32) -> CpuHolder {
    let thread = u32::try_from(running).ok().filter(|_| running < bounds.threads);
    match thread {
        _ if interrupts > 0 => CpuHolder { lane: TimelineLane::Interrupt, user: false },
        Some(thread) => CpuHolder { lane: TimelineLane::Thread(thread), user },
        None => CpuHolder { lane: TimelineLane::Unknown, user },
    }
}

/// Appends a slice, or extends the last one if this slice continues it.
fn extend(slices: &mut Vec<HolderSlice>, slice: HolderSlice) {
    match slices.last_mut() {
        Some(last) if slice.follows(last) => last.end = slice.end,
        _ => slices.push(slice),
    }
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
