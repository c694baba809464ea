//! The ways in which functions are reached within a call, as a tree that grows up to a limit.
//!
//! As in `src/tree.rs`, looking up a callee is what is done most: a node remembers the child that was asked for last, and
//! that one the sibling that was asked for after it.

use crate::hash::Mixed;
use kerntune_trace::How;
use std::collections::HashMap;

/// Nodes at most. What finds no room belongs to the node above it.
const LIMIT: usize = 1 << 16;

/// The operation's own node.
pub(super) const ROOT: u32 = 1;

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub parent: u32,
    pub function: u32,
    pub how: How,
    last_child: u32,
    /// The sibling that was entered after this one.
    next: u32,
}

/// The first node stands for none, the second for the operation.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    children: HashMap<(u32, u32, u8), u32, Mixed>,
}

impl Tree {
    /// The operation alone.
    pub fn new(function: u32) -> Self {
        let none = Node { parent: 0, function: u32::MAX, how: How::Call, last_child: 0, next: 0 };
        Self { nodes: vec![none, Node { function, ..none }], children: HashMap::default() }
    }

    /// The child of `parent` for a function that was entered so; `None` if there is no room for it.
    #[inline]
    pub fn enter(&mut self, parent: u32, function: u32, how: How) -> Option<u32> {
        let last = self.nodes[parent as usize].last_child;
        let expected = self.nodes[last as usize].next;
        let child = &self.nodes[expected as usize];
        // The node that stands for none has no function.
        if child.function == function && child.how == how {
            self.nodes[parent as usize].last_child = expected;
            return Some(expected);
        }
        self.enter_another(parent, function, how)
    }

    #[inline(never)]
    fn enter_another(&mut self, parent: u32, function: u32, how: How) -> Option<u32> {
        let key = (parent, function, how as u8);
        let node = match self.children.get(&key) {
            Some(known) => *known,
            None if self.nodes.len() >= LIMIT => return None,
            None => {
                let number = self.nodes.len() as u32;
                self.nodes.push(Node { parent, function, how, last_child: 0, next: 0 });
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

    const HOWS: [How; 5] = [How::Call, How::Jump, How::Interrupt, How::Exception, How::Syscall];

    proptest! {
        /// Whatever is remembered, the same path is the same node, and another one another.
        #[test]
        fn a_path_is_a_node(walks in prop::collection::vec(prop::collection::vec((0u32..4, 0usize..5), 0..6), 0..60)) {
            let mut tree = Tree::new(9);
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
        let mut tree = Tree::new(0);
        let new = (0..).find(|function| tree.enter(ROOT, *function, How::Call).is_none());
        assert_eq!((new, tree.nodes.len()), (Some(LIMIT as u32 - 2), LIMIT));
        assert_eq!(tree.enter(ROOT, 0, How::Call), Some(2));
        assert_eq!(tree.enter(2, 0, How::Call), None);
    }
}
