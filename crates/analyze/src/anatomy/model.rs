//! What the calls of a function come to.

use super::spread::Spread;
use crate::Missing;
use kerntune_profile::{FunctionIndex, How};
use std::collections::BTreeMap;

/// What the calls of a function do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anatomy {
    /// Every way in which functions are reached from the operation, as a tree in preorder; the first node is the operation.
    /// Children are in the order in which the trace has them first. Net times sum to that of all calls.
    pub nodes: Vec<Node>,
    /// How figures are spread over all calls.
    pub all: Spreads,
    /// The first of the calls whose time is the median; none without calls.
    pub typical: Option<Call>,
    /// The first of the calls whose time is the greatest; none without calls.
    pub worst: Option<Call>,
    /// What calls do before they reach the boundary; all 0 if none was asked for.
    pub before: Before,
    /// Calls of which the beginning, the end or something between was not recorded.
    pub cut: u64,
    /// Calls that were seen whole and ended elsewhere than in the regions that were asked for.
    pub elsewhere: u64,
    /// Calls that were left out since more than a thousand others were open.
    pub crowded: u64,
    /// Calls below that found no room in the tree: they are counted, and their time is that of the node above them.
    pub folded: u64,
    /// Chunks that were left out.
    pub missing: Vec<Missing>,
    /// Events that were read.
    pub events: u64,
}

/// Figures of one call. Interrupts are no part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Its time, in nanoseconds: on the emulator, instructions.
    pub ns: u64,
    /// Calls within it, and itself.
    pub calls: u64,
    /// Different functions that ran, the operation among them.
    pub functions: u64,
    /// Greatest number of calls open at a time, itself among them.
    pub depth: u64,
}

/// How the [`Figures`] of calls are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spreads {
    /// Of their times.
    pub ns: Spread,
    /// Of their calls.
    pub calls: Spread,
    /// Of their functions.
    pub functions: Spread,
    /// Of their depths.
    pub depth: Spread,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Virtual time of its beginning.
    pub begin_ns: u64,
    /// Index into [`kerntune_trace::Recording::threads`]; a number beyond them stands for a thread that is not known.
    pub thread: u32,
    /// All of it.
    pub figures: Figures,
    /// How it reached the boundary, if it did.
    pub before: Option<Reached>,
}

/// How a call reached the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The function of the boundary.
    pub function: FunctionIndex,
    /// The node of what called it, in [`Anatomy::nodes`].
    pub from: usize,
    /// What it did before.
    pub figures: Figures,
}

/// What calls do before the first function of the boundary that is entered within them. Its call is not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before {
    /// Of the calls that reach it: what they do before.
    pub spreads: Spreads,
    /// Of the same calls: their time from then on.
    pub after_ns: Spread,
    /// Which function of the boundary was the first one, and in how many calls.
    pub functions: BTreeMap<FunctionIndex, u64>,
    /// The first of the calls whose time before is the median.
    pub typical: Option<Call>,
}

/// A way in which a function is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The function.
    pub function: FunctionIndex,
    /// How it was entered; of the operation itself, which may be entered in several ways, a call.
    pub how: How,
    /// 0 for the operation.
    pub depth: u32,
    /// Nodes of its subtree, itself among them: the next sibling, if there is one, is so much further on.
    pub len: u32,
    /// All calls together.
    pub all: Sums,
    /// [`Anatomy::typical`].
    pub typical: Sums,
    /// [`Anatomy::worst`].
    pub worst: Sums,
    /// [`Before::typical`].
    pub gate: Sums,
}

/// What happened at a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Calls of the operation in which it was there.
    pub operations: u64,
    /// All of it.
    pub whole: Part,
    /// What of it was before the boundary.
    pub before: Part,
    /// Of one call: its place in the order in which that call first entered its nodes.
    pub order: u32,
}

/// Figures of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// How often it was entered.
    pub calls: u64,
    /// Time in the function itself, ns.
    pub net_ns: u64,
    /// Time with all that is below, ns.
    pub elapsed_ns: u64,
    /// Different functions at it and below it.
    pub functions: u64,
}
