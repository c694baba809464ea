//! Order of a tree's nodes, and sums over subtrees.

use super::model::{NodeFigures, NodeSums};
use super::tree::{CallTree, ROOT};
use kerntune_profile::add_up;

/// A tree's nodes in preorder; children are in the order of their node numbers.
#[derive(Debug)]
pub(super) struct TreeLayout {
    /// Node at each position.
    pub nodes: Vec<u32>,
    /// Position of each node; 0 for the dummy node.
    pub places: Vec<u32>,
    /// Function at each position.
    functions: Vec<u32>,
    /// Position of the parent; the root is its own parent.
    parents: Vec<u32>,
    pub depths: Vec<u32>,
    /// Number of positions in the subtree.
    pub lengths: Vec<u32>,
}

impl TreeLayout {
    pub fn of(tree: &CallTree) -> Self {
        let count = tree.nodes.len();
        let (mut first, mut next) = (vec![0u32; count], vec![0u32; count]);
        for node in (2..count).rev() {
            let parent = tree.nodes[node].parent as usize;
            next[node] = std::mem::replace(&mut first[parent], node as u32);
        }
        let mut nodes = Vec::with_capacity(count);
        let mut open = vec![ROOT];
        while let Some(node) = open.pop() {
            nodes.push(node);
            let siblings = Some(next[node as usize]).filter(|next| *next > 0);
            open.extend(siblings.into_iter().chain(Some(first[node as usize]).filter(|child| *child > 0)));
        }
        let mut places = vec![0; count];
        for (place, node) in (0..).zip(&nodes) {
            places[*node as usize] = place;
        }
        let (mut parents, mut depths) = (vec![0; nodes.len()], vec![0; nodes.len()]);
        for (place, node) in nodes.iter().enumerate().skip(1) {
            let parent = places[tree.nodes[*node as usize].parent as usize];
            (parents[place], depths[place]) = (parent, depths[parent as usize] + 1);
        }
        let mut lengths = vec![1; nodes.len()];
        add_up(&mut lengths, |place, _| parents[place] as usize, |above, below| *above += *below);
        let functions = nodes.iter().map(|node| tree.nodes[*node as usize].function).collect();
        Self { nodes, places, functions, parents, depths, lengths }
    }

    /// Returns sums over each subtree, by position.
    pub fn sums(&self, found: &[NodeSums]) -> Vec<NodeSums> {
        let at = |node: &u32| found.get(*node as usize).copied().unwrap_or_default();
        let mut sums: Vec<NodeSums> = self.nodes.iter().map(at).collect();
        for part in [whole as fn(&mut NodeSums) -> &mut NodeFigures, before] {
            let there: Vec<bool> = sums.iter_mut().map(|sums| part(sums).calls > 0).collect();
            for (sums, count) in sums.iter_mut().zip(self.different(&there)) {
                let part = part(sums);
                (part.functions, part.elapsed_ns) = (count, part.self_ticks);
            }
            for place in (1..sums.len()).rev() {
                let below = part(&mut sums[place]).elapsed_ns;
                part(&mut sums[self.parents[place] as usize]).elapsed_ns += below;
            }
        }
        sums
    }

    /// Returns, for each position, the number of distinct functions in its subtree, of those
    /// positions that are `there`.
    ///
    /// A subtree is a range of positions. Going through them from first to last, the last position
    /// of each function so far is marked; where a subtree ends, the marks from its beginning on are
    /// counted with a Fenwick tree.
    fn different(&self, there: &[bool]) -> Vec<u64> {
        let count = self.nodes.len();
        let ends = |place: u32| place + self.lengths[place as usize] - 1;
        let max = self.functions.iter().copied().max().unwrap_or(0) as usize;
        let mut marked: Vec<Option<usize>> = vec![None; max + 1];
        let (mut marks, mut found) = (PrefixSums(vec![0; count + 1]), vec![0; count]);
        for place in 0..count {
            if there[place] {
                if let Some(before) = marked[self.functions[place] as usize].replace(place) {
                    marks.add(before, -1);
                }
                marks.add(place, 1);
            }
            let mut ending = place as u32;
            while ends(ending) == place as u32 {
                found[ending as usize] = (marks.below(place + 1) - marks.below(ending as usize)) as u64;
                if ending == 0 {
                    break;
                }
                ending = self.parents[ending as usize];
            }
        }
        found
    }
}

