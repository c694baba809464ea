//! Experiments of papers, repeated on our machines.

mod error;
pub mod paper;
pub mod study;
pub mod survey;

pub use error::{Result, RunError};
