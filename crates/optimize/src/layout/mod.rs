//! Recipe `layout`: places functions by their calls, after the second optimization of HP's kernel
//! (Speer, Kumar, Partridge 1994).
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | a build with [`movable`](kerntune_kernel::BuildRequest::movable) | the kernel, each function in a section of its own |
//! | 2 | [`prepare_order`] | [`PreparedOrder`]: an order, from a recording of that kernel with edges |
//! | 3 | [`relink`](kerntune_kernel::relink) | the same objects, linked in that order |
//! | 4 | [`prepare_coloring`] | the order with cache coloring, where a loop is larger than the cache; linked again |
//! | 5 | [`prove`] | [`LayoutProof`]: addresses of the functions in the linked image |
//!
//! The linker script applies the order; GNU ld and lld both read it. The order determines where a
//! function begins, and nothing inside it: that is for the compiler with a profile, and the two can
//! be combined.

mod coloring;
mod graph;
mod module_proof;
#[cfg(test)]
mod module_tests;
mod modules;
mod prepare;
mod proof;
#[cfg(test)]
mod tests;

pub use coloring::prepare_coloring;
pub use module_proof::ModuleLayout;
pub use modules::OrderedModule;
pub use prepare::{
    prepare_order, prepare_order_for_own_build, prepare_order_like, OrderSummary, PreparedOrder,
};
pub use proof::{prove, ImageFootprint, LayoutProof, MIN_IN_PLACE};

pub use kerntune_layout::order::OrderAlgorithm;

use crate::Requirement;

/// Name of the recipe.
pub const NAME: &str = "layout";

/// Default algorithm: the one with the fewest misses on real kernels (docs/layout.md), although
/// cache-directed sort has the better scores on graphs like theirs.
pub const DEFAULT_ALGORITHM: OrderAlgorithm = OrderAlgorithm::C3;

/// Requirements of the recipe.
pub const REQUIREMENTS: &[Requirement] = &[Requirement {
    what: "the linker of the compiler: GNU ld for GCC, lld for Clang",
    why: "places every function where the order says",
    fix: "apt-get install binutils, or lld of Clang's version",
}];
