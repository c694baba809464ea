//! Interface of the sources of samples and counts.

use crate::{Aggregate, Result};
use kerntune_convert::perf::BranchStacks;
use kerntune_profile::CounterTotal;
use std::os::fd::BorrowedFd;

/// Source of samples or counts in the kernel: perf events, ftrace's profiler, or the module kgmon.
///
/// A source is created in a started state. It fills the [`Aggregate`] on request and leaves nothing
/// behind in the kernel when it is dropped or its process is killed.
pub trait Source {
    /// Describes the source and the meaning of its figures.
    fn description(&self) -> SourceDescription;

    /// Returns descriptors that become readable when there is data; none if polling is sufficient.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Moves all available samples into the aggregate.
    ///
    /// # Errors
    /// The kernel revoked the source.
    fn drain(&mut self, into: &mut Aggregate) -> Result<()>;

    /// Adds the counts that the source does not report by itself. Called before a profile is built.
    ///
    /// # Errors
    /// The kernel revoked the source.
    fn flush_counts(&mut self, into: &mut Aggregate) -> Result<()> {
        let _ = into;
        Ok(())
    }

    /// Returns the time that samples cover since the last [`reset`](Self::reset); `None` for a
    /// source without samples.
    ///
    /// # Errors
    /// The kernel does not report it.
    fn coverage(&mut self) -> Result<Option<Coverage>> {
        Ok(None)
    }

    /// Returns the counters kept beside samples, since the last reset.
    ///
    /// # Errors
    /// The kernel does not report them.
    fn counter_totals(&mut self) -> Result<Vec<CounterTotal>> {
        Ok(Vec::new())
    }

    /// Returns the CPU's last branches that were sampled since the last reset; `None` for a source that
    /// samples something else.
    fn branches(&self) -> Option<&BranchStacks> {
        None
    }

    /// Starts anew and discards data that has not been drained.
    ///
    /// # Errors
    /// The kernel refuses the reset.
    fn reset(&mut self) -> Result<()>;
}

/// Description of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceDescription {
    /// Name of the source, for example `perf: cpu-clock`.
    pub name: String,
    /// Choice of the sampling times, in a sentence; empty for a source without samples.
    pub period: String,
    /// Code that is charged more or less than its time, in a sentence.
    pub bias: Option<String>,
    /// True if the source counts calls.
    pub calls: bool,
    /// True if halted CPUs are sampled. If false, idle time comes from `/proc/stat`.
    pub sees_idle: bool,
    /// Size of the source's buffers, in bytes.
    pub buffers: usize,
    /// Tracepoints of which every event is read, for example `perf: all of sched:sched_switch`.
    pub traced: Vec<String>,
    /// Limitations of the source on this machine, in words.
    pub lacks: Vec<String>,
}

impl SourceDescription {
    /// Returns true if the source takes samples.
    pub fn samples(&self) -> bool {
        !self.period.is_empty()
    }
}

/// Time that samples cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Sum of the sampled time over all CPUs, in ns.
    pub ns: u64,
    /// Number of sampled CPUs.
    pub cpus: u64,
    /// Number of samples lost in this time.
    pub lost: u64,
}
