//! Import of `gmon.out` as a profile's tables: sampled times, counted calls, no totals.

use super::{Error, Gmon, GmonRecord, Histogram, Result};
use kerntune_profile::{
    CallArc, FunctionIndex, FunctionStats, RegionStats, Symbol, Tables, ThreadKind, ThreadStats, Ticks,
};
use std::collections::BTreeMap;

/// Granularity of gprof's histograms in bytes.
const UNIT: u64 = 2;

/// Tables and totals of imported files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GmonImport {
    /// Tables with one region, `gmon`. Arcs and functions have no total time.
    pub tables: Tables,
    /// Sum of all sampled time, in ns.
    pub busy_ticks: u64,
    /// Number of samples.
    pub ticks: u64,
    /// Calls to addresses in no function, which are left out.
    pub lost_calls: u64,
}

/// Adds up files of one program. `symbols` are its functions, in the order of their numbers; `comm`
/// is its name.
///
/// As in gprof, a function extends up to the next one, and a bin that several functions share is
/// divided among them by bytes. Calls from addresses in no function have no caller.
///
/// # Errors
/// [`Error::NotTime`] for a histogram that does not count time, [`Error::NoFunctions`] if no
/// address is in any function.
pub fn import(files: &[Gmon], symbols: Vec<Symbol>, comm: &str) -> Result<GmonImport> {
    let image = FunctionMap::new(&symbols);
    let mut own: BTreeMap<u32, f64> = BTreeMap::new();
    let (mut outside, mut ticks, mut lost_calls) = (0.0, 0_u64, 0_u64);
    let mut calls: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let (mut addresses, mut known) = (0_usize, 0_usize);
    for record in files.iter().flat_map(|file| &file.records) {
        match record {
            GmonRecord::Histogram(histogram) => {
                let tick_ns = histogram.tick_ns()?;
                for (count, low, high) in bins(histogram) {
                    let time = f64::from(count) * tick_ns;
                    ticks = ticks.saturating_add(count.into());
                    addresses += 1;
                    let inside = image
                        .share(low, high, |function, part| *own.entry(function).or_default() += part * time);
                    outside += (1.0 - inside) * time;
                    known += usize::from(inside > 0.0);
                }
            }
            GmonRecord::Arc(arc) => {
                addresses += 1;
                let Some(callee) = image.function(arc.to) else {
                    lost_calls = lost_calls.saturating_add(arc.count);
                    continue;
                };
                known += 1;
                let caller = image.function(arc.from).unwrap_or(FunctionIndex::NONE.get());
                let sum = calls.entry((caller, callee)).or_default();
                *sum = sum.saturating_add(arc.count);
            }
            GmonRecord::Blocks(_) => {}
        }
    }
    if addresses > 0 && known == 0 {
        return Err(Error::NoFunctions { addresses });
    }
    let unattributed = outside.round() as u64;
    let mut stats: BTreeMap<u32, FunctionStats> = BTreeMap::new();
    let mut busy_ticks = unattributed;
    for (function, ns) in own {
        let ns = ns.round() as u64;
        busy_ticks = busy_ticks.saturating_add(ns);
        stats.entry(function).or_insert_with(|| nothing(function)).self_ticks = Ticks(ns);
    }
    for ((_, callee), count) in &calls {
        let row = stats.entry(*callee).or_insert_with(|| nothing(*callee));
        row.calls = row.calls.saturating_add(*count);
    }
    let arc = |((caller, callee), calls)| CallArc {
        caller: FunctionIndex(caller),
        callee: FunctionIndex(callee),
        calls,
        ..CallArc::default()
    };
    let tables = Tables {
        functions: stats.into_values().collect(),
        symbols,
        arcs: calls.into_iter().map(arc).collect(),
        threads: vec![thread(comm, busy_ticks)],
        regions: vec![region(busy_ticks, unattributed)],
        ..Tables::default()
    };
    Ok(GmonImport { tables, busy_ticks, ticks, lost_calls })
}

/// Returns the bins with ticks as count and range, in units; gprof measures ranges in units, too.
fn bins(histogram: &Histogram) -> impl Iterator<Item = (u32, f64, f64)> + '_ {
    let low = histogram.low / UNIT;
    let scale = (histogram.high.saturating_sub(histogram.low) as f64 / UNIT as f64)
        / histogram.bins.len().max(1) as f64;
    let bin = move |(at, count): (usize, &u32)| {
        (*count, low as f64 + (scale * at as f64).floor(), low as f64 + (scale * (at + 1) as f64).floor())
    };
    histogram.bins.iter().enumerate().filter(|(_, count)| **count > 0).map(bin)
}

/// Functions by address.
struct FunctionMap {
    /// First address, address after the last, and number.
    functions: Vec<(u64, u64, u32)>,
}

impl FunctionMap {
    fn new(symbols: &[Symbol]) -> Self {
        let mut functions: Vec<(u64, u64, u32)> = symbols
            .iter()
            .filter(|symbol| symbol.module.is_none() && symbol.size > 0)
            .map(|symbol| {
                (
                    symbol.address.get(),
                    symbol.address.get().saturating_add(symbol.size),
                    symbol.function.get(),
                )
            })
            .collect();
        functions.sort_unstable();
        functions.dedup_by_key(|function| function.0);
        let next: Vec<u64> = functions.iter().skip(1).map(|function| function.0).collect();
        functions.iter_mut().zip(next).for_each(|(function, next)| function.1 = next);
        Self { functions }
    }

    fn function(&self, address: u64) -> Option<u32> {
        let at = self.functions.partition_point(|function| function.0 <= address).checked_sub(1)?;
        self.functions.get(at).filter(|function| address < function.1).map(|function| function.2)
    }

    /// Calls `each` with every function in a range of units and its fraction of the range. Returns
    /// the sum of the fractions.
    fn share(&self, low: f64, high: f64, mut each: impl FnMut(u32, f64)) -> f64 {
        let unit = |address: u64| (address / UNIT) as f64;
        let from = self.functions.partition_point(|function| unit(function.1) <= low);
        let mut inside = 0.0;
        for (begin, end, function) in self.functions.iter().skip(from) {
            if unit(*begin) >= high {
                break;
            }
            let part = (high.min(unit(*end)) - low.max(unit(*begin))) / (high - low);
            if part > 0.0 {
                each(*function, part);
                inside += part;
            }
        }
        inside.min(1.0)
    }
}

fn nothing(function: u32) -> FunctionStats {
    FunctionStats { function: FunctionIndex(function), ..FunctionStats::default() }
}

fn thread(comm: &str, busy_ticks: u64) -> ThreadStats {
    ThreadStats {
        kind: ThreadKind::Thread,
        comm: comm.into(),
        self_ticks: Ticks(busy_ticks),
        ..ThreadStats::default()
    }
}

fn region(busy_ticks: u64, unattributed_ticks: u64) -> RegionStats {
    RegionStats {
        name: "gmon".into(),
        elapsed_ticks: Ticks(busy_ticks),
        busy_ticks: Ticks(busy_ticks),
        unattributed_ticks: Ticks(unattributed_ticks),
        ..RegionStats::default()
    }
}
