//! Tree of call paths. Its size is bounded and does not depend on the sampling time.

use kerntune_profile::PathFrame;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Size of an entry of the lookup table in bytes: key, index, control byte.
const ENTRY_BYTES: usize = 13;

/// Frame that a node stands for: a thread by the index of its name, a function by its index in the
/// table of symbols.
pub type SampleFrame = PathFrame<u32, u32>;

/// Call path with its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleNode {
    /// Innermost frame of the path.
    pub key: SampleFrame,
    /// Index of the parent node; [`SampleTree::ROOT`] for a root.
    pub parent: u32,
    /// Samples at exactly this path.
    pub samples: u64,
}

/// All call paths. Parents come before their children.
#[derive(Debug, Clone)]
pub struct SampleTree {
    nodes: Vec<SampleNode>,
    find: FxHashMap<(u32, SampleFrame), u32>,
    max: usize,
    /// Samples moved to an ancestor because there was no room for their node.
    pub folded: u64,
    /// Samples for which not even a root found room.
    pub homeless: u64,
}

impl SampleTree {
    /// Value of [`SampleNode::parent`] in a root.
    pub const ROOT: u32 = u32::MAX;

    /// Creates a tree of at most `max` nodes and allocates its memory.
    pub fn new(max: usize) -> Self {
        let (nodes, find) =
            (Vec::with_capacity(max), FxHashMap::with_capacity_and_hasher(max, FxBuildHasher));
        Self { nodes, find, max, folded: 0, homeless: 0 }
    }

    /// Adds `count` samples at the path of `keys`, root first.
    pub fn add(&mut self, keys: impl IntoIterator<Item = SampleFrame>, count: u64) {
        let (mut at, mut whole) = (Self::ROOT, true);
        for key in keys {
            match self.child(at, key) {
                Some(child) => at = child,
                None => {
                    whole = false;
                    break;
                }
            }
        }
        match self.nodes.get_mut(at as usize) {
            Some(node) => {
                node.samples += count;
                self.folded += if whole { 0 } else { count };
            }
            None => self.homeless += count,
        }
    }

    /// Returns the node of the path of `keys`, root first. Without room for it, that is the node of
    /// an ancestor, or [`ROOT`](Self::ROOT), and the path is counted as folded.
    pub fn intern(&mut self, keys: impl IntoIterator<Item = SampleFrame>) -> u32 {
        let mut at = Self::ROOT;
        for key in keys {
            match self.child(at, key) {
                Some(child) => at = child,
                None => {
                    self.folded += 1;
                    break;
                }
            }
        }
        at
    }

    /// Returns the functions of a path, outermost first.
    pub fn functions(&self, node: u32) -> Vec<u32> {
        let mut functions = Vec::new();
        let mut at = node;
        while let Some(node) = self.nodes.get(at as usize) {
            if let SampleFrame::Function(function) = node.key {
                functions.push(function);
            }
            at = node.parent;
        }
        functions.reverse();
        functions
    }

    fn child(&mut self, parent: u32, key: SampleFrame) -> Option<u32> {
        if let Some(found) = self.find.get(&(parent, key)) {
            return Some(*found);
        }
        if self.nodes.len() >= self.max {
            return None;
        }
        let number = self.nodes.len() as u32;
        self.nodes.push(SampleNode { key, parent, samples: 0 });
        self.find.insert((parent, key), number);
        Some(number)
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &[SampleNode] {
        &self.nodes
    }

    /// Removes all samples but keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.find.clear();
        (self.folded, self.homeless) = (0, 0);
    }

    /// Returns an upper bound for the memory of a tree of `max` nodes, in bytes.
    pub fn bound(max: usize) -> usize {
        // A hash table is at most seven eighths full, and its size is a power of two.
        let entries = max.saturating_mul(8).div_ceil(7).next_power_of_two();
        max.saturating_mul(size_of::<SampleNode>()).saturating_add(entries.saturating_mul(ENTRY_BYTES + 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_share_what_they_have_in_common_and_the_bound_holds() {
        let mut tree = SampleTree::new(3);
        let path = |functions: &[u32]| {
            let functions: Vec<SampleFrame> = functions.iter().map(|f| SampleFrame::Function(*f)).collect();
            [vec![SampleFrame::Thread(0)], functions].concat()
        };
        tree.add(path(&[1, 2]), 3);
        tree.add(path(&[1]), 1);
        tree.add(path(&[1, 4]), 5);
        tree.add([SampleFrame::Idle], 7);
        let samples: Vec<u64> = tree.nodes().iter().map(|node| node.samples).collect();
        assert_eq!((samples, tree.folded, tree.homeless), (vec![0, 6, 3], 5, 7));
        tree.clear();
        assert!(tree.nodes().is_empty() && tree.folded == 0);
        assert!(SampleTree::bound(1 << 17) < 16 << 20);
    }
}
