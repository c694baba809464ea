//! Everything that was not as it should be, the recorder's and ours; 0 where it was.

use crate::accumulators::Accumulators;
use crate::stitch::{Measured, Troubles};
use crate::Missing;
use kerntune_trace::{Health, Recording};
use std::collections::BTreeMap;

/// What [`counts`] looks at.
pub(crate) struct Evidence<'a> {
    pub recording: &'a Recording,
    pub sums: &'a Accumulators,
    pub measured: &'a [Measured],
    pub troubles: Troubles,
    pub missing: &'a [Missing],
}

/// Counts by name, as [`crate::Analysis::health`] describes them.
pub(crate) fn counts(evidence: &Evidence<'_>) -> BTreeMap<String, u64> {
    let Evidence { recording, sums, measured, troubles, missing } = *evidence;
    let mut mismatch = 0u64;
    for (region, measured) in recording.regions.iter().zip(measured) {
        let lacks = missing.iter().any(|missing| missing.touches(region));
        if region.closed && measured.whole() && !lacks {
            let busy = region.elapsed_ns.saturating_sub(region.idle_ns);
            let by = busy.abs_diff(measured.busy).saturating_add(region.idle_ns.abs_diff(measured.idle));
            mismatch = mismatch.saturating_add(by);
        }
    }
    let unclosed = recording.regions.iter().filter(|region| !region.closed).count() as u64;
    let (outside, inside) = sums.regions.split_last().map_or((0, &[][..]), |(last, all)| (last.busy, all));
    let unattributed = inside.iter().map(|region| region.unattributed).sum();
    let calls = |of: &mut dyn Iterator<Item = u64>| of.sum::<u64>();
    let folded = calls(&mut sums.accounts.iter().map(|(_, calls, _)| calls))
        .saturating_sub(calls(&mut sums.tree.nodes.iter().map(|node| node.calls)));
    // Taken apart by name, so that nothing the recorder learns to count is left out.
    let Health {
        lost_events,
        unmatched_returns,
        foreign_returns,
        unwound_frames,
        headless_returns,
        lost_jumps,
        uncounted_blocks,
        uncounted_edges,
        clock_checks,
        clock_errors,
        clock_error_ns,
        cut_blocks,
    } = recording.health;
    let mut counts: BTreeMap<String, u64> = [
        ("lost_events", lost_events),
        ("unmatched_returns", unmatched_returns),
        ("foreign_returns", foreign_returns),
        ("unwound_frames", unwound_frames),
        ("headless_returns", headless_returns),
        ("lost_jumps", lost_jumps),
        ("uncounted_blocks", uncounted_blocks),
        ("uncounted_edges", uncounted_edges),
        ("clock_checks", clock_checks),
        ("clock_errors", clock_errors),
        ("clock_error_ns", clock_error_ns),
        ("cut_blocks", cut_blocks),
        ("stack_mismatches", troubles.stack_mismatches),
        ("running_mismatches", troubles.running_mismatches),
        ("clock_mismatches", troubles.clock_mismatches),
        ("clock_mismatch_ns", troubles.clock_mismatch_ns),
        ("unmatched_exits", troubles.unmatched_exits),
        ("cut_calls", troubles.cut_calls),
        ("outside_ns", outside),
        ("region_mismatches", troubles.region_mismatches),
        ("region_mismatch_ns", mismatch),
        ("unclosed_regions", unclosed),
        ("unattributed_ns", unattributed),
        ("folded_calls", folded),
        ("missing_chunks", missing.len() as u64),
        ("missing_events", missing.iter().map(|missing| missing.events).sum()),
        ("missing_ns", missing.iter().map(Missing::ns).fold(0, u64::saturating_add)),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    if recording.cpus > 1 {
        counts.insert("cpu_mismatch_ns".to_owned(), cpu_mismatch(evidence));
    }
    counts
}

/// By how much the times that the trace gives to CPUs differ from what each of them counted, in regions with nothing around
/// them.
fn cpu_mismatch(evidence: &Evidence<'_>) -> u64 {
    let Evidence { recording, sums, measured, .. } = *evidence;
    let mut counted = vec![0u64; recording.cpus as usize];
    let regions = || recording.regions.iter().zip(measured);
    if regions().any(|(region, measured)| !region.closed || !measured.whole()) {
        return 0; // not all of them are known
    }
    for (region, _) in regions().filter(|(region, _)| region.depth == 0) {
        for (sum, cpu) in counted.iter_mut().zip(&region.cpus) {
            *sum = sum.saturating_add(cpu.kernel).saturating_add(cpu.user);
        }
    }
    let inside = |region: u32| (region as usize) < recording.regions.len();
    for (&(region, cpu), account) in &sums.several.cpus {
        if let Some(sum) = counted.get_mut(cpu as usize).filter(|_| inside(region)) {
            *sum = sum.wrapping_sub(account.busy);
        }
    }
    // What is left may be negative.
    counted.into_iter().map(|rest| (rest as i64).unsigned_abs()).fold(0, u64::saturating_add)
}
