//! Gate that a profile must pass before a recipe uses it, the same for all recipes
//! (docs/quality.md).
//!
//! | question | figure |
//! |---|---|
//! | coverage | [`ProfileQuality::coverage`]: share of the executed code with counts |
//! | matched | [`MatchedCode`]: functions and blocks with a place in the kernel to be tuned |
//! | staleness | [`MatchedCode::changed`] and [`MatchedCode::lost`]: functions with another shape in that kernel |
//! | overlap | [`HotOverlap`]: similarity of the hot functions of two halves of the training |
//!
//! Start from [`check`], which returns a [`ProfileQuality`] for one recording and one kernel, and
//! from [`transfer`], which converts a recording of another kernel (version, configuration, flags)
//! as far as the functions are the same. Everything except [`LinkedCode::load`] is pure.

mod blocks;
mod calls;
mod check;
mod counters;
mod findings;
mod gate;
mod image;
mod input;
mod matching;
mod overlap;
mod pairs;
mod rebuilt;
mod recorded;
mod renamed;
mod score;
mod shape;
#[cfg(test)]
mod tests;
mod transfer;

pub use calls::{MAX_LOST, MIN_CALL_COVERAGE, MIN_SAMPLES};
pub use check::{
    CountUnit, GateFinding, ProfileQuality, ProfileRefusal, MAX_STRANGE_RUNS, MIN_COVERAGE, MIN_INSTRUCTIONS,
    MIN_INSTRUCTION_SAMPLES, MIN_OVERLAP, MIN_TRANSFERRED_PERCENT, STEADY_OVERLAP,
};
pub(crate) use counters::pass_counters;
pub use gate::{check, transfer};
pub(crate) use gate::{pass, pass_instructions, pass_order};
pub use image::LinkedCode;
pub(crate) use input::SCHEMA as QUALITY_SCHEMA;
pub use input::{GateInput, RecipeAnswer};
pub use overlap::{HotOverlap, HotSets};
pub use score::TransferScore;
pub use transfer::{ExecutedTotals, LossReason, MatchedCode, UnmatchedFunction};
