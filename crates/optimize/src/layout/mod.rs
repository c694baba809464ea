//! Recipe `layout`: functions placed by who calls whom, the second optimisation of HP's kernel (Speer, Kumar, Partridge 1994).
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | a build with [`movable`](kerntune_kernel::BuildRequest::movable) | the kernel, each function in a section of its own |
//! | 2 | [`prepare_order`] | [`PreparedOrder`]: from a recording with edges of that kernel to an order |
//! | 3 | [`relink`](kerntune_kernel::relink) | the same objects, linked in that order |
//! | 4 | [`prepare_sets`] | the same with places by the sets of the cache, where a loop is greater than it; linked again |
//! | 5 | [`prove`] | [`Proof`]: where the functions are in the linked image |
//!
//! The order is applied by the linker script, which GNU ld and lld both read. It says where a function begins,
//! and nothing of its inside: that is for the compiler with a profile, and the two go together.

mod graph;
mod prepare;
mod proof;
mod sets;
#[cfg(test)]
mod tests;

pub use prepare::{prepare_order, prepare_order_like, OrderSummary, PreparedOrder};
pub use proof::{prove, ImageEvidence, Proof, MIN_IN_PLACE};
pub use sets::prepare_sets;

pub use kerntune_layout::order::Algorithm;

use crate::Requirement;

/// The recipe's name.
pub const NAME: &str = "layout";

/// The algorithm where none is named: the one with the fewest misses on real kernels (docs/layout.md), although
/// cache-directed sort has the better scores on graphs like theirs.
pub const DEFAULT_ALGORITHM: Algorithm = Algorithm::C3;

/// What the recipe cannot do without.
pub const REQUIREMENTS: &[Requirement] = &[Requirement {
    what: "the linker of the compiler: GNU ld for GCC, lld for Clang",
    why: "places every function where the order says",
    mend: "apt-get install binutils lld-19",
}];
