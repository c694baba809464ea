//! Procedure positioning, "closest is best".
//!
//! Karl Pettis and Robert C. Hansen, "Profile Guided Code Positioning", PLDI 1990, section 3.

use super::density::{densest_first, Density};
use super::graph::CallGraph;
use super::permutation::PlacementOrder;
use super::queue::KeyedQueue;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Orders functions by Pettis and Hansen's procedure positioning.
///
/// Edges have no direction: the weight between two functions is the sum over all arcs between them,
/// in both directions, including [`temporal_weight`](super::GraphArc::temporal_weight). The two
/// chains with the heaviest edge between them are joined until no edge is left. The weight of an
/// edge between chains is the sum of the edges between their functions. Two chains can be joined in
/// four ways (each forward or reversed). The way that brings the two functions with the heaviest
/// original edge closest together is taken.
///
/// The objective is the sum over all edges of weight times distance
/// ([`Placement::call_distance`](super::Placement::call_distance)), minimized greedily. The result
/// can be worse than a lucky input.
///
/// The paper leaves three points open. Among equally good ways, the smallest sum of weight times
/// distance over all edges between the two chains decides. A finished chain is laid out in the
/// direction in which more calls go forward. Finished chains are sorted by density.
pub fn pettis_hansen(graph: &CallGraph) -> PlacementOrder {
    let hot = graph.hot();
    let mut joiner = ChainJoiner::new(graph);
    joiner.join_all();
    joiner.face_forward(graph);
    let chains = joiner.chains.into_iter().enumerate();
    let chains =
        chains.filter(|(first, chain)| !chain.members.is_empty() && hot[*first]).map(|(_, chain)| {
            let weight = chain.members.iter().map(|&member| graph.functions()[member as usize].weight).sum();
            (Density { weight, bytes: (chain.end - chain.start) as u64 }, chain.members)
        });
    PlacementOrder::of_chains(densest_first(chains.collect()), hot.len())
}

/// Two functions that call each other or alternate, lower index first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionPair {
    functions: (u32, u32),
    weight: u64,
}

/// Edge between two chains.
#[derive(Debug, Default)]
struct ChainLink {
    weight: u64,
    /// Indices of the function pairs that the edge connects.
    pairs: Vec<u32>,
    chains: (u32, u32),
}

/// Chain of functions on a coordinate line of its own, from byte `start` to byte `end`.
#[derive(Debug, Default)]
struct OrientedChain {
    /// Functions, unordered until the end. `ChainJoiner::position` holds their positions.
    members: Vec<u32>,
    start: i64,
    end: i64,
    /// Edges of the chain; some may be dead or have moved to another chain.
    edges: Vec<u32>,
}

/// Way to join the smaller of two chains to the larger, which keeps its position. Reversing both
/// chains equals reversing the result, so these four ways are all.
#[derive(Debug, Clone, Copy)]
enum JoinSide {
    After,
    Before,
    AfterTurned,
    BeforeTurned,
}

const JOIN_SIDES: [JoinSide; 4] =
    [JoinSide::After, JoinSide::Before, JoinSide::AfterTurned, JoinSide::BeforeTurned];

/// State of the algorithm.
struct ChainJoiner {
    spaces: Vec<u64>,
    pairs: Vec<FunctionPair>,
    edges: Vec<ChainLink>,
    /// Edge between two chains, lower index first. Never iterated.
    edge_between: HashMap<(u32, u32), u32>,
    /// Edges by weight, heaviest first; among equals the first in the input.
    queue: KeyedQueue<(u64, Reverse<u32>)>,
    /// Chains, indexed by one of their functions; empty if merged.
    chains: Vec<OrientedChain>,
    chain_of: Vec<u32>,
    /// Start of each function on its chain's line.
    position: Vec<i64>,
}

