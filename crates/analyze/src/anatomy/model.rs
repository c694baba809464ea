//! Result types of an anatomy.

use super::spread::FigureSpread;
use crate::MissingChunk;
use kerntune_profile::{CallKind, FunctionIndex};
use std::collections::BTreeMap;

/// Anatomy of a function's calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anatomy {
    /// Call paths below the operation, as a tree in preorder; the first node is the operation.
    /// Children are in the order in which the trace first enters them. The self times sum to the
    /// time of all calls.
    pub nodes: Vec<AnatomyNode>,
    /// Distributions over all calls.
    pub all: FigureSpreads,
    /// The first of the calls with the median time; `None` if there is no call.
    pub typical: Option<ExampleCall>,
    /// The first of the calls with the greatest time; `None` if there is no call.
    pub worst: Option<ExampleCall>,
    /// Behavior before the boundary; all 0 if there is no boundary.
    pub before: BoundarySummary,
    /// Number of calls of which some part was not recorded.
    pub cut: u64,
    /// Number of complete calls that ended outside of the requested regions.
    pub elsewhere: u64,
    /// Number of calls left out because more than a thousand others were open.
    pub crowded: u64,
    /// Number of callees that did not fit into the tree: their time counts for the node above them.
    pub folded: u64,
    /// Chunks that were left out.
    pub missing: Vec<MissingChunk>,
    /// Number of events that were read.
    pub events: u64,
}

/// Figures of one call, without interrupts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallFigures {
    /// Total time, in ticks.
    pub ns: u64,
    /// Number of calls within it, itself included.
    pub calls: u64,
    /// Number of distinct functions that ran, the operation included.
    pub functions: u64,
    /// Greatest number of nested calls, itself included.
    pub depth: u64,
}

/// Distributions of the [`CallFigures`] of many calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FigureSpreads {
    /// Distribution of total times.
    pub ns: FigureSpread,
    /// Distribution of the numbers of calls.
    pub calls: FigureSpread,
    /// Distribution of the numbers of distinct functions.
    pub functions: FigureSpread,
    /// Distribution of depths.
    pub depth: FigureSpread,
}

/// A single call, as an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExampleCall {
    /// Virtual time of its entry, in ticks.
    pub begin_ns: u64,
    /// Index into [`kerntune_trace::Recording::threads`]; a greater number stands for an unknown
    /// thread.
    pub thread: u32,
    /// Figures of the whole call.
    pub figures: CallFigures,
    /// First entry into the boundary; `None` if the call did not reach it.
    pub before: Option<BoundaryEntry>,
}

/// First entry of a call into the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundaryEntry {
    /// The function of the boundary.
    pub function: FunctionIndex,
    /// Index in [`Anatomy::nodes`] of the node that called it.
    pub from: usize,
    /// Figures of the call up to this point.
    pub figures: CallFigures,
}

/// Behavior of calls before they enter the first function of the boundary. The call of that
/// function is not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoundarySummary {
    /// Distributions of the figures before the boundary, over the calls that reach it.
    pub spreads: FigureSpreads,
    /// Distribution of the time from the boundary on, over the same calls.
    pub after_ns: FigureSpread,
    /// Number of calls by the first function of the boundary that they reach.
    pub functions: BTreeMap<FunctionIndex, u64>,
    /// The first of the calls with the median time before the boundary.
    pub typical: Option<ExampleCall>,
}

/// A call path below the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnatomyNode {
    /// Function at the end of the path.
    pub function: FunctionIndex,
    /// Kind of entry. The operation itself may be entered in several ways; it always has `Call`.
    pub how: CallKind,
    /// 0 for the operation.
    pub depth: u32,
    /// Number of nodes of the subtree, itself included: the index distance to the next sibling.
    pub len: u32,
    /// Sums over all calls.
    pub all: NodeSums,
    /// Counts of the call [`Anatomy::typical`].
    pub typical: NodeSums,
    /// Counts of the call [`Anatomy::worst`].
    pub worst: NodeSums,
    /// Counts of the call [`BoundarySummary::typical`].
    pub boundary: NodeSums,
}

/// Counts at a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeSums {
    /// Number of operations that entered the node.
    pub operations: u64,
    /// Counts of whole operations.
    pub whole: NodeFigures,
    /// The part of them before the boundary.
    pub before: NodeFigures,
    /// For a single call: rank of the node in the order of first entries.
    pub order: u32,
}

/// Figures of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFigures {
    /// Number of entries.
    pub calls: u64,
    /// Self time, in ticks.
    pub self_ticks: u64,
    /// Total time of the subtree, in ticks.
    pub elapsed_ns: u64,
    /// Number of distinct functions in the subtree.
    pub functions: u64,
}
