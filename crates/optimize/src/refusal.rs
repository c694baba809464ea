//! Refusal of a tuned kernel.

use kerntune_work::{ClassifyError, ErrorClass};
use std::fmt;

/// Refusal of a kernel whose proof fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ProofRefusal {
    /// Label of the kernel.
    pub kernel: String,
    /// Reasons, at least one; each says what was found and what to do.
    pub reasons: Vec<String>,
}

impl ClassifyError for ProofRefusal {
    fn class(&self) -> ErrorClass {
        ErrorClass::RefusedResult
    }
}

impl fmt::Display for ProofRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} is refused, its profile did not take:", self.kernel)?;
        self.reasons.iter().try_for_each(|reason| write!(f, "\n  - {reason}"))
    }
}

impl ProofRefusal {
    /// Returns an error if there are reasons.
    pub(crate) fn unless_empty(kernel: &str, reasons: Vec<String>) -> Result<(), Self> {
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(Self { kernel: kernel.to_string(), reasons })
        }
    }
}
