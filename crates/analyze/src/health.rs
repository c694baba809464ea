//! Anomaly counters of recorder and analysis; 0 means that there was none.

use crate::accumulators::Accumulators;
use crate::stitch::{Anomalies, RegionTimes};
use crate::MissingChunk;
use kerntune_profile::Anomaly;
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
        (Anomaly::LostEvents, lost_events),
        (Anomaly::UnmatchedReturns, unmatched_returns),
        (Anomaly::ForeignReturns, foreign_returns),
        (Anomaly::UnwoundFrames, unwound_frames),
        (Anomaly::HeadlessReturns, headless_returns),
        (Anomaly::LostJumps, lost_jumps),
        (Anomaly::UncountedBlocks, uncounted_blocks),
        (Anomaly::UncountedEdges, uncounted_edges),
        (Anomaly::ClockChecks, clock_checks),
        (Anomaly::ClockErrors, clock_errors),
        (Anomaly::ClockErrorNs, clock_error_ns),
        (Anomaly::CutBlocks, cut_blocks),
        (Anomaly::StackMismatches, anomalies.stack_mismatches),
        (Anomaly::RunningMismatches, anomalies.running_mismatches),
        (Anomaly::ClockMismatches, anomalies.clock_mismatches),
        (Anomaly::ClockMismatchNs, anomalies.clock_mismatch_ns),
        (Anomaly::UnmatchedExits, anomalies.unmatched_exits),
        (Anomaly::CutCalls, anomalies.cut_calls),
        (Anomaly::OutsideNs, outside),
        (Anomaly::RegionMismatches, anomalies.region_mismatches),
        (Anomaly::RegionMismatchNs, mismatch),
        (Anomaly::UnclosedRegions, unclosed),
        (Anomaly::UnattributedNs, unattributed),
        (Anomaly::FoldedCalls, folded),
        (Anomaly::MissingChunks, missing.len() as u64),
        (Anomaly::MissingEvents, missing.iter().map(|missing| missing.events).sum()),
        (Anomaly::MissingNs, missing.iter().map(MissingChunk::ns).fold(0, u64::saturating_add)),
    ]
    .map(|(anomaly, count)| (anomaly.name().to_owned(), count))
    .into();
    if recording.cpus > 1 {
        counts.insert(Anomaly::CpuMismatchNs.name().to_owned(), cpu_mismatch(evidence));
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
