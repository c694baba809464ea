//! Common interface of the recipes' proofs.

use crate::{bolt, clang_autofdo, gcc_pgo, layout, propeller, ProofRefusal};
use serde::Serialize;
use std::fmt;

/// Evidence that a tuned kernel uses its profile, in the terms of its recipe. `Display` writes it
/// as text.
pub trait RecipeProof: fmt::Debug + fmt::Display + erased_serde::Serialize {
    /// Checks that the kernel was built with its profile.
    ///
    /// # Errors
    /// [`ProofRefusal`] with every reason.
    fn verdict(&self) -> Result<(), ProofRefusal>;
}

erased_serde::serialize_trait_object!(RecipeProof);

/// Proof of any recipe.
pub type BoxedProof = Box<dyn RecipeProof>;

/// Proof of an upstream baseline: the proof of the nearest recipe of kerntune. Always accepted, so
/// that a baseline whose profile was ignored is still measured.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct BaselineProof(pub BoxedProof);

impl RecipeProof for BaselineProof {
    fn verdict(&self) -> Result<(), ProofRefusal> {
        Ok(())
    }
}

impl fmt::Display for BaselineProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.0)?;
        match self.0.verdict() {
            Ok(()) => f.write_str("upstream baseline: needs no proof; kerntune's would accept it"),
            Err(refused) => {
                write!(f, "upstream baseline: needs no proof; kerntune's would refuse it: {refused}")
            }
        }
    }
}

macro_rules! evidence {
    ($($proof:ty),+) => {
        $(impl RecipeProof for $proof {
            fn verdict(&self) -> Result<(), ProofRefusal> {
                <$proof>::verdict(self)
            }
        })+
    };
}

evidence!(
    gcc_pgo::GccPgoProof,
    clang_autofdo::AutofdoProof,
    layout::LayoutProof,
    propeller::PropellerProof,
    bolt::BoltProof
);
