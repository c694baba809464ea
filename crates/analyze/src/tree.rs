//! The tree of call paths, as it grows.
//!
//! A node stands for one path to a function in one region. Looking up a callee is the most frequent
//! operation of an analysis, and code mostly repeats itself: so a node remembers the child that was
//! looked up last, and each child the sibling that was looked up after it (after the last callee of
//! a call comes the first callee of the next call). A lookup that these two links do not answer
//! goes to one hash table.
//!
//! # Limits
//!
//! A tree with more than [`NODE_LIMIT`] nodes is cut at the greatest depth at which it fits; deeper
//! calls count for their ancestor at that depth. Workers' trees are never cut deeper than the
//! merged tree will be, so that the result does not depend on the number of workers.

use crate::accounts::{ArcAccounts, ArcKey};
use crate::hash::{mix, BuildIntegerHasher};
use kerntune_trace::{EnterKind, EventWeights};
use std::collections::HashMap;

/// Maximum number of nodes; one takes about 200 bytes with its counters. Trees of whole benchmarks
/// have ten to twenty thousand; each worker may fill one.
const NODE_LIMIT: usize = 1 << 18;

/// [`TreeNode::parent`] of a root, and [`TreeNode::account`] of a node without an account.
pub(crate) const NONE: u32 = u32::MAX;

/// Values of [`TreeNode::kind`] that are not an [`EnterKind`].
pub(crate) mod node_kind {
    pub const USER: u8 = 5;
    pub const UNATTRIBUTED: u8 = 6;
    pub const ROOT: u8 = 7;
}

/// A call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeNode {
    pub region: u32,
    pub parent: u32,
    /// Number of the function; of a root, its index in [`crate::known::TraceContext::roots`].
    pub function: u32,
    /// Account of the arc from the parent.
    pub account: u32,
    last_child: u32,
    /// The sibling that was looked up after this node.
    next: u32,
    depth: u16,
    /// An [`EnterKind`] or one of [`node_kind`].
    pub kind: u8,
    pub self_time: u64,
    pub calls: u64,
}

impl TreeNode {
    /// Returns the kind of entry, if the node stands for a function.
    pub fn how(&self) -> Option<EnterKind> {
        EnterKind::from_code(self.kind)
    }
}

/// Node and account in which a call counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallLocation {
    pub node: u32,
    pub account: u32,
    /// True if the node is not the call's own, but its deepest kept ancestor.
    pub folded: bool,
}

impl CallLocation {
    /// Placeholder for a location that is not known yet.
    pub const NOWHERE: Self = Self { node: 0, account: 0, folded: false };
}

/// The trees of all regions.
pub(crate) struct PathTree {
    /// The first element is a dummy, so that 0 can mean "no node".
    pub nodes: Vec<TreeNode>,
    /// Indexed like `nodes`; empty if the trace has no weights.
    pub weights: Vec<EventWeights>,
    slots: Vec<u32>,
    roots: HashMap<(u32, u32), u32, BuildIntegerHasher>,
    /// Nodes at this depth have no children.
    depth_limit: u16,
    node_limit: usize,
    wide: bool,
}

const NO_NODE: TreeNode = TreeNode {
    region: NONE,
    parent: NONE,
    function: NONE,
    account: NONE,
    last_child: 0,
    next: 0,
    depth: 0,
    kind: u8::MAX,
    self_time: 0,
    calls: 0,
};

impl PathTree {
    pub fn new(wide: bool) -> Self {
        Self::with_limit(wide, NODE_LIMIT)
    }

    fn with_limit(wide: bool, node_limit: usize) -> Self {
        let weights = if wide { vec![EventWeights::NONE] } else { Vec::new() };
        let (slots, roots) = (vec![0; 1 << 12], HashMap::default());
        Self { nodes: vec![NO_NODE], weights, slots, roots, depth_limit: u16::MAX, node_limit, wide }
    }

    /// Returns the root of a region for an index in [`crate::known::TraceContext::roots`].
    pub fn root(&mut self, region: u32, root: u32) -> u32 {
        if let Some(&found) = self.roots.get(&(region, root)) {
            return found;
        }
        let number = self.push(TreeNode { region, function: root, kind: node_kind::ROOT, ..NO_NODE });
        self.roots.insert((region, root), number);
        number
    }

    /// Returns the child of `parent` for a function that `caller` entered.
    #[inline]
    pub fn enter(
        &mut self,
        accounts: &mut ArcAccounts,
        parent: u32,
        caller: u32,
        function: u32,
        how: EnterKind,
    ) -> CallLocation {
        let last = self.nodes[parent as usize].last_child;
        let expected = self.nodes[last as usize].next;
        let child = &self.nodes[expected as usize];
        // The dummy node has no function.
        if child.function == function && child.kind == how as u8 {
            let account = child.account;
            self.nodes[parent as usize].last_child = expected;
            return CallLocation { node: expected, account, folded: false };
        }
        self.enter_another(accounts, parent, caller, function, how)
    }

