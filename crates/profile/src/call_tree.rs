//! Call trees in memory, for everything that is summed along call paths.

use crate::{FunctionIndex, PathKind, PathNode, Ticks};
use std::collections::HashMap;
use std::hash::Hash;

/// Last element of a call path. `T` names a thread, `F` a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathFrame<T, F> {
    /// Root: all threads of this name.
    Thread(T),
    /// Root: all interrupts.
    Interrupt,
    /// Root: idle tasks while not halted.
    Idle,
    /// Called function.
    Function(F),
    /// User mode outside of traced functions.
    User,
    /// Kernel code with an empty call stack, or without a symbol.
    Unattributed,
}

impl<T, F> PathFrame<T, F> {
    /// Returns the kind of the frame in a table of paths.
    pub fn kind(&self) -> PathKind {
        match self {
            Self::Thread(_) => PathKind::Thread,
            Self::Interrupt => PathKind::Interrupt,
            Self::Idle => PathKind::Idle,
            Self::Function(_) => PathKind::Function,
            Self::User => PathKind::User,
            Self::Unattributed => PathKind::Unattributed,
        }
    }

    /// Returns the function, if the frame is one.
    pub fn function(&self) -> Option<&F> {
        match self {
            Self::Function(function) => Some(function),
            _ => None,
        }
    }

    /// Replaces the thread's name and the function. A function without a replacement is
    /// unattributed.
    pub fn map<U, G>(
        self,
        thread: impl FnOnce(T) -> U,
        function: impl FnOnce(F) -> Option<G>,
    ) -> PathFrame<U, G> {
        match self {
            Self::Thread(comm) => PathFrame::Thread(thread(comm)),
            Self::Interrupt => PathFrame::Interrupt,
            Self::Idle => PathFrame::Idle,
            Self::Function(of) => function(of).map_or(PathFrame::Unattributed, PathFrame::Function),
            Self::User => PathFrame::User,
            Self::Unattributed => PathFrame::Unattributed,
        }
    }
}

impl PathNode {
    /// Returns the last element of the path.
    pub fn frame(&self) -> PathFrame<&str, FunctionIndex> {
        match self.kind {
            PathKind::Thread => PathFrame::Thread(&self.comm),
            PathKind::Interrupt => PathFrame::Interrupt,
            PathKind::Idle => PathFrame::Idle,
            PathKind::Function => PathFrame::Function(self.function),
            PathKind::User => PathFrame::User,
            PathKind::Unattributed => PathFrame::Unattributed,
        }
    }

    /// Returns the total time of each path of a table.
    pub fn totals(paths: &[Self]) -> Vec<Ticks> {
        let mut totals: Vec<Ticks> = paths.iter().map(|path| path.self_ticks).collect();
        add_up(&mut totals, |at, _| paths[at].parent as usize, |above, below| *above += *below);
        totals
    }
}

/// Node of a call tree: a path that ends in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNode<F, W> {
    /// Index of the path without its last frame, which is smaller than the node's own; `None` for a
    /// root.
    pub parent: Option<usize>,
    /// Last frame.
    pub frame: F,
    /// Figures of the path.
    pub figures: W,
}

/// Call tree that grows. Siblings have different frames; parents come before children.
#[derive(Debug, Clone)]
pub struct CallTree<F, W> {
    /// All nodes, in the order in which they were added.
    pub nodes: Vec<CallNode<F, W>>,
    places: HashMap<(Option<usize>, F), usize>,
}

impl<F, W> Default for CallTree<F, W> {
    fn default() -> Self {
        Self { nodes: Vec::new(), places: HashMap::new() }
    }
}

impl<F: Clone + Eq + Hash, W: Default> CallTree<F, W> {
    /// Returns the index of the node with a frame below a parent, or among the roots. Adds one if
    /// there is none.
    pub fn child(&mut self, parent: Option<usize>, frame: F) -> usize {
        let Self { nodes, places } = self;
        *places.entry((parent, frame)).or_insert_with_key(|(parent, frame)| {
            nodes.push(CallNode { parent: *parent, frame: frame.clone(), figures: W::default() });
            nodes.len() - 1
        })
    }
}

/// Roots and children of a call tree as lists, for walks from the roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChildren {
    /// Nodes without a parent.
    pub roots: Vec<usize>,
    /// Children of each node, in the order of the nodes.
    pub of: Vec<Vec<usize>>,
}

