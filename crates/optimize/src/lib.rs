//! Profile → recipe inputs → tuned kernel, and the proof that it took.
//!
//! Start from a module: [`gcc_pgo`], [`clang_autofdo`], [`layout`], [`propeller`], [`bolt`]. Each has the stages of one
//! recipe, functions whose results are named by their inputs and can be taken up again; between them somebody else builds and boots
//! kernels, in the order that the recipe's own file in `kerntune_tune` says. This crate boots nothing. Every profile passes the gate
//! of [`quality`] first, and what a recipe proves is [`Evidence`].
//!
//! ```
//! use kerntune_optimize::gcc_pgo;
//! for requirement in gcc_pgo::REQUIREMENTS {
//!     println!("{}: {}", requirement.what, requirement.why);
//! }
//! ```

/// Names the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

pub mod bolt;
pub mod clang_autofdo;
mod debug_info;
mod error;
#[doc(hidden)]
pub mod foreign;
pub mod gcc_pgo;
pub mod layout;
mod llvm;
mod object_counts;
mod proof;
pub mod propeller;
pub mod quality;
mod refused;
mod requirement;
mod stored;
#[cfg(test)]
mod test_kernel;
mod version;

pub use error::{Error, Result};
pub use proof::{Evidence, Proof, Unasked};
pub use refused::Refused;
pub use requirement::Requirement;
