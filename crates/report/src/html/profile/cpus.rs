//! Lanes of several CPUs: the thread that runs when, and times in which the CPU is halted or waits
//! for its turn.

use super::lanes::TimelineLanes;
use kerntune_analyze::timeline::{CpuActivity, CpuSlice, CpuState, TimelineLane, TimelineOverview};
use serde::Serialize;
use std::collections::BTreeMap;

/// States of a CPU; `scripts/core/codes.js` has the same.
mod kind {
    pub const KERNEL: u32 = 0;
    pub const USER: u32 = 1;
    pub const INTERRUPT: u32 = 2;
    /// The idle task executes.
    pub const IDLE: u32 = 3;
    pub const HALTED: u32 = 4;
    /// Another CPU has its turn.
    pub const WAITS: u32 = 5;
}

#[derive(Serialize, Default)]
pub(super) struct CpuData {
    bins: CpuBinColumns,
    slices: CpuSliceColumns,
}

/// `b` bin minus the previous one, `k` state, `n` ns.
#[derive(Serialize, Default)]
struct CpuBinColumns {
    b: Vec<u32>,
    k: Vec<u32>,
    n: Vec<u64>,
}

/// `b` begin minus the previous end, `n` length, `k` state, `l` lane of the running thread.
#[derive(Serialize, Default)]
pub(super) struct CpuSliceColumns {
    b: Vec<u64>,
    n: Vec<u64>,
    k: Vec<u32>,
    l: Vec<u32>,
}

fn kind(state: CpuState, lanes: &TimelineLanes) -> u32 {
    match (state.doing, state.holder) {
        (CpuActivity::Halted, _) => kind::HALTED,
        (CpuActivity::Waits, _) => kind::WAITS,
        (CpuActivity::Executes, holder) if lanes.is_idle_task(holder) => kind::IDLE,
        (CpuActivity::Executes, holder) if holder.lane == TimelineLane::Interrupt => kind::INTERRUPT,
        (CpuActivity::Executes, holder) if holder.user => kind::USER,
        (CpuActivity::Executes, _) => kind::KERNEL,
    }
}

/// Builds the lanes of all CPUs; empty for a single CPU.
pub(super) fn data(overview: &TimelineOverview, lanes: &TimelineLanes) -> Vec<CpuData> {
    let mut sums: BTreeMap<(u32, u32, u32), u64> = BTreeMap::new();
    for bin in &overview.cpu_bins {
        let sum = sums.entry((bin.cpu, bin.bin, kind(bin.state, lanes))).or_default();
        *sum = sum.saturating_add(bin.ns);
    }
    let column = |slices: &Vec<CpuSlice>| CpuData { slices: columns(slices, lanes), ..CpuData::default() };
    let mut out: Vec<CpuData> = overview.cpu_slices.iter().map(column).collect();
    let mut last = vec![0; out.len()];
    for ((cpu, bin, kind), ns) in sums {
        let (Some(cpu), Some(last)) = (out.get_mut(cpu as usize), last.get_mut(cpu as usize)) else {
            continue;
        };
        cpu.bins.b.push(bin - std::mem::replace(last, bin));
        cpu.bins.k.push(kind);
        cpu.bins.n.push(ns);
    }
    out
}

fn columns(slices: &[CpuSlice], lanes: &TimelineLanes) -> CpuSliceColumns {
    let mut out = CpuSliceColumns::default();
    let mut last = 0;
    for slice in slices {
        out.b.push(slice.begin.saturating_sub(last));
        out.n.push(slice.end - slice.begin);
        out.k.push(kind(slice.state, lanes));
        out.l.push(lanes.lane(slice.state.holder.lane));
        last = slice.end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn scripts_have_the_same_states() {
        let script = include_str!("../scripts/core/codes.js");
        for (name, kind) in [
            ("KERNEL", kind::KERNEL),
            ("USER", kind::USER),
            ("INTERRUPT", kind::INTERRUPT),
            ("IDLE", kind::IDLE),
            ("HALTED", kind::HALTED),
            ("WAITS", kind::WAITS),
        ] {
            assert!(script.contains(&format!("export const CPU_{name} = {kind};\n")), "{name}");
        }
    }
}
