//! CPU mode.

/// Privilege level of the fetched instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// Kernel mode (ring 0).
    Kernel,
    /// User mode (ring 3).
    User,
}
