//! Export of a profile's tables as `gmon.out`, so that GNU gprof prints the profile's figures.
//!
//! gprof has three limits, which are met like this:
//!
//! - gprof's bins have 16 bits. It adds up histograms of the same range, so each function gets as
//!   many records as it needs, over bins that lie wholly inside it: no tick is split between two
//!   functions. A tick is 1 ns with 1000 ticks to the "microsecond", so gprof prints microseconds
//!   with two decimals and the file keeps the nanoseconds. (If a bin would exceed gprof's 31 bits,
//!   the tick becomes 1 us, then 1 ms.)
//! - gprof drops calls whose caller is in no function, and then attributes all of the callee's time
//!   to its other callers. Here these calls come from a function of their own, `<spontaneous>`.
//! - gprof ignores local symbols with dots in their names (`foo.isra.0`), and code without a
//!   symbol, such as user code, has no address in the image. Both are in a list of symbols that
//!   goes with the file: `gprof -S gmon.out.symbols vmlinux gmon.out`.

use super::{Error, Gmon, GmonRecord, Histogram, RawArc, Result};
use kerntune_profile::{FunctionIndex, Tables};
use std::collections::BTreeMap;

/// Name of the function that makes calls without a caller.
const SPONTANEOUS: &str = "<spontaneous>";
/// Name of the symbol behind all functions.
const END: &str = "<end>";
/// Granularity of gprof's histograms in bytes.
const UNIT: u64 = 2;
/// Distance of made-up addresses.
const STEP: u64 = 16;
/// Limit of histogram records: more make gprof slow, so a coarser tick is used.
const RECORDS: u64 = 50_000;

/// Files to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GmonExport {
    /// Contents of `gmon.out`.
    pub gmon: Gmon,
    /// Symbols by address, in the format of `nm`, for `gprof -S`.
    pub symbols: String,
    /// Nanoseconds of one tick.
    pub tick_ns: u64,
    /// Time of functions that are too small for a bin of gprof.
    pub left_out_ns: u64,
}

/// Address of a function, and the bins for its ticks.
#[derive(Debug, Clone, Copy)]
struct FunctionPlace {
    address: u64,
    /// First bin and the one after the last, in units from address 0.
    bins: (u64, u64),
}

/// Exports the regions for which `wanted` holds.
///
/// # Errors
/// [`Error::NoRoom`] if no addresses are left for functions that have none.
pub fn export(tables: &Tables, wanted: impl Fn(u32) -> bool) -> Result<GmonExport> {
    let mut own: BTreeMap<u32, u64> = BTreeMap::new();
    for row in tables.functions.iter().filter(|row| wanted(row.region)) {
        let sum = own.entry(row.function.get()).or_default();
        *sum = sum.saturating_add(row.self_ticks.get());
    }
    let mut calls: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for row in tables.arcs.iter().filter(|row| wanted(row.region)) {
        let sum = calls.entry((row.caller.get(), row.callee.get())).or_default();
        *sum = sum.saturating_add(row.calls);
    }
    let mut active: Vec<u32> =
        calls.keys().flat_map(|arc| [arc.0, arc.1]).chain(own.keys().copied()).collect();
    active.sort_unstable();
    active.dedup();
    let (places, symbols) = places(tables, &active)?;
    let (tick_ns, rate, dimension, abbreviation) = tick(&own, &places);
    let mut out = GmonExport { gmon: Gmon::default(), symbols, tick_ns, left_out_ns: 0 };
    for (function, ns) in own.into_iter().filter(|(_, ns)| *ns > 0) {
        let Some((first, end)) = places.get(&function).map(|place| place.bins).filter(|bins| bins.0 < bins.1)
        else {
            out.left_out_ns = out.left_out_ns.saturating_add(ns);
            continue;
        };
        // Rounded to whole ticks.
        let mut ticks = ns.saturating_add(tick_ns / 2) / tick_ns;
        let bins = (end - first).min(ticks.div_ceil(u16::MAX.into()).max(1));
        while ticks > 0 {
            let bins: Vec<u32> = (0..bins)
                .map(|_| {
                    let bin = u16::try_from(ticks).unwrap_or(u16::MAX);
                    ticks -= u64::from(bin);
                    bin.into()
                })
                .collect();
            let high = (first + bins.len() as u64) * UNIT;
            let dimension = Histogram::dimension_of(dimension);
            let histogram = Histogram { low: first * UNIT, high, rate, dimension, abbreviation, bins };
            out.gmon.records.push(GmonRecord::Histogram(histogram));
        }
    }
    for ((caller, callee), count) in calls {
        if let (Some(from), Some(to)) = (places.get(&caller), places.get(&callee)) {
            out.gmon.records.push(GmonRecord::Arc(RawArc { from: from.address, to: to.address, count }));
        }
    }
    Ok(out)
}

