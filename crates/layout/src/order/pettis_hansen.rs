//! Procedure positioning, "closest is best".
//!
//! Karl Pettis and Robert C. Hansen, "Profile Guided Code Positioning", PLDI 1990, section 3.

use super::density::{densest_first, Density};
use super::graph::CallGraph;
use super::permutation::Order;
use super::queue::Queue;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Orders functions by Pettis and Hansen's procedure positioning.
///
/// Edges have no direction: the weight between two functions is that of all arcs between them, either way, and
/// of [`temporal_weight`](super::Arc::temporal_weight). The two chains with the heaviest edge between them are
/// joined, until no edge is left; an edge between chains has the weight of all edges between their functions.
/// Of the four ways of joining two chains (each one way or the other round) the one is taken that brings the
/// two functions with the heaviest original edge nearest to each other.
///
/// The objective is the sum over all edges of weight times distance
/// ([`Placement::call_distance`](super::Placement::call_distance)), minimised greedily: a result can be worse
/// than a lucky input.
///
/// What the paper leaves open: among ways that are equal, the least sum of weight times distance over all
/// edges between the two chains decides; a finished chain is laid the way round in which more calls go
/// forward; finished chains are sorted by density.
pub fn pettis_hansen(graph: &CallGraph) -> Order {
    let hot = graph.hot();
    let mut joiner = Joiner::new(graph);
    joiner.join_all();
    joiner.face_forward(graph);
    let chains = joiner.chains.into_iter().enumerate();
    let chains =
        chains.filter(|(first, chain)| !chain.members.is_empty() && hot[*first]).map(|(_, chain)| {
            let weight = chain.members.iter().map(|&member| graph.functions()[member as usize].weight).sum();
            (Density { weight, bytes: (chain.end - chain.start) as u64 }, chain.members)
        });
    Order::of_chains(densest_first(chains.collect()), hot.len())
}

/// Two functions that call each other or take turns, lower index first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    functions: (u32, u32),
    weight: u64,
}

/// An edge between two chains.
#[derive(Debug, Default)]
struct Edge {
    weight: u64,
    /// The pairs whose functions it joins, as indices.
    pairs: Vec<u32>,
    chains: (u32, u32),
}

/// A row of functions on a line of its own, from `start` to `end`, bytes.
#[derive(Debug, Default)]
struct Chain {
    /// In no order until the end; `Joiner::position` says where each one is.
    members: Vec<u32>,
    start: i64,
    end: i64,
    /// Its edges; some may have gone to another chain or are dead.
    edges: Vec<u32>,
}

/// How the smaller of two chains is joined to the greater, which stays as it lies. Turning both is the same
/// as turning the whole, so these are all four ways.
#[derive(Debug, Clone, Copy)]
enum Way {
    After,
    Before,
    AfterTurned,
    BeforeTurned,
}

const WAYS: [Way; 4] = [Way::After, Way::Before, Way::AfterTurned, Way::BeforeTurned];

/// The state of the algorithm.
struct Joiner {
    spaces: Vec<u64>,
    pairs: Vec<Pair>,
    edges: Vec<Edge>,
    /// The edge between two chains, lower index first. Never iterated.
    edge_between: HashMap<(u32, u32), u32>,
    /// Heaviest first, of equal ones the one that comes first in the input.
    queue: Queue<(u64, Reverse<u32>)>,
    /// By the index of one of their functions; empty if merged.
    chains: Vec<Chain>,
    chain_of: Vec<u32>,
    /// Where a function begins on the line of its chain.
    position: Vec<i64>,
}

impl Joiner {
    fn new(graph: &CallGraph) -> Self {
        let spaces = graph.spaces();
        let pairs = pairs(graph);
        let mut queue = Queue::new(pairs.len());
        let mut chains: Vec<Chain> = (0..spaces.len() as u32)
            .map(|function| Chain {
                members: vec![function],
                end: spaces[function as usize] as i64,
                ..Chain::default()
            })
            .collect();
        let mut edges = Vec::with_capacity(pairs.len());
        let mut edge_between = HashMap::with_capacity(pairs.len());
        for (index, pair) in (0..).zip(&pairs) {
            queue.set(index, (pair.weight, Reverse(index)));
            chains[pair.functions.0 as usize].edges.push(index);
            chains[pair.functions.1 as usize].edges.push(index);
            edge_between.insert(pair.functions, index);
            edges.push(Edge { weight: pair.weight, pairs: vec![index], chains: pair.functions });
        }
        let chain_of = (0..spaces.len() as u32).collect();
        Self { position: vec![0; spaces.len()], spaces, pairs, edges, edge_between, queue, chains, chain_of }
    }

    fn join_all(&mut self) {
        while let Some((edge, _)) = self.queue.pop() {
            let Edge { pairs, chains: (a, b), .. } = std::mem::take(&mut self.edges[edge as usize]);
            self.edge_between.remove(&sorted(a, b));
            // The smaller one is moved, so that no function moves more often than the logarithm of their number.
            let size = |chain: u32| self.chains[chain as usize].members.len();
            let (into, from) = if size(a) >= size(b) { (a, b) } else { (b, a) };
            let way = self.best_way(&pairs, into);
            self.lay(into, from, way);
            self.hand_over_edges(into, from);
        }
    }

