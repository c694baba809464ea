//! Matching of the blocks of two functions.

use super::graph::{CodeGraph, EdgeRole, STRENGTHS};
use std::collections::BTreeMap;

/// Likeness of two blocks, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::quality) enum BlockLikeness {
    /// Same instructions, except for addresses, offsets and constants.
    Exact,
    /// Same operations on other registers, or the same calls.
    Loose,
    /// Other contents between matched neighbors.
    Place,
}

/// Counterpart of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::quality) struct BlockMatch {
    /// Number of the block in the recorded function.
    pub from: usize,
    pub likeness: BlockLikeness,
}

/// Strengths whose equality is [`BlockLikeness::Exact`].
const EXACT: usize = 2;
/// Strengths that tell little about short blocks.
const WEAK: usize = 3;
/// Fewest instructions of a block that a weak strength may match without a matched neighbor.
const MIN_CONTENT: usize = 4;
/// Most blocks with one hash that are compared with each other.
const MAX_ALIKE: usize = 64;

/// Matches blocks of `to` with those of `from`, one to one: for each block of `to` its counterpart.
/// `whole` says that both are the same function, so that their entries and, between matched blocks,
/// the blocks in corresponding places correspond whatever they contain. `taken` are blocks of `to`
/// and `used` blocks of `from` that have a counterpart elsewhere.
pub(in crate::quality) fn match_blocks(
    from: &CodeGraph,
    to: &CodeGraph,
    whole: bool,
    taken: &[bool],
    used: &[bool],
) -> Vec<Option<BlockMatch>> {
    let mut matching = Matching {
        from,
        to,
        whole,
        taken,
        elsewhere: used,
        of: vec![None; to.blocks.len()],
        used: vec![None; from.blocks.len()],
    };
    for strength in 0..STRENGTHS {
        let likeness = if strength < EXACT { BlockLikeness::Exact } else { BlockLikeness::Loose };
        // What is known now decides among blocks that are alike.
        matching.by_hash(strength, likeness, true);
        matching.by_hash(strength, likeness, false);
    }
    if whole {
        if let (Some(None), Some(None)) = (matching.of.first(), matching.used.first()) {
            matching.set(0, 0, BlockLikeness::Place);
        }
        matching.by_place();
    }
    matching.of
}

struct Matching<'a> {
    from: &'a CodeGraph,
    to: &'a CodeGraph,
    whole: bool,
    taken: &'a [bool],
    elsewhere: &'a [bool],
    /// Counterpart of each block of `to`.
    of: Vec<Option<BlockMatch>>,
    /// Counterpart of each block of `from`.
    used: Vec<Option<usize>>,
}

