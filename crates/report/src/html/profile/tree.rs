//! Tree of call paths, merged over the regions of a group and cut to visible nodes.

use super::groups::RegionGroups;
use kerntune_profile::{
    add_up_figures, CallKind, CallNode, CallTree, FunctionIndex, PathFrame, PathNode, TreeChildren,
};

/// Number of weights of a path: self time, taken branches, L1I misses, iTLB misses.
pub(super) const WEIGHTS: usize = 4;

/// Frame with the thread's name or the function.
pub(super) type PageFrame<'a> = PathFrame<&'a str, FunctionIndex>;

/// Node of the tree, in preorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeNode<'a> {
    pub depth: u32,
    /// `None` for everything below the parent that is too small to be visible.
    pub frame: Option<PageFrame<'a>>,
    pub how: CallKind,
    /// Calls; without a frame the number of merged paths.
    pub calls: u64,
    /// Self weights of the path; without a frame the sum over the merged paths.
    pub self_weights: [u64; WEIGHTS],
}

/// Uncut tree of one group.
pub(super) struct GroupTree<'a> {
    nodes: Vec<MergedNode<'a>>,
    children: TreeChildren,
}

type MergedNode<'a> = CallNode<(PageFrame<'a>, CallKind), MergedFigures>;

#[derive(Debug, Default)]
struct MergedFigures {
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
    let mut trees: Vec<CallTree<_, MergedFigures>> = (0..groups.count).map(|_| CallTree::default()).collect();
    // Maps a path row to its node.
    let mut place: Vec<Option<usize>> = vec![None; paths.len()];
    for (at, row) in paths.iter().enumerate() {
        let group = groups.group(row.region);
        let Some(tree) = group.and_then(|group| trees.get_mut(group as usize)) else { continue };
        let parent = place.get(row.parent as usize).copied().flatten();
        let node = tree.child(parent, (row.frame(), row.how));
        place[at] = Some(node);
        let figures = &mut tree.nodes[node].figures;
        figures.calls = figures.calls.saturating_add(row.calls);
        let self_weights = [row.self_ticks.get(), row.taken_branches, row.l1i_misses, row.itlb_misses];
        add(&mut figures.self_weights, &self_weights);
    }
    trees.into_iter().map(|tree| GroupTree::new(tree.nodes)).collect()
}

/// Node that differs from all others: its number, its group, its parent's number, and the fields of
/// [`TreeNode`].
pub(super) type DistinctNode<'a> = (u32, u32, u32, PageFrame<'a>, CallKind, u64, [u64; WEIGHTS]);

/// Builds the trees from nodes with numbers below `limit`, parents before children.
pub(super) fn trees_of<'a>(
    groups: usize,
    limit: usize,
    nodes: impl Iterator<Item = DistinctNode<'a>>,
) -> Vec<GroupTree<'a>> {
    let mut trees: Vec<Vec<MergedNode>> = (0..groups).map(|_| Vec::new()).collect();
    let mut place: Vec<Option<usize>> = vec![None; limit];
    for (number, group, parent, frame, how, calls, self_weights) in nodes {
        let Some(tree) = trees.get_mut(group as usize) else { continue };
        let parent = place.get(parent as usize).copied().flatten();
        if let Some(place) = place.get_mut(number as usize) {
            *place = Some(tree.len());
        }
        let figures = MergedFigures { calls, self_weights, ..MergedFigures::default() };
        tree.push(CallNode { parent, frame: (frame, how), figures });
    }
    trees.into_iter().map(GroupTree::new).collect()
}

impl<'a> GroupTree<'a> {
    fn new(mut nodes: Vec<MergedNode<'a>>) -> Self {
        for node in &mut nodes {
            (node.figures.all, node.figures.size) = (node.figures.self_weights, 1);
        }
        add_up_figures(&mut nodes, |above, below| {
            add(&mut above.all, &below.all);
            above.size += below.size;
        });
        let children = TreeChildren::new(&nodes);
        let mut totals = [0; WEIGHTS];
        children.roots.iter().for_each(|root| add(&mut totals, &nodes[*root].figures.all));
        for node in &mut nodes {
            let weights = node.figures.all.iter().zip(&totals).filter(|(part, _)| **part > 0);
            node.figures.part = weights.map(|(part, total)| total.div_ceil(*part)).min().unwrap_or(u64::MAX);
        }
        Self { nodes, children }
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of nodes that [`GroupTree::pruned`] would keep.
    pub fn visible(&self, parts: u64) -> usize {
        self.nodes.iter().filter(|node| node.figures.part <= parts).count()
    }

    /// Returns the nodes of at least one part in `parts`, heaviest sibling first, and one
    /// node without a frame for the rest of each node's children, so that no time is lost.
    pub fn pruned(&self, parts: u64) -> Vec<TreeNode<'a>> {
        let mut out = Vec::new();
        // Siblings still to be written, the next one last.
        let mut stack: Vec<(u32, TreeStep)> = Vec::new();
        self.queue(&self.children.roots, 0, parts, &mut stack);
        while let Some((depth, step)) = stack.pop() {
            match step {
                TreeStep::Node(at) => {
                    let CallNode { frame: (frame, how), ref figures, .. } = self.nodes[at];
                    let MergedFigures { calls, self_weights, .. } = *figures;
                    out.push(TreeNode { depth, frame: Some(frame), how, calls, self_weights });
                    self.queue(&self.children.of[at], depth + 1, parts, &mut stack);
                }
                TreeStep::Smaller { paths, self_weights } => {
                    out.push(TreeNode {
                        depth,
                        frame: None,
                        how: CallKind::Call,
                        calls: paths,
                        self_weights,
                    });
                }
            }
        }
        out
    }

    fn queue(&self, siblings: &[usize], depth: u32, parts: u64, stack: &mut Vec<(u32, TreeStep)>) {
        let mut visible = Vec::new();
        let (mut paths, mut self_weights) = (0, [0; WEIGHTS]);
        for &at in siblings {
            let node = &self.nodes[at].figures;
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
        visible.sort_by_key(|&at| self.nodes[at].figures.all[0]);
        stack.extend(visible.into_iter().map(|at| (depth, TreeStep::Node(at))));
    }
}

enum TreeStep {
    Node(usize),
    Smaller { paths: u64, self_weights: [u64; WEIGHTS] },
}