impl ChainJoiner {
    fn new(graph: &CallGraph) -> Self {
        let spaces = graph.spaces();
        let pairs = pairs(graph);
        let mut queue = KeyedQueue::new(pairs.len());
        let mut chains: Vec<OrientedChain> = (0..spaces.len() as u32)
            .map(|function| OrientedChain {
                members: vec![function],
                end: spaces[function as usize] as i64,
                ..OrientedChain::default()
            })
            .collect();
        let mut edges = Vec::with_capacity(pairs.len());
        let mut edge_between = HashMap::with_capacity(pairs.len());
        for (index, pair) in (0..).zip(&pairs) {
            queue.set(index, (pair.weight, Reverse(index)));
            chains[pair.functions.0 as usize].edges.push(index);
            chains[pair.functions.1 as usize].edges.push(index);
            edge_between.insert(pair.functions, index);
            edges.push(ChainLink { weight: pair.weight, pairs: vec![index], chains: pair.functions });
        }
        let chain_of = (0..spaces.len() as u32).collect();
        Self { position: vec![0; spaces.len()], spaces, pairs, edges, edge_between, queue, chains, chain_of }
    }

    fn join_all(&mut self) {
        while let Some((edge, _)) = self.queue.pop() {
            let ChainLink { pairs, chains: (a, b), .. } = std::mem::take(&mut self.edges[edge as usize]);
            self.edge_between.remove(&sorted(a, b));
            // Move the smaller chain, so that a function moves at most a logarithmic number of
            // times.
            let size = |chain: u32| self.chains[chain as usize].members.len();
            let (into, from) = if size(a) >= size(b) { (a, b) } else { (b, a) };
            let way = self.best_way(&pairs, into);
            self.lay(into, from, way);
            self.hand_over_edges(into, from);
        }
    }

    /// Returns the way that brings the two functions of the heaviest pair closest together.
    fn best_way(&self, pairs: &[u32], into: u32) -> JoinSide {
        let heaviest = pairs.iter().max_by_key(|&&pair| (self.pairs[pair as usize].weight, Reverse(pair)));
        let Some(&heaviest) = heaviest else { return JoinSide::After };
        let apart = JOIN_SIDES.map(|way| self.gap(heaviest, into, way));
        let nearest = apart.into_iter().min();
        let ways = JOIN_SIDES.into_iter().zip(apart).filter(|(_, apart)| Some(*apart) == nearest);
        let sum = |way: JoinSide| -> u128 {
            let term = |&pair: &u32| {
                u128::from(self.pairs[pair as usize].weight) * u128::from(self.gap(pair, into, way))
            };
            pairs.iter().map(term).sum()
        };
        // Among equals the first wins.
        ways.map(|(way, _)| way).min_by_key(|&way| sum(way)).unwrap_or(JoinSide::After)
    }

    /// Returns the bytes between the two functions of a pair (one in `into`) after a join.
    fn gap(&self, pair: u32, into: u32, way: JoinSide) -> u64 {
        let (a, b) = self.pairs[pair as usize].functions;
        let (kept, moved) = if self.chain_of[a as usize] == into { (a, b) } else { (b, a) };
        let (before_kept, after_kept) = self.margins(kept);
        let (before_moved, after_moved) = self.margins(moved);
        match way {
            JoinSide::After => after_kept + before_moved,
            JoinSide::Before => before_kept + after_moved,
            JoinSide::AfterTurned => after_kept + after_moved,
            JoinSide::BeforeTurned => before_kept + before_moved,
        }
    }

    /// Returns the bytes before and after a function in its chain.
    fn margins(&self, function: u32) -> (u64, u64) {
        let OrientedChain { start, end, .. } = self.chains[self.chain_of[function as usize] as usize];
        let position = self.position[function as usize];
        let after = end - position - self.spaces[function as usize] as i64;
        ((position - start) as u64, after as u64)
    }

