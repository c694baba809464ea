//! The tree of call paths that samples fill: bounded, so that its size does not depend on how long one samples.

use std::collections::HashMap;

/// Bytes of an entry in the table that finds a node: key, number, control byte.
const ENTRY_BYTES: usize = 13;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// Root: all threads of a name, by the name's number.
    Thread(u32),
    /// Root: all interrupts.
    Interrupt,
    /// Root: idle tasks while not halted.
    Idle,
    /// A function, by its number in the table of symbols.
    Function(u32),
    /// User mode.
    User,
    /// Code that no symbol names.
    Unattributed,
}

/// A way in which code was reached, and the samples in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What it stands for.
    pub key: Key,
    /// The node above; [`Tree::ROOT`] for a root.
    pub parent: u32,
    /// Samples at this very path.
    pub samples: u64,
}

/// All of them. Parents come before children.
#[derive(Debug, Clone)]
pub struct Tree {
    nodes: Vec<Node>,
    find: HashMap<(u32, Key), u32>,
    most: usize,
    /// Samples that are in a node above their own, as there was no room for one.
    pub folded: u64,
    /// Samples that have not even a root.
    pub homeless: u64,
}

impl Tree {
    /// [`Node::parent`] of a root.
    pub const ROOT: u32 = u32::MAX;

    /// One that never has more than `most` nodes. Its memory is taken at once.
    pub fn new(most: usize) -> Self {
        let (nodes, find) = (Vec::with_capacity(most), HashMap::with_capacity(most));
        Self { nodes, find, most, folded: 0, homeless: 0 }
    }

    /// Counts `count` samples at the path of `keys`, root first.
    pub fn add(&mut self, keys: impl IntoIterator<Item = Key>, count: u64) {
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

    fn child(&mut self, parent: u32, key: Key) -> Option<u32> {
        if let Some(found) = self.find.get(&(parent, key)) {
            return Some(*found);
        }
        if self.nodes.len() >= self.most {
            return None;
        }
        let number = self.nodes.len() as u32;
        self.nodes.push(Node { key, parent, samples: 0 });
        self.find.insert((parent, key), number);
        Some(number)
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Forgets all samples, and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.find.clear();
        (self.folded, self.homeless) = (0, 0);
    }

    /// Bytes that a tree of at most so many nodes takes.
    pub fn bound(most: usize) -> usize {
        // A table is at most seven eighths full, and its size a power of two.
        let entries = most.saturating_mul(8).div_ceil(7).next_power_of_two();
        most.saturating_mul(size_of::<Node>()).saturating_add(entries.saturating_mul(ENTRY_BYTES + 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_share_what_they_have_in_common_and_the_bound_holds() {
        let mut tree = Tree::new(3);
        let path = |functions: &[u32]| {
            let functions: Vec<Key> = functions.iter().map(|f| Key::Function(*f)).collect();
            [vec![Key::Thread(0)], functions].concat()
        };
        tree.add(path(&[1, 2]), 3);
        tree.add(path(&[1]), 1);
        tree.add(path(&[1, 4]), 5);
        tree.add([Key::Idle], 7);
        let samples: Vec<u64> = tree.nodes().iter().map(|node| node.samples).collect();
        assert_eq!((samples, tree.folded, tree.homeless), (vec![0, 6, 3], 5, 7));
        tree.clear();
        assert!(tree.nodes().is_empty() && tree.folded == 0);
        assert!(Tree::bound(1 << 17) < 16 << 20);
    }
}
