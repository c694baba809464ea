//! What translated code counts without calling anybody.

/// Counters that translated code updates by itself, one set per virtual CPU.
// QEMU multiplies by the size, by a shift if it can.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Board {
    /// Kernel instructions of all blocks begun.
    pub kernel: u64,
    /// User instructions of all blocks begun.
    pub user: u64,
    /// Number of the last block that said it, see [`Recorder::running`](crate::Recorder::running).
    pub block: u64,
    /// Address that follows the last completed block; 0 where going elsewhere is no branch; see
    /// [`not_taken`](crate::plan::not_taken). Kept only where branches are followed.
    pub next: u64,
    /// The call flag, see [`crate::plan`].
    pub call: u64,
}

impl Board {
    pub(crate) fn total(&self) -> u64 {
        self.kernel + self.user
    }
}