    #[inline(never)]
    fn enter_another(
        &mut self,
        accounts: &mut ArcAccounts,
        parent: u32,
        caller: u32,
        function: u32,
        how: EnterKind,
    ) -> CallLocation {
        let region = self.nodes[parent as usize].region;
        if self.nodes[parent as usize].depth >= self.depth_limit {
            let account = accounts.number((region, ArcKey::new(caller, function, how)));
            return CallLocation { node: parent, account, folded: true };
        }
        let node = self.child(parent, function, how as u8, |region| {
            accounts.number((region, ArcKey::new(caller, function, how)))
        });
        let place = CallLocation { node, account: self.nodes[node as usize].account, folded: false };
        let last = std::mem::replace(&mut self.nodes[parent as usize].last_child, node);
        // A first child follows itself until there is a second.
        let before = if last == 0 { node } else { last };
        self.nodes[before as usize].next = node;
        place
    }

    /// Returns the child for user mode or unattributed time below a root.
    pub fn leaf(&mut self, root: u32, kind: u8) -> u32 {
        match self.depth_limit {
            0 => root,
            _ => self.child(root, NONE, kind, |_| NONE),
        }
    }

    fn child(&mut self, parent: u32, function: u32, kind: u8, account: impl FnOnce(u32) -> u32) -> u32 {
        if 2 * self.nodes.len() >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = slot(parent, function, kind) & mask;
        loop {
            let number = self.slots[at];
            if number == 0 {
                break;
            }
            let node = &self.nodes[number as usize];
            if node.parent == parent && node.function == function && node.kind == kind {
                return number;
            }
            at = (at + 1) & mask;
        }
        let above = self.nodes[parent as usize];
        let (region, depth) = (above.region, above.depth + 1);
        let number = self.push(TreeNode {
            region,
            parent,
            function,
            account: account(region),
            depth,
            kind,
            ..NO_NODE
        });
        self.slots[at] = number;
        number
    }

    fn push(&mut self, node: TreeNode) -> u32 {
        self.nodes.push(node);
        if self.wide {
            self.weights.push(EventWeights::NONE);
        }
        self.nodes.len() as u32 - 1
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![0; 2 * self.slots.len()];
        self.fill_slots();
    }

    fn fill_slots(&mut self) {
        let mask = self.slots.len() - 1;
        for (number, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.parent != NONE) {
            let mut at = slot(node.parent, node.function, node.kind) & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = number as u32;
        }
    }

    #[inline]
    pub fn add_weights(&mut self, node: u32, weights: EventWeights) {
        if let Some(sum) = self.weights.get_mut(node as usize) {
            add(sum, weights);
        }
    }

    /// Checks whether [`PathTree::settle`] would cut the tree.
    pub fn is_full(&self) -> bool {
        self.nodes.len() > self.node_limit
    }

    /// Checks whether the tree was cut.
    pub fn is_cut(&self) -> bool {
        self.depth_limit < u16::MAX
    }

    /// Cuts the tree if it has grown too large. Then all node numbers change.
    pub fn settle(&mut self) {
        if !self.is_full() {
            return;
        }
        let mut at_depth: Vec<usize> = Vec::new();
        for node in &self.nodes {
            let depth = node.depth as usize;
            if depth >= at_depth.len() {
                at_depth.resize(depth + 1, 0);
            }
            at_depth[depth] += 1;
        }
        let mut sum = 0;
        let fits = at_depth.iter().take_while(|&&count| {
            sum += count;
            sum <= self.node_limit
        });
        self.cut(fits.count().saturating_sub(1).min(u16::MAX as usize) as u16);
    }

    fn cut(&mut self, depth: u16) {
        let old = std::mem::replace(self, Self::with_limit(self.wide, self.node_limit));
        self.depth_limit = depth.min(old.depth_limit);
        // The tree will soon be as large again.
        self.slots = vec![0; old.slots.len()];
        self.merge(&old, |account| account);
    }

    /// Adds another tree; `account` translates its account numbers to those used here.
    pub fn merge(&mut self, other: &Self, account: impl Fn(u32) -> u32) {
        if other.depth_limit < self.depth_limit {
            self.cut(other.depth_limit);
        }
        // Parents come before children.
        let mut here = vec![0u32; other.nodes.len()];
        for (at, node) in other.nodes.iter().enumerate().skip(1) {
            let folded;
            (here[at], folded) = if node.kind == node_kind::ROOT {
                (self.root(node.region, node.function), false)
            } else {
                let parent = here[node.parent as usize];
                match self.nodes[parent as usize].depth >= self.depth_limit {
                    true => (parent, true),
                    false => (self.child(parent, node.function, node.kind, |_| account(node.account)), false),
                }
            };
            let sum = &mut self.nodes[here[at] as usize];
            sum.self_time = sum.self_time.wrapping_add(node.self_time);
            sum.calls += if folded { 0 } else { node.calls };
            if let Some(weights) = other.weights.get(at) {
                self.add_weights(here[at], *weights);
            }
        }
    }
}

