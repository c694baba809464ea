//! Why a tuned kernel is not accepted.

use std::fmt;

/// Why a kernel is not accepted as tuned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// Label of the kernel.
    pub kernel: String,
    /// What was found and what to do, one sentence or two each; at least one.
    pub reasons: Vec<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} is refused, its profile did not take:", self.kernel)?;
        self.reasons.iter().try_for_each(|reason| write!(f, "\n  - {reason}"))
    }
}

impl Refused {
    /// An error if there is a reason.
    pub(crate) fn unless_empty(kernel: &str, reasons: Vec<String>) -> Result<(), Self> {
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(Self { kernel: kernel.to_string(), reasons })
        }
    }
}
