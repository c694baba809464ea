//! Branch stacks of a file, as the counts that imports of `perf script`'s text give.

use super::{BranchRecord, PerfData, PerfDataError, PerfRecord, Result};
use crate::perf::{BootSamples, BranchStacks};
use std::io::{Read, Seek};

/// Reads the branch stacks of all events.
///
/// # Errors
/// Those of [`PerfData::read`]; no event with branches; counts that overflow.
pub fn read_branches<R: Read + Seek>(data: &mut PerfData<R>) -> Result<BranchStacks> {
    if !data.file.events.iter().any(super::PerfEvent::has_branches) {
        return Ok(BranchStacks::default());
    }
    let mut stacks = BranchStacks::default();
    let mut part = BootSamples {
        hostname: data.file.hostname.clone(),
        release: data.file.release.clone(),
        cpus_online: data.file.cpus_online,
        kernel_at: data.file.kernel_place.as_ref().map(|place| place.address),
        ..BootSamples::default()
    };
    let mut taken = Vec::new();
    data.read(|_, record| {
        let PerfRecord::Sample(sample) = record else { return Ok(()) };
        if sample.branches.is_empty() {
            return Ok(());
        }
        let overflow = || PerfDataError::Unusable("the sum of its counts overflows 64 bits".into());
        // What lies beside an empty entry is not known, so straight code ends there.
        for segment in sample.branches.split(BranchRecord::is_empty) {
            taken.clear();
            let executed = segment.iter().filter(|branch| !branch.is_wrong_path());
            taken.extend(executed.map(|branch| (branch.source, branch.target)));
            stacks.speculated += (segment.len() - taken.len()) as u64;
            stacks.backward_runs += part.segment(&taken, 1).ok_or_else(overflow)?;
            stacks.longest = stacks.longest.max(taken.len());
        }
        part.count(1, sample.cpu).ok_or_else(overflow)?;
        stacks.empty_entries += sample.branches.iter().filter(|branch| branch.is_empty()).count() as u64;
        stacks.entries += sample.branches.len() as u64;
        stacks.samples += 1;
        stacks.sample_lines += 1;
        Ok(())
    })?;
    stacks.parts.push(part);
    Ok(stacks)
}
