//! Flame graphs: one picture (SVG) of all call paths, with a script to zoom and search.
//!
//! A box is a path. Its width is the path's total; callees stand above it. In a differential flame
//! graph widths are those of the profile, and the color says whether the path's self time grew
//! (red) or shrank (blue) since the base profile.

mod svg;

pub use svg::FlameGraphSvg;

use crate::stacks::CallStacks;
use kerntune_profile::PathKind;
use std::collections::{BTreeMap, HashMap};

/// Figure in the profile and in the base profile.
type FigurePair = [u64; 2];

/// Path by its names, with its children.
#[derive(Debug, Default)]
struct PathNode {
    kind: Option<PathKind>,
    own: FigurePair,
    all: FigurePair,
    /// Number of the profile's paths in this subtree.
    size: usize,
    /// Children sorted by name, so that two pictures look alike.
    children: BTreeMap<String, usize>,
}

/// Box of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlameBox {
    pub name: String,
    pub kind: PathKind,
    pub depth: usize,
    /// Position of the left edge, in the profile's unit.
    pub begin: u64,
    pub own: FigurePair,
    pub all: FigurePair,
}

/// Boxes of all paths, and totals of those without a box.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FlameGraph {
    pub(crate) blocks: Vec<FlameBox>,
    /// Total of all paths, in the profile and in the base profile.
    pub total: [u64; 2],
    /// Number of paths that are too small for a box.
    pub small: usize,
    /// Self time of paths that only the base profile has; they have no width.
    pub gone: u64,
    /// The graph compares with a base profile.
    pub differential: bool,
}

impl FlameGraph {
    /// Lays out the paths of a profile, compared with a base profile if there is one. Paths below
    /// `smallest` have no box; their time is in the boxes below them.
    pub fn of(stacks: &CallStacks, base: Option<&CallStacks>, smallest: u64) -> Self {
        let mut nodes = vec![PathNode::default()];
        add(&mut nodes, stacks, 0);
        if let Some(base) = base {
            add(&mut nodes, base, 1);
        }
        // Children follow their parents.
        for at in (0..nodes.len()).rev() {
            let mut all = nodes[at].own;
            for child in nodes[at].children.values() {
                (0..2).for_each(|side| all[side] = all[side].saturating_add(nodes[*child].all[side]));
            }
            let above: usize = nodes[at].children.values().map(|child| nodes[*child].size).sum();
            (nodes[at].all, nodes[at].size) = (all, above + usize::from(all[0] > 0));
        }
        let gone = nodes.iter().filter(|node| node.all[0] == 0).map(|node| node.own[1]);
        let gone = gone.fold(0, u64::saturating_add);
        let mut flames = Self { total: nodes[0].all, gone, differential: base.is_some(), ..Self::default() };
        // Nodes to place: node, name, depth, begin.
        let mut open: Vec<(usize, String, usize, u64)> = Vec::new();
        let queue = |open: &mut Vec<_>, of: &PathNode, depth: usize, begin: u64| {
            let mut at = begin;
            for (name, child) in &of.children {
                open.push((*child, name.clone(), depth, at));
                at = at.saturating_add(nodes[*child].all[0]);
            }
        };
        queue(&mut open, &nodes[0], 0, 0);
        while let Some((at, name, depth, begin)) = open.pop() {
            let node = &nodes[at];
            if node.all[0] == 0 {
                continue;
            }
            if node.all[0] < smallest {
                flames.small += node.size;
                continue;
            }
            queue(&mut open, node, depth + 1, begin);
            let kind = node.kind.unwrap_or(PathKind::Function);
            flames.blocks.push(FlameBox { name, kind, depth, begin, own: node.own, all: node.all });
        }
        flames
    }

    /// Returns the number of rows of boxes.
    pub(crate) fn depth(&self) -> usize {
        self.blocks.iter().map(|block| block.depth + 1).max().unwrap_or(0)
    }

    /// Returns the number of boxes.
    pub fn boxes(&self) -> usize {
        self.blocks.len()
    }
}

fn add(nodes: &mut Vec<PathNode>, stacks: &CallStacks, side: usize) {
    let mut place: HashMap<usize, usize> = HashMap::new();
    for (at, path) in stacks.paths.iter().enumerate() {
        let parent = path.parent.and_then(|parent| place.get(&parent)).copied().unwrap_or(0);
        let Some(frame) = stacks.frames.get(path.frame) else { continue };
        let next = nodes.len();
        let node = *nodes[parent].children.entry(frame.name.clone()).or_insert(next);
        if node == next {
            nodes.push(PathNode { kind: Some(frame.kind), ..PathNode::default() });
        }
        nodes[node].own[side] = nodes[node].own[side].saturating_add(path.own);
        place.insert(at, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::stacks;

    #[test]
    fn boxes_lie_on_what_called_them() {
        let flames = FlameGraph::of(&stacks(), None, 0);
        assert_eq!((flames.total, flames.depth(), flames.boxes()), ([1000, 0], 4, 7));
        let roots: u64 =
            flames.blocks.iter().filter(|block| block.depth == 0).map(|block| block.all[0]).sum();
        assert_eq!(roots, 1000);
        assert_eq!(flames.blocks.iter().map(|block| block.own[0]).sum::<u64>(), 1000);
        for block in flames.blocks.iter().filter(|block| block.depth > 0) {
            let is_below = |other: &&FlameBox| {
                other.depth + 1 == block.depth
                    && other.begin <= block.begin
                    && block.begin + block.all[0] <= other.begin + other.all[0]
            };
            assert!(flames.blocks.iter().any(|other| is_below(&other)), "{block:?}");
        }
    }

    #[test]
    fn what_is_small_is_counted_and_what_is_gone_is_summed() {
        let flames = FlameGraph::of(&stacks(), None, 21);
        assert_eq!((flames.boxes(), flames.small), (6, 1));
        let mut now = stacks();
        now.paths.truncate(5);
        let flames = FlameGraph::of(&now, Some(&stacks()), 0);
        assert_eq!((flames.total, flames.gone), ([600, 1000], 400));
    }
}
