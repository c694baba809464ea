//! Profile → recipe inputs → tuned kernel, and the proof that the profile was used.
//!
//! Start from a module: [`gcc_pgo`], [`clang_autofdo`], [`layout`], [`propeller`], [`bolt`]. Each
//! has the stages of one recipe: functions whose results are named by their inputs, so that an
//! interrupted recipe resumes. The recipe's file in `kerntune_tune` calls them in order, and builds
//! and boots kernels in between; this crate boots nothing. Every profile passes the gate of
//! [`quality`] first. The proof of a recipe is a [`RecipeProof`]; [`own_build`] examines kernels that
//! kerntune did not build.
//!
//! ```
//! use kerntune_optimize::gcc_pgo;
//! for requirement in gcc_pgo::REQUIREMENTS {
//!     println!("{}: {}", requirement.what, requirement.why);
//! }
//! ```

/// Hash of the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

pub mod bolt;
mod call_counts;
pub mod clang_autofdo;
mod debug_info;
mod error;
mod executed_objects;
mod fixed_sections;
#[doc(hidden)]
pub mod foreign;
pub mod gcc_pgo;
pub mod layout;
mod llvm;
mod module_code;
mod object_counts;
pub mod own_build;
mod probe;
mod proof;
pub mod propeller;
pub mod quality;
mod refusal;
mod requirement;
mod share;
mod stored;
#[cfg(test)]
mod test_kernel;
mod version;

pub use error::{Error, Result};
pub use executed_objects::executed_objects;
pub use proof::{BaselineProof, BoxedProof, RecipeProof};
pub use refusal::ProofRefusal;
pub use requirement::Requirement;
pub use stored::PreparedResult;
