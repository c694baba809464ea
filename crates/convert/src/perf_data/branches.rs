//! Branch stacks of a file, as the counts that imports of `perf script`'s text give.

use super::{BranchRecord, PerfData, PerfDataError, PerfRecord, Result};
use crate::perf::{BootSamples, BranchStacks};
use std::io::{Read, Seek};

impl BranchStacks {
    /// Begins a collection for one boot, without samples.
    pub fn of_boot(boot: BootSamples) -> Self {
        Self { parts: vec![boot], ..Self::default() }
    }

    /// Adds the branches of a sample, newest first, to the last boot; `None` if a count overflows or there
    /// is no boot.
    pub fn sample(&mut self, branches: &[BranchRecord], cpu: Option<u32>) -> Option<()> {
        let part = self.parts.last_mut()?;
        let mut taken = Vec::with_capacity(branches.len());
        // What lies beside an empty entry is not known, so straight code ends there.
        for segment in branches.split(BranchRecord::is_empty) {
            taken.clear();
            let executed = segment.iter().filter(|branch| !branch.is_wrong_path());
            taken.extend(executed.map(|branch| (branch.source, branch.target)));
            self.speculated += (segment.len() - taken.len()) as u64;
            self.backward_runs += part.segment(&taken, 1)?;
            self.longest = self.longest.max(taken.len());
        }
        part.count(1, cpu)?;
        self.empty_entries += branches.iter().filter(|branch| branch.is_empty()).count() as u64;
        self.entries += branches.len() as u64;
        self.samples += 1;
        self.sample_lines += 1;
        Some(())
    }

    /// Returns the number of different branches and runs, which memory grows with.
    pub fn kept(&self) -> usize {
        self.parts.iter().map(|part| part.branches.len() + part.runs.len()).sum()
    }
}

/// Reads the branch stacks of all events.
///
/// # Errors
/// Those of [`PerfData::read`]; no event with branches; counts that overflow.
pub fn read_branches<R: Read + Seek>(data: &mut PerfData<R>) -> Result<BranchStacks> {
    if !data.file.events.iter().any(super::PerfEvent::has_branches) {
        return Ok(BranchStacks::default());
    }
    let mut stacks = BranchStacks::of_boot(BootSamples {
        hostname: data.file.hostname.clone(),
        release: data.file.release.clone(),
        cpus_online: data.file.cpus_online,
        kernel_at: data.file.kernel_place.as_ref().map(|place| place.address),
        ..BootSamples::default()
    });
    data.read(|_, record| {
        let PerfRecord::Sample(sample) = record else { return Ok(()) };
        if sample.branches.is_empty() {
            return Ok(());
        }
        let overflow = || PerfDataError::Unusable("the sum of its counts overflows 64 bits".into());
        stacks.sample(&sample.branches, sample.cpu).ok_or_else(overflow)
    })?;
    Ok(stacks)
}
