//! Tree of call paths, merged over the regions of a group and cut to visible nodes.

use super::groups::RegionGroups;
use kerntune_profile::{CallKind, PathKind, PathNode};
use std::collections::HashMap;

/// Number of weights of a path: self time, taken branches, L1I misses, iTLB misses.
pub(super) const WEIGHTS: usize = 4;

/// Kind of a node, with the thread's or function's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum NodeKey<'a> {
    /// All threads of one name.
    Thread(&'a str),
    Interrupt,
    Idle,
    Function(u32),
    User,
    Unattributed,
    /// Everything below the parent that is too small to be visible.
    Smaller,
}

/// Node of the tree, in preorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeNode<'a> {
    pub depth: u32,
    pub key: NodeKey<'a>,
    pub how: CallKind,
    /// Calls; for [`NodeKey::Smaller`] the number of merged paths.
    pub calls: u64,
    /// Self weights of the path; for [`NodeKey::Smaller`] the sum over the merged paths.
    pub self_weights: [u64; WEIGHTS],
}

/// Uncut tree of one group.
pub(super) struct GroupTree<'a> {
    nodes: Vec<MergedNode<'a>>,
    children: Vec<Vec<u32>>,
    roots: Vec<u32>,
    totals: [u64; WEIGHTS],
}

struct MergedNode<'a> {
    key: NodeKey<'a>,
    how: CallKind,
    calls: u64,
    self_weights: [u64; WEIGHTS],
    /// Total weights, with the subtree.
    all: [u64; WEIGHTS],
    /// Whole divided by the node, for the weight in which the node is largest: a smaller number is
    /// a larger node.
    part: u64,
    /// Number of nodes in the subtree, including this one.
    size: u64,
}

/// Adds `from` to `into`.
fn add(into: &mut [u64; WEIGHTS], from: &[u64; WEIGHTS]) {
    into.iter_mut().zip(from).for_each(|(a, b)| *a = a.saturating_add(*b));
}

/// Builds one tree per group.
pub(super) fn trees<'a>(paths: &'a [PathNode], groups: &RegionGroups) -> Vec<GroupTree<'a>> {
    let mut trees: Vec<GroupTree> = (0..groups.count).map(|_| GroupTree::empty()).collect();
    let mut seen: HashMap<(u32, u32, NodeKey, CallKind), u32> = HashMap::new();
    // Maps a path row to its node.
    let mut place = vec![u32::MAX; paths.len()];
    for (at, row) in paths.iter().enumerate() {
        let Some(group) = groups.group(row.region) else { continue };
        let Some(tree) = trees.get_mut(group as usize) else { continue };
        let parent = place.get(row.parent as usize).copied().unwrap_or(u32::MAX);
        let key = match row.kind {
            PathKind::Thread => NodeKey::Thread(&row.comm),
            PathKind::Interrupt => NodeKey::Interrupt,
            PathKind::Idle => NodeKey::Idle,
            PathKind::Function => NodeKey::Function(row.function.get()),
            PathKind::User => NodeKey::User,
            PathKind::Unattributed => NodeKey::Unattributed,
        };
        let node = *(seen.entry((group, parent, key.clone(), row.how)))
            .or_insert_with(|| tree.push(parent, key, row.how));
        place[at] = node;
        let self_weights = [row.self_ticks.get(), row.taken_branches, row.l1i_misses, row.itlb_misses];
        if let Some(node) = tree.nodes.get_mut(node as usize) {
            node.calls = node.calls.saturating_add(row.calls);
            add(&mut node.self_weights, &self_weights);
        }
    }
    trees.iter_mut().for_each(GroupTree::add_up);
    trees
}

/// Node that differs from all others: its number, its group, its parent's number, and the fields of
/// [`TreeNode`].
pub(super) type DistinctNode<'a> = (u32, u32, u32, NodeKey<'a>, CallKind, u64, [u64; WEIGHTS]);