impl Matching<'_> {
    fn set(&mut self, from: usize, to: usize, likeness: BlockLikeness) {
        self.of[to] = Some(BlockMatch { from, likeness });
        self.used[from] = Some(to);
    }

    fn is_free(&self, to: usize) -> bool {
        self.of[to].is_none() && !self.taken.get(to).copied().unwrap_or_default()
    }

    fn is_unused(&self, from: usize) -> bool {
        self.used[from].is_none() && !self.elsewhere.get(from).copied().unwrap_or_default()
    }

    /// Matches free blocks with equal hashes: only those without another like them if `single`.
    fn by_hash(&mut self, strength: usize, likeness: BlockLikeness, single: bool) {
        let mut groups: BTreeMap<u64, [Vec<usize>; 2]> = BTreeMap::new();
        for (at, block) in self.from.blocks.iter().enumerate().filter(|(at, _)| self.is_unused(*at)) {
            if let Some(hash) = block.hashes[strength] {
                groups.entry(hash).or_default()[0].push(at);
            }
        }
        for (at, block) in self.to.blocks.iter().enumerate().filter(|(at, _)| self.is_free(*at)) {
            if let Some(hash) = block.hashes[strength] {
                groups.entry(hash).or_default()[1].push(at);
            }
        }
        // Long blocks first: they say most about their neighbors.
        let mut groups: Vec<[Vec<usize>; 2]> =
            groups.into_values().filter(|[a, b]| !a.is_empty() && !b.is_empty()).collect();
        groups.sort_by_key(|[here, there]| {
            (std::cmp::Reverse(self.from.blocks[here[0]].content), here[0], there[0])
        });
        for [here, there] in groups {
            let is_single = here.len() == 1 && there.len() == 1;
            if is_single != single || here.len() > MAX_ALIKE || there.len() > MAX_ALIKE {
                continue;
            }
            let mut pairs: Vec<(usize, usize, usize, usize)> = Vec::new();
            for &from in &here {
                for &to in &there {
                    let neighbors = self.neighbors(from, to);
                    let block = &self.to.blocks[to];
                    let says_little =
                        (strength >= WEAK || !self.whole) && block.content < MIN_CONTENT && !block.has_call;
                    if says_little && neighbors == 0 {
                        continue;
                    }
                    pairs.push((usize::MAX - neighbors, self.distance(from, to), from, to));
                }
            }
            pairs.sort_unstable();
            for (_, _, from, to) in pairs {
                if self.used[from].is_none() && self.of[to].is_none() {
                    self.set(from, to, likeness);
                }
            }
        }
    }

    /// Returns the number of neighbors of both blocks that correspond.
    fn neighbors(&self, from: usize, to: usize) -> usize {
        let ways = |leaving: bool| {
            let list = if leaving { &self.from.leaving[from] } else { &self.from.entering[from] };
            let there = if leaving { &self.to.leaving[to] } else { &self.to.entering[to] };
            list.iter()
                .filter(|edge| {
                    let edge = self.from.edges[**edge];
                    let next = if leaving { edge.to } else { edge.from };
                    let Some(next) = self.used[next] else { return false };
                    there.iter().any(|other| {
                        let other = self.to.edges[*other];
                        next == if leaving { other.to } else { other.from }
                    })
                })
                .count()
        };
        ways(true) + ways(false)
    }

    /// Returns the difference of the two blocks' places in their functions, in thousandths.
    fn distance(&self, from: usize, to: usize) -> usize {
        let place = |at: usize, all: usize| at * 1000 / all.max(1);
        place(from, self.from.blocks.len()).abs_diff(place(to, self.to.blocks.len()))
    }

    /// Matches free blocks that follow, or precede, matched ones in the same way.
    fn by_place(&mut self) {
        let mut open: Vec<usize> = (0..self.of.len()).rev().filter(|to| self.of[*to].is_some()).collect();
        while let Some(to) = open.pop() {
            let Some(BlockMatch { from, .. }) = self.of[to] else { continue };
            let found = [
                self.next(from, to, EdgeRole::Fall),
                self.next(from, to, EdgeRole::Taken),
                self.only_before(from, to),
            ];
            for (from, to) in found.into_iter().flatten() {
                if self.is_unused(from) && self.is_free(to) && self.fits(from, to) {
                    self.set(from, to, BlockLikeness::Place);
                    open.push(to);
                }
            }
        }
    }

    /// Returns the successors of a matched pair. Where the one's condition is the opposite of the
    /// other's, they are reached the other way round.
    fn next(&self, from: usize, to: usize, role: EdgeRole) -> Option<(usize, usize)> {
        let other = match role {
            EdgeRole::Fall => EdgeRole::Taken,
            EdgeRole::Taken => EdgeRole::Fall,
        };
        let (here, there) = (self.from.successor(from, role)?, self.to.successor(to, role)?);
        let crossed = |here: usize, role| {
            let across = self.to.successor(to, role);
            self.used[here].is_some() && self.used[here] == across
        };
        // The rest of the branch has a match across: so has this way.
        if let Some(rest) = self.from.successor(from, other) {
            if crossed(rest, role) {
                return Some((here, self.to.successor(to, other)?));
            }
        }
        Some((here, there))
    }

    fn only_before(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        match (self.from.entering[from].as_slice(), self.to.entering[to].as_slice()) {
            (&[here], &[there]) => Some((self.from.edges[here].from, self.to.edges[there].from)),
            _ => None,
        }
    }

    /// Checks whether two blocks in corresponding places may be one: they go on in the same number
    /// of ways.
    fn fits(&self, from: usize, to: usize) -> bool {
        let (here, there) = (&self.from.blocks[from], &self.to.blocks[to]);
        self.from.leaving[from].len() == self.to.leaving[to].len() && here.has_call == there.has_call
    }
}
