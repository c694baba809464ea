//! Where figures come from.

use crate::{Aggregate, Result};
use kerntune_profile::Counted;
use std::os::fd::BorrowedFd;

/// Something in the kernel that tells what it does: perf's events, ftrace's profiler, a module of our own.
///
/// A source is made started. It fills the [`Aggregate`] whenever it is asked to, and leaves nothing behind in the kernel when
/// it is dropped, nor when its process is killed.
pub trait Source {
    /// What it is and what its figures mean.
    fn description(&self) -> Description;

    /// What becomes readable when there is something to take; none if it is enough to look now and then.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Takes what there is.
    ///
    /// # Errors
    /// The kernel takes the source away.
    fn drain(&mut self, into: &mut Aggregate) -> Result<()>;

    /// Takes what it counted and does not tell by itself: before a profile is made of what was seen.
    ///
    /// # Errors
    /// The kernel takes the source away.
    fn count(&mut self, into: &mut Aggregate) -> Result<()> {
        let _ = into;
        Ok(())
    }

    /// The time that was watched since the last [`reset`](Self::reset); none from a source that takes no samples.
    ///
    /// # Errors
    /// The kernel does not tell.
    fn observed(&mut self) -> Result<Option<Observed>> {
        Ok(None)
    }

    /// What it counts beside samples, since the last reset.
    ///
    /// # Errors
    /// The kernel does not tell.
    fn counted(&mut self) -> Result<Vec<Counted>> {
        Ok(Vec::new())
    }

    /// Begins anew; what was not taken is dropped.
    ///
    /// # Errors
    /// The kernel does not let it.
    fn reset(&mut self) -> Result<()>;
}

/// What a source says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Its name, for example `perf: cpu-clock`.
    pub name: String,
    /// How the moments of samples are chosen, in a sentence; empty without samples.
    pub period: String,
    /// Which code is charged with more or less than its time, in a sentence.
    pub bias: Option<String>,
    /// Whether it counts calls.
    pub calls: bool,
    /// Whether a halted CPU is sampled, too. If not, idle time is that of `/proc/stat`.
    pub sees_idle: bool,
    /// Bytes of its buffers.
    pub buffers: usize,
    /// What it cannot do here, in words.
    pub lacks: Vec<String>,
}

impl Description {
    /// Whether it takes samples.
    pub fn samples(&self) -> bool {
        !self.period.is_empty()
    }
}

/// Time that was watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observed {
    /// Of all CPUs together, ns.
    pub ns: u64,
    /// CPUs.
    pub cpus: u64,
    /// Samples that were lost in it.
    pub lost: u64,
}
