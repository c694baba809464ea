//! Activity of each of several CPUs over time: executing, waiting for its turn, or halted.

use super::{holder_of, CpuHolder, HALTED};
use crate::events::{ReplayState, TraceBounds};

/// Activity of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuActivity {
    /// Executes. At most one CPU does at a time.
    Executes,
    /// Is ready to execute while another CPU has its turn.
    Waits,
    /// Is halted.
    Halted,
}

/// Activity of a CPU, and its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuState {
    /// Activity of the CPU.
    pub doing: CpuActivity,
    /// Holder of the CPU; [`super::TimelineLane::Idle`] while the CPU is halted.
    pub holder: CpuHolder,
}

/// A period in which a CPU's activity and holder do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSlice {
    /// Virtual time of its beginning, in ticks.
    pub begin: u64,
    /// Virtual time of its end, in ticks; after `begin`.
    pub end: u64,
    /// Activity and holder of the CPU.
    pub state: CpuState,
}

/// Time of one state of a CPU within one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuBin {
    /// Number of the bin, counted over all spans.
    pub bin: u32,
    /// Number of the CPU.
    pub cpu: u32,
    /// Activity and holder of the CPU.
    pub state: CpuState,
    /// Length of that time, in ticks.
    pub ns: u64,
}

const ASLEEP: CpuState = CpuState { doing: CpuActivity::Halted, holder: HALTED };

/// Returns the state of each CPU while `holder` has the one that executes, or while all are halted.
/// Empty with one CPU, for which `holder` is sufficient.
pub(super) fn states<T: Copy + Default>(
    machine: &ReplayState<T>,
    holder: CpuHolder,
) -> impl Iterator<Item = CpuState> + '_ {
    let count = if machine.bounds.cpus > 1 { machine.bounds.cpus } else { 0 };
    (0..count).map(move |cpu| match machine.waiting(cpu) {
        _ if holder == HALTED => ASLEEP,
        None => CpuState { doing: CpuActivity::Executes, holder },
        Some((waiting, _)) if waiting.halted => ASLEEP,
        Some((waiting, interrupts)) => CpuState {
            doing: CpuActivity::Waits,
            holder: holder_of(machine.bounds, waiting.running, waiting.user, interrupts),
        },
    })
}

/// Returns an empty list of slices for each of several CPUs; none for a single CPU.
pub(super) fn lanes(bounds: TraceBounds) -> Vec<Vec<CpuSlice>> {
    vec![Vec::new(); if bounds.cpus > 1 { bounds.cpus } else { 0 }]
}

/// Appends a slice, or extends the last one if the state is the same.
pub(super) fn extend(slices: &mut Vec<CpuSlice>, slice: CpuSlice) {
    match slices.last_mut() {
        Some(last) if last.end == slice.begin && last.state == slice.state => last.end = slice.end,
        _ => slices.push(slice),
    }
}
