//! Anomaly counters of recorder and analysis; 0 means that there was none.

use crate::accumulators::Accumulators;
use crate::stitch::{Anomalies, RegionTimes};
use crate::MissingChunk;
use kerntune_trace::{Recording, RecordingHealth};
use std::collections::BTreeMap;

/// Inputs of [`counts`].
pub(crate) struct AnomalySources<'a> {
    pub recording: &'a Recording,
    pub sums: &'a Accumulators,
    pub measured: &'a [RegionTimes],
    pub anomalies: Anomalies,
    pub missing: &'a [MissingChunk],
}

/// Returns the counters by name, as described at [`crate::Analysis::health`].
pub(crate) fn counts(evidence: &AnomalySources<'_>) -> BTreeMap<String, u64> {
    let AnomalySources { recording, sums, measured, anomalies, missing } = *evidence;
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
    // Destructured by name, so that a new counter of the recorder cannot be forgotten here.
    let RecordingHealth {
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
        ("stack_mismatches", anomalies.stack_mismatches),
        ("running_mismatches", anomalies.running_mismatches),
        ("clock_mismatches", anomalies.clock_mismatches),
        ("clock_mismatch_ns", anomalies.clock_mismatch_ns),
        ("unmatched_exits", anomalies.unmatched_exits),
        ("cut_calls", anomalies.cut_calls),
        ("outside_ns", outside),
        ("region_mismatches", anomalies.region_mismatches),
        ("region_mismatch_ns", mismatch),
        ("unclosed_regions", unclosed),
        ("unattributed_ns", unattributed),
        ("folded_calls", folded),
        ("missing_chunks", missing.len() as u64),
        ("missing_events", missing.iter().map(|missing| missing.events).sum()),
        ("missing_ns", missing.iter().map(MissingChunk::ns).fold(0, u64::saturating_add)),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    if recording.cpus > 1 {
        counts.insert("cpu_mismatch_ns".to_owned(), cpu_mismatch(evidence));
    }
    counts
}

/// Returns the sum of the differences between each CPU's time in the trace and the instructions
/// that the recorder counted for it, in outermost regions.
fn cpu_mismatch(evidence: &AnomalySources<'_>) -> u64 {
    let AnomalySources { recording, sums, measured, .. } = *evidence;
    let mut counted = vec![0u64; recording.cpus as usize];
    let regions = || recording.regions.iter().zip(measured);
    if regions().any(|(region, measured)| !region.closed || !measured.whole()) {
        return 0; // incomplete regions cannot be compared
    }
    for (region, _) in regions().filter(|(region, _)| region.depth == 0) {
        for (sum, cpu) in counted.iter_mut().zip(&region.cpus) {
            *sum = sum.saturating_add(cpu.kernel).saturating_add(cpu.user);
        }
    }
    let inside = |region: u32| (region as usize) < recording.regions.len();
    for (&(region, cpu), account) in &sums.multi_cpu.cpus {
        if let Some(sum) = counted.get_mut(cpu as usize).filter(|_| inside(region)) {
            *sum = sum.wrapping_sub(account.busy);
        }
    }
    // The differences may be negative.
    counted.into_iter().map(|rest| (rest as i64).unsigned_abs()).fold(0, u64::saturating_add)
}
