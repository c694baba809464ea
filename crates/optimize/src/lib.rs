//! Profile → recipe inputs → tuned kernel, and the proof that it took.
//!
//! Start from [`Recipe`] (the ways there are to turn a profile into a kernel) and from the recipe's
//! own module: [`gcc_pgo`], [`clang_autofdo`], [`layout`], [`propeller`], [`bolt`]. A recipe is a set of steps, each a function of its own
//! that is named by its inputs and can be taken up again; between the steps somebody else builds and boots
//! kernels. This crate boots nothing. Every profile passes the gate of [`quality`] first.
//!
//! ```
//! use kerntune_optimize::Recipe;
//! let recipe: Recipe = "gcc-pgo".parse()?;
//! for requirement in recipe.requirements() {
//!     println!("{}: {}", requirement.what, requirement.why);
//! }
//! # Ok::<(), kerntune_optimize::Error>(())
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
mod needs;
mod object_counts;
mod proof;
pub mod propeller;
pub mod quality;
mod recipe;
mod refused;
mod requirement;
mod stored;
#[cfg(test)]
mod test_kernel;
mod version;

pub use error::{Error, Result};
pub use proof::Proof;
pub use recipe::Recipe;
pub use refused::Refused;
pub use requirement::Requirement;
