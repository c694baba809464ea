//! What every recipe's proof has in common.

use crate::{bolt, clang_autofdo, gcc_pgo, layout, propeller, Refused};
use serde::Serialize;
use std::fmt;

/// What was found out about a tuned kernel, in the terms of its recipe. `Display` tells it to people.
pub trait Evidence: fmt::Debug + fmt::Display + erased_serde::Serialize {
    /// Whether the kernel carries its profile.
    ///
    /// # Errors
    /// [`Refused`] with every reason.
    fn verdict(&self) -> Result<(), Refused>;
}

erased_serde::serialize_trait_object!(Evidence);

/// The proof of any recipe.
pub type Proof = Box<dyn Evidence>;

/// The proof of an upstream baseline: what the proof of the recipe nearest to it found. Nobody asks for it, so that what
/// comes of that can be seen.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Unasked(pub Proof);

impl Evidence for Unasked {
    fn verdict(&self) -> Result<(), Refused> {
        Ok(())
    }
}

impl fmt::Display for Unasked {
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
        $(impl Evidence for $proof {
            fn verdict(&self) -> Result<(), Refused> {
                <$proof>::verdict(self)
            }
        })+
    };
}

evidence!(gcc_pgo::Proof, clang_autofdo::Proof, layout::Proof, propeller::Proof, bolt::Proof);
