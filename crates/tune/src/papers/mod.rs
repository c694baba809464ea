//! Experiments of papers, repeated on our machines.

pub mod paper;
pub mod study;
pub mod survey;
