//! The proof of any recipe.

use crate::{clang_autofdo, gcc_pgo, Refused};
use serde::Serialize;
use std::fmt;

/// What was found out about a tuned kernel, in the terms of its recipe. `Display` tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Proof {
    /// Of recipe `gcc-pgo`.
    GccPgo(Box<gcc_pgo::Proof>),
    /// Of recipe `clang-autofdo`.
    ClangAutofdo(Box<clang_autofdo::Proof>),
}

impl Proof {
    /// Whether the kernel carries its profile.
    ///
    /// # Errors
    /// [`Refused`] with every reason.
    pub fn verdict(&self) -> Result<(), Refused> {
        match self {
            Proof::GccPgo(proof) => proof.verdict(),
            Proof::ClangAutofdo(proof) => proof.verdict(),
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::GccPgo(proof) => fmt::Display::fmt(proof, f),
            Proof::ClangAutofdo(proof) => fmt::Display::fmt(proof, f),
        }
    }
}

impl From<gcc_pgo::Proof> for Proof {
    fn from(proof: gcc_pgo::Proof) -> Self {
        Proof::GccPgo(Box::new(proof))
    }
}

impl From<clang_autofdo::Proof> for Proof {
    fn from(proof: clang_autofdo::Proof) -> Self {
        Proof::ClangAutofdo(Box::new(proof))
    }
}