#[inline]
fn slot(parent: u32, function: u32, kind: u8) -> usize {
    (mix(u64::from(parent) << 8 | u64::from(kind), function.into()) >> 32) as usize
}

pub(crate) fn add(sum: &mut EventWeights, more: EventWeights) {
    sum.taken_branches = sum.taken_branches.wrapping_add(more.taken_branches);
    sum.l1i_misses = sum.l1i_misses.wrapping_add(more.l1i_misses);
    sum.itlb_misses = sum.itlb_misses.wrapping_add(more.itlb_misses);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::NO_CALLER;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Makes one call of a path below a root, with self time for each function of it.
    fn call(tree: &mut PathTree, accounts: &mut ArcAccounts, root: u32, path: &[u32]) {
        let (mut node, mut caller) = (tree.root(0, root), NO_CALLER);
        for &function in path {
            let place = tree.enter(accounts, node, caller, function, EnterKind::Call);
            accounts.spanning(place.account).calls += 1;
            let found = &mut tree.nodes[place.node as usize];
            found.calls += u64::from(!place.folded);
            found.self_time += u64::from(function) + 1;
            (node, caller) = (place.node, function);
        }
    }

    /// Root and functions of each node, with calls and self time.
    fn contents(tree: &PathTree) -> BTreeMap<(u32, Vec<u32>), (u64, u64)> {
        let mut paths: Vec<(u32, Vec<u32>)> = vec![(0, Vec::new())];
        for node in &tree.nodes[1..] {
            paths.push(match node.kind {
                node_kind::ROOT => (node.function, Vec::new()),
                _ => {
                    let (root, mut path) = paths[node.parent as usize].clone();
                    path.push(node.function);
                    (root, path)
                }
            });
        }
        paths
            .into_iter()
            .zip(&tree.nodes)
            .skip(1)
            .map(|(path, node)| (path, (node.calls, node.self_time)))
            .collect()
    }

    proptest! {
        #[test]
        fn a_tree_is_cut_alike_however_it_was_parted(
            calls in prop::collection::vec((0u32..2, prop::collection::vec(0u32..4, 0..7), 0usize..3), 0..60),
            limit in 3usize..60,
            settle in any::<bool>(),
        ) {
            let mut whole = (PathTree::with_limit(false, limit), ArcAccounts::default());
            let mut parts: Vec<_> = (0..3).map(|_| (PathTree::with_limit(false, limit), ArcAccounts::default())).collect();
            let mut all: BTreeMap<(u32, Vec<u32>), (u64, u64)> = BTreeMap::new();
            for (root, path, part) in &calls {
                for (tree, accounts) in [&mut whole, &mut parts[*part]] {
                    if settle {
                        tree.settle();
                    }
                    call(tree, accounts, *root, path);
                }
                for depth in 0..=path.len() {
                    let sum = all.entry((*root, path[..depth].to_vec())).or_default();
                    if let Some(function) = depth.checked_sub(1).map(|last| path[last]) {
                        *sum = (sum.0 + 1, sum.1 + u64::from(function) + 1);
                    }
                }
            }
            whole.0.settle();
            let (mut tree, mut accounts) = (PathTree::with_limit(false, limit), ArcAccounts::default());
            for (part, more) in parts {
                let numbers = accounts.merge(more);
                tree.merge(&part, |account| numbers[account as usize]);
            }
            tree.settle();
            // Expected: the greatest depth that fits; time of deeper paths counts for their
            // ancestors.
            let fits = |depth: usize| all.keys().filter(|(_, path)| path.len() <= depth).count() < limit;
            let depth = (0..8).take_while(|depth| fits(*depth)).last().unwrap_or(0);
            let mut expected: BTreeMap<(u32, Vec<u32>), (u64, u64)> = BTreeMap::new();
            for ((root, path), (calls, self_time)) in all {
                let kept = path.len() <= depth;
                let path = path[..path.len().min(depth)].to_vec();
                let sum = expected.entry((root, path)).or_default();
                *sum = (sum.0 + if kept { calls } else { 0 }, sum.1 + self_time);
            }
            prop_assert_eq!(&contents(&whole.0), &expected);
            prop_assert_eq!(&contents(&tree), &expected);
        }
    }
}