fn whole(sums: &mut NodeSums) -> &mut NodeFigures {
    &mut sums.whole
}

fn before(sums: &mut NodeSums) -> &mut NodeFigures {
    &mut sums.before
}

/// Fenwick tree: numbers that can change, and sums of their prefixes.
struct PrefixSums(Vec<i64>);

impl PrefixSums {
    fn add(&mut self, place: usize, change: i64) {
        let mut at = place + 1;
        while let Some(sum) = self.0.get_mut(at) {
            *sum += change;
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the sum of the numbers before `place`.
    fn below(&self, place: usize) -> i64 {
        let (mut at, mut sum) = (place, 0);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_trace::EnterKind;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn tree(walks: &[Vec<u32>]) -> CallTree {
        let mut tree = CallTree::new(3);
        for walk in walks {
            walk.iter().fold(ROOT, |node, function| tree.enter(node, *function, EnterKind::Call).unwrap());
        }
        tree
    }

    #[test]
    fn by_hand() {
        // 3 -> 1 -> 2, 3 -> 0, 1 -> 1; 0 has no calls.
        let tree = tree(&[vec![1, 2], vec![0], vec![1, 1]]);
        let layout = TreeLayout::of(&tree);
        let at = |place: usize| layout.functions[place];
        assert_eq!((0..5).map(at).collect::<Vec<_>>(), [3, 1, 2, 1, 0]);
        assert_eq!((&layout.depths[..], &layout.lengths[..]), (&[0, 1, 2, 2, 1][..], &[5, 3, 1, 1, 1][..]));
        let part = |calls, self_ticks| NodeFigures { calls, self_ticks, ..NodeFigures::default() };
        let sums = |whole| NodeSums { whole, ..NodeSums::default() };
        let found = [part(0, 0), part(1, 5), part(2, 10), part(1, 7), part(0, 0), part(3, 1)].map(sums);
        let sums = layout.sums(&found);
        let found: Vec<_> = sums.iter().map(|sums| (sums.whole.elapsed_ns, sums.whole.functions)).collect();
        assert_eq!(found, [(23, 3), (18, 2), (7, 1), (1, 1), (0, 0)]);
    }

    proptest! {
        #[test]
        fn functions_and_times_of_subtrees(
            walks in prop::collection::vec(prop::collection::vec(0u32..5, 0..7), 0..40),
            seed in any::<u64>(),
        ) {
            let tree = tree(&walks);
            let found: Vec<NodeSums> = (0..tree.nodes.len() as u64)
                .map(|node| {
                    let random = crate::hash::mix(seed, node);
                    let whole = NodeFigures { calls: random % 2, self_ticks: random >> 40, ..NodeFigures::default() };
                    NodeSums { whole, ..NodeSums::default() }
                })
                .collect();
            let layout = TreeLayout::of(&tree);
            let sums = layout.sums(&found);
            prop_assert_eq!(layout.nodes.len(), tree.nodes.len() - 1);
            for (place, sum) in sums.iter().enumerate() {
                let below = place..place + layout.lengths[place] as usize;
                let total: u64 = below.clone().map(|at| sums[at].whole.self_ticks).sum();
                let there = below.filter(|at| sums[*at].whole.calls > 0);
                let functions: BTreeSet<u32> = there.map(|at| layout.functions[at]).collect();
                prop_assert_eq!((sum.whole.elapsed_ns, sum.whole.functions), (total, functions.len() as u64));
            }
        }
    }
}
