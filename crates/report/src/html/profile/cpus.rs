//! A lane for each of several CPUs: who has it when, and when it is halted or waits for its turn.

use super::lanes::Lanes;
use kerntune_analyze::timeline::{CpuSlice, CpuState, Doing, Lane, Overview};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a CPU does, as `assets/cpus.js` names it.
mod kind {
    pub const KERNEL: u32 = 0;
    pub const USER: u32 = 1;
    pub const INTERRUPT: u32 = 2;
    /// The idle task executes.
    pub const IDLE: u32 = 3;
    pub const HALTED: u32 = 4;
    /// It is another CPU's turn.
    pub const WAITS: u32 = 5;
}

#[derive(Serialize, Default)]
pub(super) struct CpuData {
    bins: CpuBinColumns,
    slices: CpuSliceColumns,
}

/// `b` bin less the one before, `k` what it does, `n` ns.
#[derive(Serialize, Default)]
struct CpuBinColumns {
    b: Vec<u32>,
    k: Vec<u32>,
    n: Vec<u64>,
}

/// `b` begin less the end before, `n` length, `k` what it does, `l` lane of who has it.
#[derive(Serialize, Default)]
pub(super) struct CpuSliceColumns {
    b: Vec<u64>,
    n: Vec<u64>,
    k: Vec<u32>,
    l: Vec<u32>,
}

fn kind(state: CpuState, lanes: &Lanes) -> u32 {
    match (state.doing, state.holder) {
        (Doing::Halted, _) => kind::HALTED,
        (Doing::Waits, _) => kind::WAITS,
        (Doing::Executes, holder) if lanes.is_idle_task(holder) => kind::IDLE,
        (Doing::Executes, holder) if holder.lane == Lane::Interrupt => kind::INTERRUPT,
        (Doing::Executes, holder) if holder.user => kind::USER,
        (Doing::Executes, _) => kind::KERNEL,
    }
}

/// The lanes of all CPUs; none of a single one.
pub(super) fn data(overview: &Overview, lanes: &Lanes) -> Vec<CpuData> {
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

fn columns(slices: &[CpuSlice], lanes: &Lanes) -> CpuSliceColumns {
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
