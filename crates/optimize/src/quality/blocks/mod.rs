//! Counts of a function's blocks in another build of the function.
//!
//! [`CodeGraph`] is the control flow of one function's machine code. [`match_blocks`] pairs the
//! blocks of two such graphs by their contents, in several strengths, and by their neighbors.
//! [`infer`] completes the counts of matched blocks to a flow through the whole graph, and
//! [`rows`] writes a flow as rows of a profile. All of it is pure and deterministic.
//!
//! Matching by hashes of contents and of call sites is after A. Ayupov, M. Panchenko, S. Pupyrev:
//! "Stale Profile Matching" (CC 2024). The completion by a flow of least cost is after W. He, J.
//! Mestre, S. Pupyrev, L. Wang, H. Yu: "Profile Inference Revisited" (POPL 2022).

mod graph;
mod inference;
mod likeness;
mod network;
mod rows;
#[cfg(test)]
mod tests;

pub(super) use graph::{BlockExit, CodeGraph, EdgeRole};
pub(super) use inference::{infer, BlockFlow, KnownCount, KnownCounts};
pub(super) use likeness::{match_blocks, BlockLikeness, BlockMatch};
pub(super) use rows::{inner_edges, straight_rows};
