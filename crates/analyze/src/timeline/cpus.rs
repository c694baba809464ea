//! What each of several CPUs does when: executes, waits for its turn, is halted.

use super::{holder_of, Holder, HALTED};
use crate::events::{Bounds, Machine};

/// What a CPU does with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doing {
    /// It executes: at every instant at most one CPU does.
    Executes,
    /// It could execute, but it is another CPU's turn.
    Waits,
    /// It is halted.
    Halted,
}

/// What a CPU does, and who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuState {
    /// What it does.
    pub doing: Doing,
    /// Who has it; [`super::Lane::Idle`] while it is halted.
    pub holder: Holder,
}

/// A stretch of time in which a CPU does one thing for one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSlice {
    /// Virtual time, ns.
    pub begin: u64,
    /// Virtual time, ns; after `begin`.
    pub end: u64,
    /// What it does.
    pub state: CpuState,
}

/// Time of one state of a CPU in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuBin {
    /// The bin's number, counted over all spans.
    pub bin: u32,
    /// The CPU's number.
    pub cpu: u32,
    /// What it does.
    pub state: CpuState,
    /// For how long, ns.
    pub ns: u64,
}

const ASLEEP: CpuState = CpuState { doing: Doing::Halted, holder: HALTED };

/// What every CPU does while `holder` has the one that executes, or while all are halted. Nothing of a single CPU, of
/// which the holder says all.
pub(super) fn states<T: Copy + Default>(
    machine: &Machine<T>,
    holder: Holder,
) -> impl Iterator<Item = CpuState> + '_ {
    let count = if machine.bounds.cpus > 1 { machine.bounds.cpus } else { 0 };
    (0..count).map(move |cpu| match machine.waiting(cpu) {
        _ if holder == HALTED => ASLEEP,
        None => CpuState { doing: Doing::Executes, holder },
        Some((waiting, _)) if waiting.halted => ASLEEP,
        Some((waiting, interrupts)) => CpuState {
            doing: Doing::Waits,
            holder: holder_of(machine.bounds, waiting.running, waiting.user, interrupts),
        },
    })
}

/// Room for the slices of each of several CPUs.
pub(super) fn lanes(bounds: Bounds) -> Vec<Vec<CpuSlice>> {
    vec![Vec::new(); if bounds.cpus > 1 { bounds.cpus } else { 0 }]
}

/// Appends a slice to those of a CPU, or lengthens the last if it goes on.
pub(super) fn extend(slices: &mut Vec<CpuSlice>, slice: CpuSlice) {
    match slices.last_mut() {
        Some(last) if last.end == slice.begin && last.state == slice.state => last.end = slice.end,
        _ => slices.push(slice),
    }
}
