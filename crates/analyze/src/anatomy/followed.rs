//! State of a followed call while it is open.

use super::model::CallFigures;
use super::spread::CallPosition;
use super::tree::{CallTree, ROOT};

/// Maximum number of calls followed at a time, one for each thread within the function.
pub(super) const MAX_FOLLOWED: usize = 1 << 10;

/// Counts of a call at one node of the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeEntry {
    pub node: u32,
    pub calls: u64,
    pub self_time: u64,
    /// The same counts before the boundary; 0 until it is reached.
    pub calls_before: u64,
    pub self_time_before: u64,
}

/// First entry of a function of the boundary.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundaryHit {
    pub function: u32,
    /// Node of the caller.
    pub node: u32,
    pub figures: CallFigures,
}

/// An open call of the operation. Its entries are in the order in which their nodes were first
/// entered.
#[derive(Debug, Default)]
pub(super) struct FollowedCall {
    pub place: CallPosition,
    pub begin: u64,
    pub thread: u32,
    pub calls: u64,
    pub depth: u64,
    /// Calls inside it that did not fit into the tree.
    pub folded: u64,
    pub boundary: Option<BoundaryHit>,
    pub entries: Vec<NodeEntry>,
    /// Index of a node's entry; valid only if that entry is of the node.
    places: Vec<u32>,
}

impl FollowedCall {
    /// Begins a call, reusing the memory of one that has ended.
    pub fn begin(&mut self, place: CallPosition, begin: u64, thread: u32) {
        (self.place, self.begin, self.thread) = (place, begin, thread);
        (self.calls, self.depth, self.folded, self.boundary) = (1, 1, 0, None);
        self.entries.clear();
        let root = self.entry(ROOT);
        self.entries[root as usize].calls = 1;
    }

    /// Returns the index of a node's entry; makes the entry if there is none.
    #[inline]
    pub fn entry(&mut self, node: u32) -> u32 {
        let at = node as usize;
        if let Some(&place) = self.places.get(at) {
            if self.entries.get(place as usize).is_some_and(|entry| entry.node == node) {
                return place;
            }
        }
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        let place = self.entries.len() as u32;
        self.places[at] = place;
        self.entries.push(NodeEntry { node, calls: 0, self_time: 0, calls_before: 0, self_time_before: 0 });
        place
    }
}

/// Counter of distinct functions.
#[derive(Debug)]
pub(super) struct DistinctFunctions {
    /// Value of `turn` when each function was last counted.
    seen: Vec<u64>,
    turn: u64,
}

impl DistinctFunctions {
    pub fn new(functions: usize) -> Self {
        Self { seen: vec![0; functions + 1], turn: 0 }
    }

    /// Returns the number of distinct functions in a call so far.
    pub fn count(&mut self, tree: &CallTree, entries: &[NodeEntry]) -> u64 {
        self.turn += 1;
        let mut count = 0;
        for entry in entries {
            let function = tree.nodes[entry.node as usize].function as usize;
            if let Some(seen) = self.seen.get_mut(function).filter(|seen| **seen != self.turn) {
                *seen = self.turn;
                count += 1;
            }
        }
        count
    }
}