/// Returns the places of the functions, and the list of symbols. Active functions that are not in
/// the image get addresses above all others, and so does [`SPONTANEOUS`] (under
/// [`FunctionIndex::NONE`]).
fn places(tables: &Tables, active: &[u32]) -> Result<(BTreeMap<u32, FunctionPlace>, String)> {
    let mut known: Vec<(u64, u64, u32)> = tables
        .symbols
        .iter()
        .filter(|symbol| symbol.module.is_none() && symbol.size > 0)
        .map(|symbol| {
            (symbol.address.get(), symbol.address.get().saturating_add(symbol.size), symbol.function.get())
        })
        .collect();
    known.sort_unstable();
    known.dedup_by_key(|function| function.0);
    let top = known.iter().map(|function| function.1).max().unwrap_or(STEP);
    let mut next = top.checked_next_multiple_of(4096).ok_or(Error::NoRoom(top))?;
    let mut others: Vec<u32> = active.to_vec();
    known.iter().for_each(|function| {
        if let Ok(at) = others.binary_search(&function.2) {
            others.remove(at);
        }
    });
    for other in others {
        let end = next.checked_add(STEP).ok_or(Error::NoRoom(top))?;
        known.push((next, end, other));
        next = end;
    }
    let mut places = BTreeMap::new();
    let mut symbols = String::new();
    for (at, &(address, end, function)) in known.iter().enumerate() {
        // gprof extends a function up to the next one.
        let border = known.get(at + 1).map_or(u64::MAX, |next| next.0) / UNIT;
        let first = address / UNIT;
        let last = (end / UNIT).max(first + 1).min(border);
        places.insert(function, FunctionPlace { address, bins: (first, last) });
        let name = match function {
            function if function == FunctionIndex::NONE.get() => SPONTANEOUS.into(),
            // A name ends at a space.
            function => tables.name(FunctionIndex(function)).replace(char::is_whitespace, "_"),
        };
        symbols += &format!("{address:016x} T {name}\n");
    }
    if !known.is_empty() {
        // The last symbol has no end for gprof, so it attributes nothing to it.
        symbols += &format!("{next:016x} T {END}\n");
    }
    Ok((places, symbols))
}

/// Chooses the finest tick that fits: its ns, ticks per unit, the unit and its letter.
fn tick(own: &BTreeMap<u32, u64>, places: &BTreeMap<u32, FunctionPlace>) -> (u64, u32, &'static str, u8) {
    let fits = |tick: u64| {
        let mut records = 0;
        own.iter().all(|(function, ns)| {
            let bins =
                places.get(function).map_or(1, |place| place.bins.1.saturating_sub(place.bins.0)).max(1);
            let of_bin = (ns / tick).div_ceil(bins);
            records += of_bin.div_ceil(u16::MAX.into());
            of_bin <= i32::MAX as u64 && records <= RECORDS.max(own.len() as u64)
        })
    };
    match () {
        () if fits(1) => (1, 1_000, "microseconds", b'u'),
        () if fits(1_000) => (1_000, 1, "microseconds", b'u'),
        () => (1_000_000, 1, "milliseconds", b'm'),
    }
}
