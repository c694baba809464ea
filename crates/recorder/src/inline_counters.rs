//! Counters updated by generated code without a callback.

/// Counters and fields that generated code updates, in one cache line.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub struct InlineCounters {
    /// Kernel instructions in all blocks begun so far.
    pub kernel: u64,
    /// User instructions in all blocks begun so far.
    pub user: u64,
    /// Number of the last block that stored it, see
    /// [`Recorder::running`](crate::Recorder::running), with the way in which it ends.
    pub block: u64,
    /// Address after the last completed block. 0 if a jump from there is no branch; see
    /// [`not_taken`](crate::plan::not_taken) for conditional branches. Kept only if branches are
    /// followed.
    pub next: u64,
    /// Call flag, see [`crate::plan`].
    pub call: u64,
}

impl InlineCounters {
    pub(crate) fn total(&self) -> u64 {
        self.kernel + self.user
    }
}
