//! Kernel or user.

/// Whose instructions are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Ring 0.
    Kernel,
    /// Ring 3.
    User,
}
