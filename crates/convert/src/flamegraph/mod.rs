//! Flame graphs: one picture (SVG) of all call paths, with a script to zoom and search.
//!
//! A box is a path. Its width is the path's total; callees stand above it. In a differential flame
//! graph widths are those of the profile, and the color says whether the path's self time grew
//! (red) or shrank (blue) since the base profile.

mod svg;

pub use svg::FlameGraphSvg;

use crate::stacks::CallStacks;
use kerntune_profile::{add_up_figures, CallTree, PathKind, TreeChildren};

/// Figure in the profile and in the base profile.
type FigurePair = [u64; 2];

/// Figures of a path by its names.
#[derive(Debug, Default, Clone, Copy)]
struct FlameFigures {
    kind: Option<PathKind>,
    own: FigurePair,
    all: FigurePair,
    /// Number of the profile's paths in this subtree.
    size: usize,
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
        let mut tree = CallTree::default();
        for (side, stacks) in [Some(stacks), base].into_iter().flatten().enumerate() {
            add(&mut tree, stacks, side);
        }
        let mut nodes = tree.nodes;
        nodes.iter_mut().for_each(|node| node.figures.all = node.figures.own);
        add_up_figures(&mut nodes, |above, below| add_pair(&mut above.all, below.all));
        nodes.iter_mut().for_each(|node| node.figures.size = usize::from(node.figures.all[0] > 0));
        add_up_figures(&mut nodes, |above, below| above.size += below.size);
        let mut children = TreeChildren::new(&nodes);
        // Sorted by name, so that two pictures look alike.
        for siblings in children.of.iter_mut().chain([&mut children.roots]) {
            siblings.sort_unstable_by_key(|at| nodes[*at].frame);
        }
        let mut total = FigurePair::default();
        children.roots.iter().for_each(|root| add_pair(&mut total, nodes[*root].figures.all));
        let gone = nodes.iter().filter(|node| node.figures.all[0] == 0).map(|node| node.figures.own[1]);
        let gone = gone.fold(0, u64::saturating_add);
        let mut flames = Self { total, gone, differential: base.is_some(), ..Self::default() };
        // Nodes to place: node, depth, begin.
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        let queue = |open: &mut Vec<_>, siblings: &[usize], depth: usize, begin: u64| {
            let mut at = begin;
            for child in siblings {
                open.push((*child, depth, at));
                at = at.saturating_add(nodes[*child].figures.all[0]);
            }
        };
        queue(&mut open, &children.roots, 0, 0);
        while let Some((at, depth, begin)) = open.pop() {
            let FlameFigures { kind, own, all, size } = nodes[at].figures;
            if all[0] == 0 {
                continue;
            }
            if all[0] < smallest {
                flames.small += size;
                continue;
            }
            queue(&mut open, &children.of[at], depth + 1, begin);
            let (name, kind) = (nodes[at].frame.to_owned(), kind.unwrap_or(PathKind::Function));
            flames.blocks.push(FlameBox { name, kind, depth, begin, own, all });
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

/// Adds the paths of a profile; those of the same names are one.
fn add<'a>(tree: &mut CallTree<&'a str, FlameFigures>, stacks: &'a CallStacks, side: usize) {
    let mut place: Vec<Option<usize>> = Vec::with_capacity(stacks.paths.len());
    for path in &stacks.paths {
        let parent = path.parent.and_then(|parent| place.get(parent).copied().flatten());
        let at = stacks.frames.get(path.frame).map(|frame| {
            let at = tree.child(parent, &frame.name);
            let figures = &mut tree.nodes[at].figures;
            figures.kind.get_or_insert(frame.kind);
            figures.own[side] = figures.own[side].saturating_add(path.figures.own);
            at
        });
        place.push(at);
    }
}

fn add_pair(sum: &mut FigurePair, more: FigurePair) {
    (0..2).for_each(|side| sum[side] = sum[side].saturating_add(more[side]));
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
