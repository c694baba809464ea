//! The tree of call paths, merged over the regions of a group and cut to what can be seen.

use super::groups::Groups;
use kerntune_profile::{How, PathKind, PathNode};
use std::collections::HashMap;

/// Weights of a path: net time, taken branches, L1I misses, iTLB misses.
pub(super) const WEIGHTS: usize = 4;

/// What a node stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key<'a> {
    /// All threads of one name.
    Thread(&'a str),
    Interrupt,
    Idle,
    Function(u32),
    User,
    Unattributed,
    /// Everything below its parent that is too small to be seen.
    Smaller,
}

/// A node of the tree, in preorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node<'a> {
    pub depth: u32,
    pub key: Key<'a>,
    pub how: How,
    /// Calls; for [`Key::Smaller`] the number of paths that it stands for.
    pub calls: u64,
    /// At this path itself; for [`Key::Smaller`] of all that it stands for.
    pub own: [u64; WEIGHTS],
}

/// The whole tree of one group.
pub(super) struct Tree<'a> {
    nodes: Vec<Merged<'a>>,
    children: Vec<Vec<u32>>,
    roots: Vec<u32>,
    totals: [u64; WEIGHTS],
}

struct Merged<'a> {
    key: Key<'a>,
    how: How,
    calls: u64,
    own: [u64; WEIGHTS],
    /// With everything below.
    all: [u64; WEIGHTS],
    /// Into how many parts the whole is to be cut for this to be one of them, by the weight by which it is largest.
    part: u64,
    /// Nodes in this subtree, itself included.
    size: u64,
}

/// Adds `from` to `into`.
fn add(into: &mut [u64; WEIGHTS], from: &[u64; WEIGHTS]) {
    into.iter_mut().zip(from).for_each(|(a, b)| *a = a.saturating_add(*b));
}

/// One tree per group.
pub(super) fn trees<'a>(paths: &'a [PathNode], groups: &Groups) -> Vec<Tree<'a>> {
    let mut trees: Vec<Tree> = (0..groups.count).map(|_| Tree::empty()).collect();
    let mut seen: HashMap<(u32, u32, Key, How), u32> = HashMap::new();
    // Row → node of its group's tree.
    let mut place = vec![u32::MAX; paths.len()];
    for (at, row) in paths.iter().enumerate() {
        let Some(group) = groups.group(row.region) else { continue };
        let Some(tree) = trees.get_mut(group as usize) else { continue };
        let parent = place.get(row.parent as usize).copied().unwrap_or(u32::MAX);
        let key = match row.kind {
            PathKind::Thread => Key::Thread(&row.comm),
            PathKind::Interrupt => Key::Interrupt,
            PathKind::Idle => Key::Idle,
            PathKind::Function => Key::Function(row.function.get()),
            PathKind::User => Key::User,
            PathKind::Unattributed => Key::Unattributed,
        };
        let node = *(seen.entry((group, parent, key.clone(), row.how)))
            .or_insert_with(|| tree.push(parent, key, row.how));
        place[at] = node;
        let own = [row.net_ns.get(), row.taken_branches, row.l1i_misses, row.itlb_misses];
        if let Some(node) = tree.nodes.get_mut(node as usize) {
            node.calls = node.calls.saturating_add(row.calls);
            add(&mut node.own, &own);
        }
    }
    trees.iter_mut().for_each(Tree::add_up);
    trees
}

/// A node that is told apart from all others already: its number, its group, its parent's number, and what [`Node`] has.
pub(super) type Known<'a> = (u32, u32, u32, Key<'a>, How, u64, [u64; WEIGHTS]);

/// The trees of nodes with numbers below `limit`, parents before children.
pub(super) fn trees_of<'a>(
    groups: usize,
    limit: usize,
    nodes: impl Iterator<Item = Known<'a>>,
) -> Vec<Tree<'a>> {
    let mut trees: Vec<Tree> = (0..groups).map(|_| Tree::empty()).collect();
    let mut place = vec![u32::MAX; limit];
    for (number, group, parent, key, how, calls, own) in nodes {
        let Some(tree) = trees.get_mut(group as usize) else { continue };
        let parent = place.get(parent as usize).copied().unwrap_or(u32::MAX);
        let at = tree.push(parent, key, how);
        if let (Some(place), Some(node)) = (place.get_mut(number as usize), tree.nodes.get_mut(at as usize)) {
            *place = at;
            (node.calls, node.own) = (calls, own);
        }
    }
    trees.iter_mut().for_each(Tree::add_up);
    trees
}

impl<'a> Tree<'a> {
    fn empty() -> Self {
        Self { nodes: Vec::new(), children: Vec::new(), roots: Vec::new(), totals: [0; WEIGHTS] }
    }

    fn push(&mut self, parent: u32, key: Key<'a>, how: How) -> u32 {
        let at = self.nodes.len() as u32;
        self.nodes.push(Merged {
            key,
            how,
            calls: 0,
            own: [0; WEIGHTS],
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

    /// Parents come before children, so one pass from the back is enough.
    fn add_up(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let mut all = self.nodes[at].own;
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

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes [`Tree::pruned`] would keep.
    pub fn visible(&self, parts: u64) -> usize {
        self.nodes.iter().filter(|node| node.part <= parts).count()
    }

    /// The nodes of at least one part in `parts`, heaviest first among siblings, and one
    /// [`Key::Smaller`] for the rest of each node's children: no time is lost.
    pub fn pruned(&self, parts: u64) -> Vec<Node<'a>> {
        let mut out = Vec::new();
        // Siblings still to be written, the next one last.
        let mut stack: Vec<(u32, Step)> = Vec::new();
        self.queue(&self.roots, 0, parts, &mut stack);
        while let Some((depth, step)) = stack.pop() {
            match step {
                Step::Node(at) => {
                    let node = &self.nodes[at as usize];
                    let (key, how, calls, own) = (node.key.clone(), node.how, node.calls, node.own);
                    out.push(Node { depth, key, how, calls, own });
                    self.queue(&self.children[at as usize], depth + 1, parts, &mut stack);
                }
                Step::Smaller { paths, own } => {
                    out.push(Node { depth, key: Key::Smaller, how: How::Call, calls: paths, own });
                }
            }
        }
        out
    }

    fn queue(&self, siblings: &[u32], depth: u32, parts: u64, stack: &mut Vec<(u32, Step)>) {
        let mut visible = Vec::new();
        let (mut paths, mut own) = (0, [0; WEIGHTS]);
        for &at in siblings {
            let node = &self.nodes[at as usize];
            if node.part <= parts {
                visible.push(at);
            } else {
                paths += node.size;
                add(&mut own, &node.all);
            }
        }
        if paths > 0 {
            stack.push((depth, Step::Smaller { paths, own }));
        }
        visible.sort_by_key(|&at| self.nodes[at as usize].all[0]);
        stack.extend(visible.into_iter().map(|at| (depth, Step::Node(at))));
    }
}

enum Step {
    Node(u32),
    Smaller { paths: u64, own: [u64; WEIGHTS] },
}
