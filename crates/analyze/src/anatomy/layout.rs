//! A tree's nodes in preorder, and what they come to with all that is below them.

use super::model::{Part, Sums};
use super::tree::{Tree, ROOT};

/// Where each node of a tree is, in preorder; children are in the order of their numbers.
#[derive(Debug)]
pub(super) struct Layout {
    /// The node at each place.
    pub nodes: Vec<u32>,
    /// The place of each node; of the one that stands for none, 0.
    pub places: Vec<u32>,
    /// The function at each place.
    functions: Vec<u32>,
    /// Its parent's place; of the first, its own.
    parents: Vec<u32>,
    pub depths: Vec<u32>,
    /// How many places its subtree has.
    pub lengths: Vec<u32>,
}

impl Layout {
    pub fn of(tree: &Tree) -> Self {
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
        for place in (1..nodes.len()).rev() {
            lengths[parents[place] as usize] += lengths[place];
        }
        let functions = nodes.iter().map(|node| tree.nodes[*node as usize].function).collect();
        Self { nodes, places, functions, parents, depths, lengths }
    }

    /// What was found at each node, by place, with what is below it.
    pub fn sums(&self, found: &[Sums]) -> Vec<Sums> {
        let at = |node: &u32| found.get(*node as usize).copied().unwrap_or_default();
        let mut sums: Vec<Sums> = self.nodes.iter().map(at).collect();
        for part in [whole as fn(&mut Sums) -> &mut Part, before] {
            let there: Vec<bool> = sums.iter_mut().map(|sums| part(sums).calls > 0).collect();
            for (sums, count) in sums.iter_mut().zip(self.different(&there)) {
                let part = part(sums);
                (part.functions, part.elapsed_ns) = (count, part.net_ns);
            }
            for place in (1..sums.len()).rev() {
                let below = part(&mut sums[place]).elapsed_ns;
                part(&mut sums[self.parents[place] as usize]).elapsed_ns += below;
            }
        }
        sums
    }

    /// How many different functions there are at each place and below it, of those places that are `there`.
    ///
    /// A subtree is a row of places: going through them from first to last, the last place of each function so far is
    /// marked, and those marked are counted (Fenwick's tree) from where a subtree begins when it ends.
    fn different(&self, there: &[bool]) -> Vec<u64> {
        let count = self.nodes.len();
        let ends = |place: u32| place + self.lengths[place as usize] - 1;
        let most = self.functions.iter().copied().max().unwrap_or(0) as usize;
        let mut marked: Vec<Option<usize>> = vec![None; most + 1];
        let (mut marks, mut found) = (Marks(vec![0; count + 1]), vec![0; count]);
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

fn whole(sums: &mut Sums) -> &mut Part {
    &mut sums.whole
}

fn before(sums: &mut Sums) -> &mut Part {
    &mut sums.before
}

/// Numbers whose sums are kept as they change.
struct Marks(Vec<i64>);

impl Marks {
    fn add(&mut self, place: usize, change: i64) {
        let mut at = place + 1;
        while let Some(sum) = self.0.get_mut(at) {
            *sum += change;
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of those before `place`.
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
    use kerntune_trace::How;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn tree(walks: &[Vec<u32>]) -> Tree {
        let mut tree = Tree::new(3);
        for walk in walks {
            walk.iter().fold(ROOT, |node, function| tree.enter(node, *function, How::Call).unwrap());
        }
        tree
    }

    #[test]
    fn by_hand() {
        // 3 -> 1 -> 2, 3 -> 0, 1 -> 1; 0 has no calls.
        let tree = tree(&[vec![1, 2], vec![0], vec![1, 1]]);
        let layout = Layout::of(&tree);
        let at = |place: usize| layout.functions[place];
        assert_eq!((0..5).map(at).collect::<Vec<_>>(), [3, 1, 2, 1, 0]);
        assert_eq!((&layout.depths[..], &layout.lengths[..]), (&[0, 1, 2, 2, 1][..], &[5, 3, 1, 1, 1][..]));
        let part = |calls, net_ns| Part { calls, net_ns, ..Part::default() };
        let sums = |whole| Sums { whole, ..Sums::default() };
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
            let found: Vec<Sums> = (0..tree.nodes.len() as u64)
                .map(|node| {
                    let random = crate::hash::mix(seed, node);
                    let whole = Part { calls: random % 2, net_ns: random >> 40, ..Part::default() };
                    Sums { whole, ..Sums::default() }
                })
                .collect();
            let layout = Layout::of(&tree);
            let sums = layout.sums(&found);
            prop_assert_eq!(layout.nodes.len(), tree.nodes.len() - 1);
            for (place, sum) in sums.iter().enumerate() {
                let below = place..place + layout.lengths[place] as usize;
                let total: u64 = below.clone().map(|at| sums[at].whole.net_ns).sum();
                let there = below.filter(|at| sums[*at].whole.calls > 0);
                let functions: BTreeSet<u32> = there.map(|at| layout.functions[at]).collect();
                prop_assert_eq!((sum.whole.elapsed_ns, sum.whole.functions), (total, functions.len() as u64));
            }
        }
    }
}
