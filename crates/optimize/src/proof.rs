//! Common interface of the recipes' proofs, and what several of them share.

use crate::{ProofRefusal, Result};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use serde::Serialize;
use std::fmt;
use std::fs;

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

/// Returns the refusal of a kernel that was built with another profile than `profile`.
pub(crate) fn wrong_profile(built_with: Option<&str>, profile: &str) -> Option<String> {
    let built_with = built_with.unwrap_or("none");
    (built_with != profile).then(|| {
        format!("it was built with profile {built_with}, not with {profile}: build the tuned kernel again")
    })
}

/// Reads the log of a kernel's build.
pub(crate) fn build_log(kernel: &Kernel) -> Result<String> {
    let path = kernel.build_log();
    let text = fs::read(&path).at("read build log", &path)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Writes the line about the bytes of code before and after.
pub(crate) fn write_text_bytes(f: &mut fmt::Formatter<'_>, before: u64, after: u64) -> fmt::Result {
    let change = 100.0 * (after as f64 / before.max(1) as f64 - 1.0);
    writeln!(f, "  text        {before} → {after} bytes ({change:+.1} %)")
}
