//! The proof of any recipe.

use crate::{bolt, clang_autofdo, gcc_pgo, layout, propeller, Refused};
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
    /// Of recipe `layout`, alone or after another whose own proof was accepted before.
    Layout(Box<layout::Proof>),
    /// Of the blocks of recipes with `propeller`, before functions are placed.
    Propeller(Box<propeller::Proof>),
    /// Of recipe `bolt`.
    Bolt(Box<bolt::Proof>),
    /// Of a stock way: what the proof of the recipe nearest to it found.
    Stock(Box<Proof>),
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
            Proof::Layout(proof) => proof.verdict(),
            Proof::Propeller(proof) => proof.verdict(),
            Proof::Bolt(proof) => proof.verdict(),
            // Nobody asks, so that it can be seen what comes of that.
            Proof::Stock(_) => Ok(()),
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::GccPgo(proof) => fmt::Display::fmt(proof, f),
            Proof::ClangAutofdo(proof) => fmt::Display::fmt(proof, f),
            Proof::Layout(proof) => fmt::Display::fmt(proof, f),
            Proof::Propeller(proof) => fmt::Display::fmt(proof, f),
            Proof::Bolt(proof) => fmt::Display::fmt(proof, f),
            Proof::Stock(proof) => {
                writeln!(f, "{proof}")?;
                match proof.verdict() {
                    Ok(()) => f.write_str("stock way: its own book asks for no proof; kerntune's accepts it"),
                    Err(refused) => {
                        write!(
                            f,
                            "stock way: its own book asks for no proof; kerntune would refuse it: {refused}"
                        )
                    }
                }
            }
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

impl From<layout::Proof> for Proof {
    fn from(proof: layout::Proof) -> Self {
        Proof::Layout(Box::new(proof))
    }
}

impl From<propeller::Proof> for Proof {
    fn from(proof: propeller::Proof) -> Self {
        Proof::Propeller(Box::new(proof))
    }
}

impl From<bolt::Proof> for Proof {
    fn from(proof: bolt::Proof) -> Self {
        Proof::Bolt(Box::new(proof))
    }
}