/// Builds the trees from nodes with numbers below `limit`, parents before children.
pub(super) fn trees_of<'a>(
    groups: usize,
    limit: usize,
    nodes: impl Iterator<Item = DistinctNode<'a>>,
) -> Vec<GroupTree<'a>> {
    let mut trees: Vec<GroupTree> = (0..groups).map(|_| GroupTree::empty()).collect();
    let mut place = vec![u32::MAX; limit];
    for (number, group, parent, key, how, calls, self_weights) in nodes {
        let Some(tree) = trees.get_mut(group as usize) else { continue };
        let parent = place.get(parent as usize).copied().unwrap_or(u32::MAX);
        let at = tree.push(parent, key, how);
        if let (Some(place), Some(node)) = (place.get_mut(number as usize), tree.nodes.get_mut(at as usize)) {
            *place = at;
            (node.calls, node.self_weights) = (calls, self_weights);
        }
    }
    trees.iter_mut().for_each(GroupTree::add_up);
    trees
}

impl<'a> GroupTree<'a> {
    fn empty() -> Self {
        Self { nodes: Vec::new(), children: Vec::new(), roots: Vec::new(), totals: [0; WEIGHTS] }
    }

    fn push(&mut self, parent: u32, key: NodeKey<'a>, how: CallKind) -> u32 {
        let at = self.nodes.len() as u32;
        self.nodes.push(MergedNode {
            key,
            how,
            calls: 0,
            self_weights: [0; WEIGHTS],
            all: [0; WEIGHTS],
            part: u64::MAX,
            size: 1,
        });
        self.children.push(Vec::new());
        match self.children.get_mut(parent as usize) {
            Some(siblings) => siblings.push(at),
            None => self.roots.push(at),
        }
        at
    }

    /// Parents precede children, so one backward pass is enough.
    fn add_up(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let mut all = self.nodes[at].self_weights;
            let mut size = 1;
            for &child in &self.children[at] {
                add(&mut all, &self.nodes[child as usize].all);
                size += self.nodes[child as usize].size;
            }
            (self.nodes[at].all, self.nodes[at].size) = (all, size);
        }
        for &root in &self.roots {
            add(&mut self.totals, &self.nodes[root as usize].all);
        }
        for node in &mut self.nodes {
            let weights = node.all.iter().zip(&self.totals).filter(|(part, _)| **part > 0);
            node.part = weights.map(|(part, total)| total.div_ceil(*part)).min().unwrap_or(u64::MAX);
        }
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of nodes that [`GroupTree::pruned`] would keep.
    pub fn visible(&self, parts: u64) -> usize {
        self.nodes.iter().filter(|node| node.part <= parts).count()
    }

    /// Returns the nodes of at least one part in `parts`, heaviest sibling first, and one
    /// [`NodeKey::Smaller`] for the rest of each node's children, so that no time is lost.
    pub fn pruned(&self, parts: u64) -> Vec<TreeNode<'a>> {
        let mut out = Vec::new();
        // Siblings still to be written, the next one last.
        let mut stack: Vec<(u32, TreeStep)> = Vec::new();
        self.queue(&self.roots, 0, parts, &mut stack);
        while let Some((depth, step)) = stack.pop() {
            match step {
                TreeStep::Node(at) => {
                    let node = &self.nodes[at as usize];
                    let (key, how, calls, self_weights) =
                        (node.key.clone(), node.how, node.calls, node.self_weights);
                    out.push(TreeNode { depth, key, how, calls, self_weights });
                    self.queue(&self.children[at as usize], depth + 1, parts, &mut stack);
                }
                TreeStep::Smaller { paths, self_weights } => {
                    out.push(TreeNode {
                        depth,
                        key: NodeKey::Smaller,
                        how: CallKind::Call,
                        calls: paths,
                        self_weights,
                    });
                }
            }
        }
        out
    }

    fn queue(&self, siblings: &[u32], depth: u32, parts: u64, stack: &mut Vec<(u32, TreeStep)>) {
        let mut visible = Vec::new();
        let (mut paths, mut self_weights) = (0, [0; WEIGHTS]);
        for &at in siblings {
            let node = &self.nodes[at as usize];
            if node.part <= parts {
                visible.push(at);
            } else {
                paths += node.size;
                add(&mut self_weights, &node.all);
            }
        }
        if paths > 0 {
            stack.push((depth, TreeStep::Smaller { paths, self_weights }));
        }
        visible.sort_by_key(|&at| self.nodes[at as usize].all[0]);
        stack.extend(visible.into_iter().map(|at| (depth, TreeStep::Node(at))));
    }
}

enum TreeStep {
    Node(u32),
    Smaller { paths: u64, self_weights: [u64; WEIGHTS] },
}
