//! Tree of the call paths within a call, up to a limit of size.
//!
//! As in `src/tree.rs`, looking up a callee is the most frequent operation: a node remembers the
//! child that was looked up last, and each child the sibling that was looked up after it.

use crate::hash::BuildIntegerHasher;
use kerntune_trace::EnterKind;
use std::collections::HashMap;

/// Maximum number of nodes. Calls that do not fit count for the node above them.
const MAX_NODES: usize = 1 << 16;

/// Node of the operation.
pub(super) const ROOT: u32 = 1;

#[derive(Debug, Clone, Copy)]
pub(super) struct CallTreeNode {
    pub parent: u32,
    pub function: u32,
    pub how: EnterKind,
    last_child: u32,
    /// The sibling that was looked up after this one.
    next: u32,
}

/// The first node is a dummy, the second is the operation.
#[derive(Debug, Default)]
pub(super) struct CallTree {
    pub nodes: Vec<CallTreeNode>,
    children: HashMap<(u32, u32, u8), u32, BuildIntegerHasher>,
}

impl CallTree {
    /// Makes a tree of the operation alone.
    pub fn new(function: u32) -> Self {
        let none =
            CallTreeNode { parent: 0, function: u32::MAX, how: EnterKind::Call, last_child: 0, next: 0 };
        Self { nodes: vec![none, CallTreeNode { function, ..none }], children: HashMap::default() }
    }

    /// Returns the child of `parent` for a function and kind of entry; `None` if the tree is full.
    #[inline]
    pub fn enter(&mut self, parent: u32, function: u32, how: EnterKind) -> Option<u32> {
        let last = self.nodes[parent as usize].last_child;
        let expected = self.nodes[last as usize].next;
        let child = &self.nodes[expected as usize];
        // The dummy node has no function.
        if child.function == function && child.how == how {
            self.nodes[parent as usize].last_child = expected;
            return Some(expected);
        }
        self.enter_another(parent, function, how)
    }

    #[inline(never)]
    fn enter_another(&mut self, parent: u32, function: u32, how: EnterKind) -> Option<u32> {
        let key = (parent, function, how as u8);
        let node = match self.children.get(&key) {
            Some(known) => *known,
            None if self.nodes.len() >= MAX_NODES => return None,
            None => {
                let number = self.nodes.len() as u32;
                self.nodes.push(CallTreeNode { parent, function, how, last_child: 0, next: 0 });
                self.children.insert(key, number);
                number
            }
        };
        let last = std::mem::replace(&mut self.nodes[parent as usize].last_child, node);
        // A first child follows itself until there is a second.
        let before = if last == 0 { node } else { last };
        self.nodes[before as usize].next = node;
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOWS: [EnterKind; 5] =
        [EnterKind::Call, EnterKind::Jump, EnterKind::Interrupt, EnterKind::Exception, EnterKind::Syscall];

    proptest! {
        /// Whatever the nodes remember, equal paths have the same node and different paths have
        /// different nodes.
        #[test]
        fn a_path_is_a_node(walks in prop::collection::vec(prop::collection::vec((0u32..4, 0usize..5), 0..6), 0..60)) {
            let mut tree = CallTree::new(9);
            let mut known = HashMap::new();
            for walk in walks {
                let mut node = ROOT;
                for depth in 0..walk.len() {
                    let (function, how) = walk[depth];
                    node = tree.enter(node, function, HOWS[how]).unwrap();
                    prop_assert_eq!(*known.entry(walk[..=depth].to_vec()).or_insert(node), node);
                }
            }
            prop_assert_eq!(tree.nodes.len(), known.len() + 2);
            prop_assert!((2..tree.nodes.len()).all(|at| (tree.nodes[at].parent as usize) < at));
        }
    }

    #[test]
    fn a_full_tree_takes_what_it_knows() {
        let mut tree = CallTree::new(0);
        let new = (0..).find(|function| tree.enter(ROOT, *function, EnterKind::Call).is_none());
        assert_eq!((new, tree.nodes.len()), (Some(MAX_NODES as u32 - 2), MAX_NODES));
        assert_eq!(tree.enter(ROOT, 0, EnterKind::Call), Some(2));
        assert_eq!(tree.enter(2, 0, EnterKind::Call), None);
    }
}