    /// The way of joining that brings the ends of the heaviest of the pairs nearest to each other.
    fn best_way(&self, pairs: &[u32], into: u32) -> Way {
        let heaviest = pairs.iter().max_by_key(|&&pair| (self.pairs[pair as usize].weight, Reverse(pair)));
        let Some(&heaviest) = heaviest else { return Way::After };
        let apart = WAYS.map(|way| self.gap(heaviest, into, way));
        let nearest = apart.into_iter().min();
        let ways = WAYS.into_iter().zip(apart).filter(|(_, apart)| Some(*apart) == nearest);
        let sum = |way: Way| -> u128 {
            let term = |&pair: &u32| {
                u128::from(self.pairs[pair as usize].weight) * u128::from(self.gap(pair, into, way))
            };
            pairs.iter().map(term).sum()
        };
        // The first of equal ones.
        ways.map(|(way, _)| way).min_by_key(|&way| sum(way)).unwrap_or(Way::After)
    }

    /// Bytes between the two functions of a pair, one of which is in `into`, if the chains were joined so.
    fn gap(&self, pair: u32, into: u32, way: Way) -> u64 {
        let (a, b) = self.pairs[pair as usize].functions;
        let (kept, moved) = if self.chain_of[a as usize] == into { (a, b) } else { (b, a) };
        let (before_kept, after_kept) = self.margins(kept);
        let (before_moved, after_moved) = self.margins(moved);
        match way {
            Way::After => after_kept + before_moved,
            Way::Before => before_kept + after_moved,
            Way::AfterTurned => after_kept + after_moved,
            Way::BeforeTurned => before_kept + before_moved,
        }
    }

    /// Bytes before and after a function in its chain.
    fn margins(&self, function: u32) -> (u64, u64) {
        let Chain { start, end, .. } = self.chains[self.chain_of[function as usize] as usize];
        let position = self.position[function as usize];
        let after = end - position - self.spaces[function as usize] as i64;
        ((position - start) as u64, after as u64)
    }

    /// Moves the functions of `from` to the line of `into`.
    fn lay(&mut self, into: u32, from: u32, way: Way) {
        let Chain { members, start, end, edges } = std::mem::take(&mut self.chains[from as usize]);
        let length = end - start;
        let row = &mut self.chains[into as usize];
        let new_start = match way {
            Way::After | Way::AfterTurned => {
                row.end += length;
                row.end - length
            }
            Way::Before | Way::BeforeTurned => {
                row.start -= length;
                row.start
            }
        };
        for &member in &members {
            let position = &mut self.position[member as usize];
            *position = new_start
                + match way {
                    Way::After | Way::Before => *position - start,
                    Way::AfterTurned | Way::BeforeTurned => {
                        end - *position - self.spaces[member as usize] as i64
                    }
                };
            self.chain_of[member as usize] = into;
        }
        row.members.extend(members);
        self.chains[from as usize].edges = edges;
    }

    /// Makes the edges of `from` edges of `into`; two edges to the same chain become one.
    fn hand_over_edges(&mut self, into: u32, from: u32) {
        for index in std::mem::take(&mut self.chains[from as usize].edges) {
            let (a, b) = self.edges[index as usize].chains;
            let other = match (a == from, b == from) {
                (true, false) => b,
                (false, true) => a,
                // Dead, or handed over to another chain before.
                _ => continue,
            };
            self.edge_between.remove(&sorted(from, other));
            let Some(&known) = self.edge_between.get(&sorted(into, other)) else {
                self.edges[index as usize].chains = (into, other);
                self.edge_between.insert(sorted(into, other), index);
                self.chains[into as usize].edges.push(index);
                continue;
            };
            let Edge { weight, mut pairs, .. } = std::mem::take(&mut self.edges[index as usize]);
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

    /// Puts the members of each chain in their order, the way round in which more calls go forward; of equal
    /// ways the one that begins with the lower index.
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

/// The arcs without their direction, in the order in which they first appear.
fn pairs(graph: &CallGraph) -> Vec<Pair> {
    let mut known: HashMap<(u32, u32), usize> = HashMap::with_capacity(graph.arcs().len());
    let mut pairs: Vec<Pair> = Vec::new();
    for arc in graph.arcs().iter().filter(|arc| !arc.is_recursive()) {
        let weight = arc.weight + arc.temporal_weight;
        if weight > 0 {
            let functions = sorted(arc.caller as u32, arc.callee as u32);
            let index = *known.entry(functions).or_insert(pairs.len());
            match pairs.get_mut(index) {
                Some(pair) => pair.weight += weight,
                None => pairs.push(Pair { functions, weight }),
            }
        }
    }
    pairs
}

fn sorted(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}
