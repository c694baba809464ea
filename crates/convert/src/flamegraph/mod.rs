//! Flame graphs: one picture (SVG) of all call paths, with what is needed to zoom and to search in it.
//!
//! A box is a path: as wide as what it took with its callees, which stand above it. In a differential one widths are those of
//! the profile, and the colour says whether the path itself took more (red) or less (blue) than in the base profile.

mod svg;

pub use svg::Picture;

use crate::stacks::Stacks;
use kerntune_profile::PathKind;
use std::collections::{BTreeMap, HashMap};

/// What paths took: in the profile and in the one that it is held against.
type Both = [u64; 2];

/// A path by its names, with those above it.
#[derive(Debug, Default)]
struct Node {
    kind: Option<PathKind>,
    own: Both,
    all: Both,
    /// Paths of the profile here and above.
    size: usize,
    /// By name: so that two pictures are alike.
    children: BTreeMap<String, usize>,
}

/// A box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub name: String,
    pub kind: PathKind,
    pub depth: usize,
    /// Where it begins, from the left.
    pub begin: u64,
    pub own: Both,
    pub all: Both,
}

/// Boxes, and what has none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Flames {
    pub(crate) blocks: Vec<Block>,
    /// What all paths took, in both profiles.
    pub total: [u64; 2],
    /// Paths that are too small for a box.
    pub small: usize,
    /// What paths took themselves that only the base profile has: they have no width.
    pub gone: u64,
    /// Whether there is a base profile.
    pub differential: bool,
}

impl Flames {
    /// Those of a profile, held against a base profile if there is one. Paths of less than `smallest` have no box; their time
    /// is in the boxes below them.
    pub fn of(stacks: &Stacks, base: Option<&Stacks>, smallest: u64) -> Self {
        let mut nodes = vec![Node::default()];
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
        // What is still to be placed: node, name, depth, begin.
        let mut open: Vec<(usize, String, usize, u64)> = Vec::new();
        let queue = |open: &mut Vec<_>, of: &Node, depth: usize, begin: u64| {
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
            flames.blocks.push(Block { name, kind, depth, begin, own: node.own, all: node.all });
        }
        flames
    }

    /// Rows of boxes.
    pub(crate) fn depth(&self) -> usize {
        self.blocks.iter().map(|block| block.depth + 1).max().unwrap_or(0)
    }

    /// Number of boxes.
    pub fn boxes(&self) -> usize {
        self.blocks.len()
    }
}

fn add(nodes: &mut Vec<Node>, stacks: &Stacks, side: usize) {
    let mut place: HashMap<usize, usize> = HashMap::new();
    for (at, path) in stacks.paths.iter().enumerate() {
        let parent = path.parent.and_then(|parent| place.get(&parent)).copied().unwrap_or(0);
        let Some(frame) = stacks.frames.get(path.frame) else { continue };
        let next = nodes.len();
        let node = *nodes[parent].children.entry(frame.name.clone()).or_insert(next);
        if node == next {
            nodes.push(Node { kind: Some(frame.kind), ..Node::default() });
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
        let flames = Flames::of(&stacks(), None, 0);
        assert_eq!((flames.total, flames.depth(), flames.boxes()), ([1000, 0], 4, 7));
        let roots: u64 =
            flames.blocks.iter().filter(|block| block.depth == 0).map(|block| block.all[0]).sum();
        assert_eq!(roots, 1000);
        assert_eq!(flames.blocks.iter().map(|block| block.own[0]).sum::<u64>(), 1000);
        for block in flames.blocks.iter().filter(|block| block.depth > 0) {
            let is_below = |other: &&Block| {
                other.depth + 1 == block.depth
                    && other.begin <= block.begin
                    && block.begin + block.all[0] <= other.begin + other.all[0]
            };
            assert!(flames.blocks.iter().any(|other| is_below(&other)), "{block:?}");
        }
    }

    #[test]
    fn what_is_small_is_counted_and_what_is_gone_is_summed() {
        let flames = Flames::of(&stacks(), None, 21);
        assert_eq!((flames.boxes(), flames.small), (6, 1));
        let mut now = stacks();
        now.paths.truncate(5);
        let flames = Flames::of(&now, Some(&stacks()), 0);
        assert_eq!((flames.total, flames.gone), ([600, 1000], 400));
    }
}