    /// Moves the functions of `from` to the line of `into`.
    fn lay(&mut self, into: u32, from: u32, way: JoinSide) {
        let OrientedChain { members, start, end, edges } = std::mem::take(&mut self.chains[from as usize]);
        let length = end - start;
        let row = &mut self.chains[into as usize];
        let new_start = match way {
            JoinSide::After | JoinSide::AfterTurned => {
                row.end += length;
                row.end - length
            }
            JoinSide::Before | JoinSide::BeforeTurned => {
                row.start -= length;
                row.start
            }
        };
        for &member in &members {
            let position = &mut self.position[member as usize];
            *position = new_start
                + match way {
                    JoinSide::After | JoinSide::Before => *position - start,
                    JoinSide::AfterTurned | JoinSide::BeforeTurned => {
                        end - *position - self.spaces[member as usize] as i64
                    }
                };
            self.chain_of[member as usize] = into;
        }
        row.members.extend(members);
        self.chains[from as usize].edges = edges;
    }

    /// Moves the edges of `from` to `into`. Two edges to the same chain are joined.
    fn hand_over_edges(&mut self, into: u32, from: u32) {
        for index in std::mem::take(&mut self.chains[from as usize].edges) {
            let (a, b) = self.edges[index as usize].chains;
            let other = match (a == from, b == from) {
                (true, false) => b,
                (false, true) => a,
                // Dead, or already moved to another chain.
                _ => continue,
            };
            self.edge_between.remove(&sorted(from, other));
            let Some(&known) = self.edge_between.get(&sorted(into, other)) else {
                self.edges[index as usize].chains = (into, other);
                self.edge_between.insert(sorted(into, other), index);
                self.chains[into as usize].edges.push(index);
                continue;
            };
            let ChainLink { weight, mut pairs, .. } = std::mem::take(&mut self.edges[index as usize]);
            self.queue.remove(index);
            let edge = &mut self.edges[known as usize];
            edge.weight += weight;
            if pairs.len() > edge.pairs.len() {
                std::mem::swap(&mut pairs, &mut edge.pairs);
            }
            edge.pairs.extend(pairs);
            self.queue.set(known, (edge.weight, Reverse(known)));
        }
    }

    /// Sorts the members of each chain in the direction in which more calls go forward. Ties go to
    /// the direction that begins with the lower index.
    fn face_forward(&mut self, graph: &CallGraph) {
        let mut forward = vec![0_u64; self.chains.len()];
        let mut backward = vec![0_u64; self.chains.len()];
        for arc in graph.arcs().iter().filter(|arc| !arc.is_recursive()) {
            let chain = self.chain_of[arc.caller] as usize;
            if chain == self.chain_of[arc.callee] as usize {
                let goes_on = self.position[arc.caller] < self.position[arc.callee];
                *(if goes_on { &mut forward[chain] } else { &mut backward[chain] }) += arc.weight;
            }
        }
        for (index, chain) in self.chains.iter_mut().enumerate() {
            chain.members.sort_unstable_by_key(|&member| self.position[member as usize]);
            let ends = (chain.members.last(), chain.members.first());
            if (backward[index], Reverse(ends.0)) > (forward[index], Reverse(ends.1)) {
                chain.members.reverse();
            }
        }
    }
}

/// Returns the arcs without direction, in the order of their first appearance.
fn pairs(graph: &CallGraph) -> Vec<FunctionPair> {
    let mut known: HashMap<(u32, u32), usize> = HashMap::with_capacity(graph.arcs().len());
    let mut pairs: Vec<FunctionPair> = Vec::new();
    for arc in graph.arcs().iter().filter(|arc| !arc.is_recursive()) {
        let weight = arc.weight + arc.temporal_weight;
        if weight > 0 {
            let functions = sorted(arc.caller as u32, arc.callee as u32);
            let index = *known.entry(functions).or_insert(pairs.len());
            match pairs.get_mut(index) {
                Some(pair) => pair.weight += weight,
                None => pairs.push(FunctionPair { functions, weight }),
            }
        }
    }
    pairs
}

fn sorted(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}
