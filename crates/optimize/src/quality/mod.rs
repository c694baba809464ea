//! The gate that a profile has to pass before a kernel is made of it, the same for all recipes (docs/quality.md).
//!
//! | question | figure |
//! |---|---|
//! | coverage | [`Quality::coverage`]: how much of what the kernel executed has counts |
//! | matched | [`Matched`]: functions and blocks that have a place in the kernel that is to be tuned |
//! | staleness | [`Matched::changed`] and [`Matched::lost`]: functions that the kernel has in another shape |
//! | overlap | [`Overlap`]: whether two halves of the training have the same hot functions |
//!
//! Start from [`check`], which answers for one recording and one kernel with a [`Quality`], and from [`carry`], which
//! makes a recording of another kernel (version, configuration, flags) one of this kernel as far as their functions
//! are the same. Everything but [`Image::load`] is pure.

mod carry;
mod check;
mod counters;
mod findings;
mod gate;
mod image;
mod matching;
mod overlap;
mod shape;
#[cfg(test)]
mod tests;

pub use carry::{Fate, Lost, Matched, Ran};
pub use check::{
    Finding, Quality, Unfit, Unit, FEW_INSTRUCTIONS, MAX_STRANGE_RUNS, MIN_CARRIED_PERCENT, MIN_COVERAGE,
    MIN_OVERLAP, STEADY_OVERLAP,
};
pub(crate) use counters::pass_counters;
pub use gate::{carry, check, Asking, Asks, Question};
pub(crate) use gate::{pass, SCHEMA as QUALITY_SCHEMA};
pub use image::Image;
pub use overlap::{HotSets, Overlap};