impl TreeChildren {
    /// Collects the children of all nodes.
    pub fn new<F, W>(nodes: &[CallNode<F, W>]) -> Self {
        let mut children = Self { roots: Vec::new(), of: vec![Vec::new(); nodes.len()] };
        for (at, node) in nodes.iter().enumerate() {
            match node.parent {
                Some(parent) => children.of[parent].push(at),
                None => children.roots.push(at),
            }
        }
        children
    }
}

/// Iterates over a node and the nodes above it, up to its root.
pub fn upwards<F, W>(nodes: &[CallNode<F, W>], at: usize) -> impl Iterator<Item = &CallNode<F, W>> {
    std::iter::successors(nodes.get(at), |node| nodes.get(node.parent?))
}

/// Adds each value to the value of its parent, the last value first: then each is the sum over a
/// subtree. `parent` gets the place of a value; what it returns for a root is no smaller place.
pub fn add_up<V>(values: &mut [V], parent: impl Fn(usize, &V) -> usize, mut add: impl FnMut(&mut V, &V)) {
    for at in (0..values.len()).rev() {
        let (before, rest) = values.split_at_mut(at);
        if let Some(above) = before.get_mut(parent(at, &rest[0])) {
            add(above, &rest[0]);
        }
    }
}

/// As [`add_up`], for figures of a call tree.
pub fn add_up_figures<F, W>(nodes: &mut [CallNode<F, W>], mut add: impl FnMut(&mut W, &W)) {
    let parent = |_, node: &CallNode<F, W>| node.parent.unwrap_or(usize::MAX);
    add_up(nodes, parent, |above, node| add(&mut above.figures, &node.figures));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Paths = Vec<(Vec<u8>, u32)>;

    /// Self and total figures of paths.
    fn tree(paths: &[(Vec<u8>, u32)]) -> CallTree<u8, [u64; 2]> {
        let mut tree = CallTree::<u8, [u64; 2]>::default();
        for (path, count) in paths {
            let end = path.iter().fold(None, |parent, frame| Some(tree.child(parent, *frame)));
            if let Some(end) = end {
                tree.nodes[end].figures[0] += u64::from(*count);
                tree.nodes[end].figures[1] += u64::from(*count);
            }
        }
        add_up_figures(&mut tree.nodes, |above, below| above[1] += below[1]);
        tree
    }

    fn contents(tree: &CallTree<u8, [u64; 2]>) -> BTreeMap<Vec<u8>, [u64; 2]> {
        let path = |at| upwards(&tree.nodes, at).map(|node| node.frame).collect();
        (0..tree.nodes.len()).map(|at| (path(at), tree.nodes[at].figures)).collect()
    }

    fn any_paths() -> impl Strategy<Value = Paths> {
        prop::collection::vec((prop::collection::vec(0u8..4, 1..7), any::<u32>()), 0..40)
    }

    proptest! {
        #[test]
        fn self_figures_sum_to_the_roots_and_to_each_subtree(paths in any_paths()) {
            let tree = tree(&paths);
            let children = TreeChildren::new(&tree.nodes);
            let total = |nodes: &[usize]| nodes.iter().map(|at| tree.nodes[*at].figures[1]).sum::<u64>();
            prop_assert_eq!(
                total(&children.roots),
                paths.iter().map(|(_, count)| u64::from(*count)).sum::<u64>()
            );
            for (node, below) in tree.nodes.iter().zip(&children.of) {
                prop_assert_eq!(node.figures[1], node.figures[0] + total(below));
            }
            prop_assert_eq!(contents(&tree).len(), tree.nodes.len(), "no path has two nodes");
            prop_assert!((0..tree.nodes.len()).all(|at| tree.nodes[at].parent.is_none_or(|above| above < at)));
        }

        #[test]
        fn the_order_of_paths_does_not_matter(one in any_paths(), other in any_paths()) {
            let sums = [[&one[..], &other[..]], [&other, &one]].map(|parts| contents(&tree(&parts.concat())));
            prop_assert_eq!(&sums[0], &sums[1]);
        }
    }

    #[test]
    fn a_frame_survives_the_table_of_paths() {
        for kind in PathKind::ALL {
            let node = PathNode {
                path: 0,
                parent: PathNode::ROOT,
                kind: *kind,
                comm: "rr".into(),
                function: FunctionIndex(7),
                how: crate::CallKind::Call,
                ..PathNode::default()
            };
            let frame = node.frame();
            assert_eq!((frame.kind(), frame.map(|comm| comm, Some)), (*kind, frame));
            let is_function = *kind == PathKind::Function;
            assert_eq!(frame.function().is_some(), is_function);
            let nameless = frame.map(|comm| comm, |_| None::<u8>).kind();
            assert_eq!(nameless, if is_function { PathKind::Unattributed } else { *kind });
        }
    }
}
