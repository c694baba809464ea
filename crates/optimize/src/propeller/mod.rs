//! Recipes with `propeller`: the blocks of each function in the order in which they run, and what never ran split off, by
//! exact counts of the tuned kernel itself.
//!
//! After H. Shen et al.: "Propeller: A Profile Guided, Relinking Optimizer for Warehouse-Scale Applications" (ASPLOS
//! 2023). A profile that is led back to lines of the source and compiled in loses what the compiler does after that; here
//! the machine code that came out is recorded once more, and Clang makes it again with its blocks in order. There a CPU
//! samples its last branches and `create_llvm_prof` makes the list; here the emulator has counted each of
//! them, and the order is [`kerntune_layout::blocks`].
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | those of [`clang_autofdo`](crate::clang_autofdo) | a profile |
//! | 2 | [`mapped_request`] | what to build: the kernel with it, and a map of its blocks |
//! | 3 | [`prepare_blocks`] | [`PreparedBlocks`]: from a recording with edges of that kernel to a list |
//! | 4 | [`ordered_request`] | what to build: the same kernel with the blocks as in the list |
//! | 5 | [`prove`] | [`Proof`]: whether the image has them so |
//! | 6 | those of [`layout`](crate::layout) | functions, which now are what ran of them, in order |

mod choose;
mod flow;
mod prepare;
mod proof;
mod request;
#[cfg(test)]
mod tests;
mod units;

pub use prepare::{prepare_blocks, BlocksSummary, OrderedFunction, PreparedBlocks};
pub use proof::{prove, Proof, MIN_FITTING};
pub use request::{mapped_request, ordered_request};
