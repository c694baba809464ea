//! What is kept of a call while it is open.

use super::model::Figures;
use super::spread::Place;
use super::tree::{Tree, ROOT};

/// Calls at a time: more threads are not within one function.
pub(super) const FOLLOWED: usize = 1 << 10;

/// What a call did so far at one node of the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub node: u32,
    pub calls: u64,
    pub net: u64,
    /// The same before the boundary; 0 as long as it is not reached.
    pub calls_before: u64,
    pub net_before: u64,
}

/// How the boundary was reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate {
    /// The function of the boundary.
    pub function: u32,
    /// The node of what entered it.
    pub node: u32,
    pub figures: Figures,
}

/// A call that is open. Its entries are in the order in which their nodes were first entered.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub place: Place,
    pub begin: u64,
    pub thread: u32,
    pub calls: u64,
    pub depth: u64,
    /// Calls among them that found no room in the tree.
    pub folded: u64,
    pub gate: Option<Gate>,
    pub entries: Vec<Entry>,
    /// Where a node's entry is, if that is one of the node.
    places: Vec<u32>,
}

impl Followed {
    /// A call begins; room is taken over from one that has ended.
    pub fn begin(&mut self, place: Place, begin: u64, thread: u32) {
        (self.place, self.begin, self.thread) = (place, begin, thread);
        (self.calls, self.depth, self.folded, self.gate) = (1, 1, 0, None);
        self.entries.clear();
        let root = self.entry(ROOT);
        self.entries[root as usize].calls = 1;
    }

    /// The number of a node's entry.
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
        self.entries.push(Entry { node, calls: 0, net: 0, calls_before: 0, net_before: 0 });
        place
    }
}

/// Counts different functions.
#[derive(Debug)]
pub(super) struct Different {
    /// When each was last seen.
    seen: Vec<u64>,
    turn: u64,
}

impl Different {
    pub fn new(functions: usize) -> Self {
        Self { seen: vec![0; functions + 1], turn: 0 }
    }

    /// How many functions a call was in so far.
    pub fn count(&mut self, tree: &Tree, entries: &[Entry]) -> u64 {
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
