//! Inputs of the gate, and the parts of its answers that come from them.

use super::check::GateFinding;
use kerntune_kernel::Kernel;
use kerntune_profile::{KernelId, Profile};

pub(crate) const SCHEMA: &str = "kerntune-quality/1";

/// Recipe that is to use a recording.
#[derive(Debug, Clone, Copy)]
pub struct RecipeAnswer<'a> {
    /// Name of the recipe.
    pub recipe: &'a str,
    /// Reason for which the recipe would not use a recording for this kernel.
    pub refusal: Option<&'a GateFinding>,
}

/// Inputs of the gate.
#[derive(Debug, Clone, Copy)]
pub struct GateInput<'a> {
    /// Recording to check.
    pub recording: &'a Profile,
    /// Recorded kernel, if it still exists.
    pub recorded: Option<&'a Kernel>,
    /// Kernel that the recording is to be used for.
    pub kernel: &'a Kernel,
    /// Recipe that is to use the recording, if known.
    pub recipe: Option<RecipeAnswer<'a>>,
    /// Description and recordings of the two halves of the training; otherwise the recording itself
    /// is halved.
    pub halves: Option<(&'a str, [&'a Profile; 2])>,
}

pub(super) fn kernel_id(kernel: &Kernel) -> KernelId {
    let manifest = &kernel.manifest;
    let (id, label, version) = (manifest.id.clone(), manifest.label.clone(), manifest.version.clone());
    KernelId { id, label, version }
}
