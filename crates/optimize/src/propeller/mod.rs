//! Recipes with `propeller`: reorders the blocks of each function and splits off code that never
//! ran, by exact counts of the tuned kernel itself.
//!
//! After H. Shen et al.: "Propeller: A Profile Guided, Relinking Optimizer for Warehouse-Scale
//! Applications" (ASPLOS 2023). A profile that is mapped back to lines of the source misses what
//! the compiler does after using it. Propeller records the tuned kernel's machine code once more,
//! and Clang generates the same code with its blocks in order. There a CPU samples its last
//! branches and `create_llvm_prof` makes the list; here the emulator counts each of them, and the
//! order is that of [`kerntune_layout::blocks`].
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | those of [`clang_autofdo`](crate::clang_autofdo) | a profile |
//! | 2 | [`mapped_request`] | build request: the kernel with the profile, and a map of its blocks |
//! | 3 | [`prepare_blocks`] | [`PreparedBlocks`]: a list of blocks, from a recording of that kernel with edges |
//! | 4 | [`ordered_request`] | build request: the same kernel with the blocks as in the list |
//! | 5 | [`prove`] | [`PropellerProof`]: evidence of the order in the image |
//! | 6 | those of [`layout`](crate::layout) | the functions, reduced to their frequent blocks, in order |

mod choose;
mod flow;
mod prepare;
mod probe;
mod proof;
mod request;
#[cfg(test)]
mod tests;
mod units;

pub use prepare::{block_list, prepare_blocks, BlocksSummary, OrderedFunction, PreparedBlocks};
pub use proof::{prove, PropellerProof, MIN_FITTING};
pub use request::{mapped_request, ordered_request};

use crate::Result;
use kerntune_kernel::Compiler;

/// Checks that `compiler` writes a map of blocks that kerntune reads, and takes a list of them.
///
/// # Errors
/// As [`clang_autofdo::check_compiler`](crate::clang_autofdo::check_compiler).
pub fn check_compiler(compiler: &Compiler) -> Result<()> {
    crate::clang_autofdo::check_compiler(compiler)?;
    let identity = compiler.identify()?;
    crate::probe::check("clang-autofdo+propeller", compiler, &identity, probe::block_map)
}
