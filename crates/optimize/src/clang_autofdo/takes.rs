//! Whether counts of a kernel can be led back to its source at all.

use super::debug_info;
use super::llvm::Llvm;
use crate::Result;
use kerntune_kernel::{Compiler, Kernel};

/// Refuses a kernel that the recipe could make nothing of, whatever was recorded.
///
/// # Errors
/// A compiler that is none of LLVM's, and an image without what leads its addresses back to the source.
pub(crate) fn takes(kernel: &Kernel) -> Result<()> {
    Llvm::of(&kernel.manifest.cc.parse::<Compiler>()?)?;
    debug_info::check(kernel)
}
