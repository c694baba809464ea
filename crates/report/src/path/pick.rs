//! Selection of a function's call to show.

use crate::unit::readable;
use crate::view::scope;
use crate::{Error, Result};
use kerntune_analyze::path::CallStart;
use kerntune_profile::{bounds, FunctionIndex, Profile};
use kerntune_table::number::grouped;
use std::collections::BTreeMap;

/// Call selected by the profile's figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickedCall {
    /// Position of the call in the trace.
    pub start: CallStart,
    /// Reason for the selection: `the slowest of 20,000 calls`.
    pub why: String,
}

/// Selects the slowest call of a function, in the regions of a name or in all.
pub fn worst(profile: &Profile, function: FunctionIndex, region: Option<&str>) -> Result<PickedCall> {
    let scope = scope(profile, region)?;
    let totals = profile.tables.totals(|region| scope.contains(region));
    let total = totals.iter().find(|total| total.function == function && total.ended > 0);
    let total = total.ok_or_else(|| no_calls(profile, function, region))?;
    let took = total.slowest_ticks.get();
    let start =
        CallStart::At { function, begin_ns: total.slowest_at_ticks.get(), elapsed_ns: Some(took..=took) };
    Ok(PickedCall { start, why: format!("the slowest of {}", calls(total.ended)) })
}

/// Selects a call of median duration: the first one in the histogram bucket of the median.
pub fn typical(profile: &Profile, function: FunctionIndex, region: Option<&str>) -> Result<PickedCall> {
    let scope = scope(profile, region)?;
    let mut buckets: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for row in profile.tables.histograms.iter().filter(|row| row.function == function && row.count > 0) {
        if scope.contains(row.region) {
            let (count, example) = buckets.entry(row.bucket).or_insert((0, u64::MAX));
            *count = count.saturating_add(row.count);
            *example = row.example_ticks.get().min(*example);
        }
    }
    let all = buckets.values().fold(0u64, |sum, (count, _)| sum.saturating_add(*count));
    let mut below = 0u64;
    for (bucket, (count, begin_ns)) in buckets {
        below = below.saturating_add(count);
        if below >= all.div_ceil(2) {
            let (low, high) = bounds(bucket);
            let (low, high) = (low.get(), high.get());
            let between = format!("{} and {}", readable(low), readable(high));
            let start = CallStart::At { function, begin_ns, elapsed_ns: Some(low..=high) };
            return Ok(PickedCall {
                start,
                why: format!("the median of {} lies between {between}", calls(all)),
            });
        }
    }
    Err(no_calls(profile, function, region))
}

fn calls(count: u64) -> String {
    format!("{} call{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn no_calls(profile: &Profile, function: FunctionIndex, region: Option<&str>) -> Error {
    Error::NoCalls { function: profile.tables.name(function).into(), region: region.map(Into::into) }
}
