//! Cache-directed sort.
//!
//! The rules are those of LLVM's `codelayout::computeCacheDirectedLayout`
//! (`llvm/lib/Transforms/Utils/CodeLayout.cpp`, since LLVM 17, with the limit on chains of LLVM
//! 18), used by `ld.lld --call-graph-profile-sort=cdsort`. It evolved from hfsort+. For the merging
//! of chains see Andy Newell and Sergey Pupyrev, "Improved Basic Block Reordering", IEEE
//! Transactions on Computers, 2020.

use super::cache_model::{miss_probability, worth_of_call};
use super::density::{densest_first, Density};
use super::graph::CallGraph;
use super::permutation::PlacementOrder;
use super::queue::KeyedQueue;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Parameters of [`cdsort`] and of its objective; the defaults are LLVM's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CdsortConfig {
    /// Number of lines in the modeled cache (`cds-cache-entries`, 16).
    pub cache_entries: u64,
    /// Line size of the modeled cache in bytes (`cds-cache-size`, 2048).
    pub cache_line_bytes: u64,
    /// Largest number of functions in a merged chain (`cds-max-chain-size`, 128).
    pub max_chain_functions: usize,
    /// Exponent of the distance: a call over `d` bytes is worth `d` to the minus this
    /// (`cds-distance-power`, 0.25).
    pub distance_power: f64,
    /// Worth of a cache hit in the sum with calls (`cds-frequency-scale`, 0.25).
    pub frequency_scale: f64,
}

impl Default for CdsortConfig {
    fn default() -> Self {
        Self {
            cache_entries: 16,
            cache_line_bytes: 2048,
            max_chain_functions: 128,
            distance_power: 0.25,
            frequency_scale: 0.25,
        }
    }
}

/// Smallest gain that counts. Gains that differ by less are equal.
const EPSILON: f64 = 1e-8;

/// Orders functions by cache-directed sort.
///
/// Chains, at first single functions, are merged end to end in the better of the two orders, the
/// largest gain first, as long as there is a gain. The gain is the increase of the objective
/// divided by the bytes of the smaller chain. The remaining chains are sorted by density.
///
/// The objective, maximized greedily, is the worth of calls by their distance plus
/// `frequency_scale` times the hits in a modeled cache:
/// [`Placement::cache_locality`](super::Placement::cache_locality). It adds function weights and
/// arc weights, so both should have the same unit: entries and calls. With instructions as function
/// weights, the cache gains influence.
pub fn cdsort(graph: &CallGraph, config: &CdsortConfig) -> PlacementOrder {
    let mut sorter = CdsortState::new(graph, config);
    sorter.merge_all();
    let hot = graph.hot();
    let chains = sorter.chains.into_iter().filter(|chain| hot.get(chain.first()).is_some_and(|&hot| hot));
    let chains = chains.map(|chain| (chain.density, chain.members)).collect();
    PlacementOrder::of_chains(densest_first(chains), hot.len())
}

/// Executed call between different functions.
#[derive(Debug, Clone, Copy)]
struct SortedCall {
    caller: u32,
    callee: u32,
    weight: u64,
    call_offset: u64,
    target_offset: u64,
}

/// Calls between two chains, in both directions.
#[derive(Debug, Default)]
struct ChainCalls {
    /// Chain that contains the first call's caller.
    source: u32,
    target: u32,
    /// Indices of the calls; empty if the edge is dead.
    calls: Vec<u32>,
    order: MergeDirection,
}

/// Order of the two chains of an edge after their merge.
#[derive(Debug, Clone, Copy, Default)]
enum MergeDirection {
    #[default]
    SourceFirst,
    TargetFirst,
}

/// Sequence of functions.
#[derive(Debug)]
struct SortChain {
    /// Functions of the chain; empty if it was merged into another.
    members: Vec<u32>,
    density: Density,
    /// Weight of the modeled cache misses.
    misses: f64,
    /// Edges of the chain; some may be dead or lead back to it.
    edges: Vec<u32>,
}

impl SortChain {
    /// Returns the index of the first function, which breaks ties; larger than all indices for an
    /// empty chain.
    fn first(&self) -> usize {
        self.members.first().map_or(usize::MAX, |&first| first as usize)
    }
}

/// Bits of a positive gain, which sort like the gain. Ties go to the lower source, then the lower
/// target.
type GainKey = (u64, Reverse<u32>, Reverse<u32>);

/// State of the algorithm.
struct CdsortState<'a> {
    config: &'a CdsortConfig,
    calls: Vec<SortedCall>,
    edges: Vec<ChainCalls>,
    queue: KeyedQueue<GainKey>,
    chains: Vec<SortChain>,
    chain_of: Vec<u32>,
    /// Byte offset of each function in its chain.
    offset: Vec<u64>,
    /// Weight of all functions.
    total_weight: u64,
    /// Worth of a call between separate chains: as if its distance were the size of all functions
    /// that ran.
    worth_apart: f64,
    /// Scratch: edge from the current chain to each other chain.
    edge_to: Vec<Option<u32>>,
}

impl<'a> CdsortState<'a> {
    fn new(graph: &CallGraph, config: &'a CdsortConfig) -> Self {
        let spaces = graph.spaces();
        let functions = graph.functions();
        let total_weight = functions.iter().map(|function| function.weight).sum();
        let ran = functions.iter().zip(&spaces).filter(|(function, _)| function.weight > 0);
        let total_bytes = ran.map(|(_, space)| space).sum();

        let calls = calls(graph);
        let (mut incoming, mut outgoing) = (vec![0; spaces.len()], vec![0; spaces.len()]);
        for call in &calls {
            outgoing[call.caller as usize] += call.weight;
            incoming[call.callee as usize] += call.weight;
        }
        let alone = |function: u32| {
            let index = function as usize;
            let weight = functions[index].weight.max(incoming[index]).max(outgoing[index]);
            let density = Density { weight, bytes: spaces[index] };
            let misses = misses(density, total_weight, config);
            SortChain { members: vec![function], density, misses, edges: Vec::new() }
        };
        let mut chains: Vec<SortChain> = (0..spaces.len() as u32).map(alone).collect();
        let edges = edges(&calls);
        for (index, edge) in (0..).zip(&edges) {
            chains[edge.source as usize].edges.push(index);
            chains[edge.target as usize].edges.push(index);
        }
        Self {
            config,
            calls,
            queue: KeyedQueue::new(edges.len()),
            edges,
            chains,
            chain_of: (0..spaces.len() as u32).collect(),
            offset: vec![0; spaces.len()],
            total_weight,
            worth_apart: worth_of_call(total_bytes, config.distance_power),
            edge_to: vec![None; spaces.len()],
        }
    }

    fn merge_all(&mut self) {
        for edge in 0..self.edges.len() as u32 {
            self.weigh(edge);
        }
        while let Some((edge, _)) = self.queue.pop() {
            let ChainCalls { source, target, order, .. } = self.edges[edge as usize];
            self.merge_edges(source, target);
            self.merge_members(source, target, order);
            let length = self.chains[source as usize].members.len();
            for edge in self.chains[source as usize].edges.clone() {
                let ChainCalls { source: a, target: b, .. } = self.edges[edge as usize];
                let other = if a == source { b } else { a };
                if length + self.chains[other as usize].members.len() > self.config.max_chain_functions {
                    self.queue.remove(edge);
                } else {
                    self.weigh(edge);
                }
            }
        }
    }

    /// Computes the gain of an edge's merge and adds the edge to the queue, or removes it if there
    /// is no gain.
    fn weigh(&mut self, index: u32) {
        let edge = &self.edges[index as usize];
        let (source, target) = (&self.chains[edge.source as usize], &self.chains[edge.target as usize]);
        let together = source.density.with(target.density);
        let fewer_misses = source.misses + target.misses - misses(together, self.total_weight, self.config);
        let (mut source_first, mut target_first, mut apart) = (0.0, 0.0, 0.0);
        for &call in &edge.calls {
            let call = &self.calls[call as usize];
            let from = self.offset[call.caller as usize] + call.call_offset;
            let to = self.offset[call.callee as usize] + call.target_offset;
            let (in_source, in_target) = match self.chain_of[call.caller as usize] == edge.source {
                true => (from, to),
                false => (to, from),
            };
            let weight = call.weight as f64;
            let worth = |a: u64, b: u64| weight * worth_of_call(a.abs_diff(b), self.config.distance_power);
            source_first += worth(in_source, source.density.bytes + in_target);
            target_first += worth(in_source + target.density.bytes, in_target);
            apart += weight * self.worth_apart;
        }
        let gain = |near: f64| {
            let gain = near - apart + self.config.frequency_scale * fewer_misses;
            // Prefer small chains, so that they grow around the code they belong to.
            if gain >= 0.0 {
                gain / source.density.bytes.min(target.density.bytes) as f64
            } else {
                gain
            }
        };
        let (source_first, target_first) = (gain(source_first), gain(target_first));
        // Of two equal orders take that of the input.
        let (gain, order) = match (source_first - target_first).abs() < EPSILON {
            true if source.first() > target.first() => (target_first, MergeDirection::TargetFirst),
            false if target_first > source_first => (target_first, MergeDirection::TargetFirst),
            _ => (source_first, MergeDirection::SourceFirst),
        };
        let firsts = (Reverse(source.first() as u32), Reverse(target.first() as u32));
        self.edges[index as usize].order = order;
        match gain > EPSILON {
            true => self.queue.set(index, (gain.to_bits(), firsts.0, firsts.1)),
            false => self.queue.remove(index),
        }
    }

    /// Adds the functions of `from` before or after those of `into`.
    fn merge_members(&mut self, into: u32, from: u32, order: MergeDirection) {
        let mut moved = std::mem::take(&mut self.chains[from as usize].members);
        let added = self.chains[from as usize].density;
        let chain = &mut self.chains[into as usize];
        for &function in &moved {
            self.chain_of[function as usize] = into;
        }
        let (later, shift) = match order {
            MergeDirection::SourceFirst => (&moved, chain.density.bytes),
            MergeDirection::TargetFirst => (&chain.members, added.bytes),
        };
        for &function in later {
            self.offset[function as usize] += shift;
        }
        if let MergeDirection::TargetFirst = order {
            std::mem::swap(&mut chain.members, &mut moved);
        }
        chain.members.extend(moved);
        chain.density = chain.density.with(added);
        chain.misses = misses(chain.density, self.total_weight, self.config);
    }

    /// Moves the edges of `from` to `into`. Parallel edges are joined, and edges between the two
    /// chains are dropped.
    fn merge_edges(&mut self, into: u32, from: u32) {
        let mut kept = std::mem::take(&mut self.chains[into as usize].edges);
        kept.retain(|&edge| {
            let ChainCalls { source, target, calls, .. } = &self.edges[edge as usize];
            let other = if *source == into { *target } else { *source };
            let lives = !calls.is_empty() && other != from;
            if lives {
                self.edge_to[other as usize] = Some(edge);
            }
            lives
        });
        for index in std::mem::take(&mut self.chains[from as usize].edges) {
            let edge = &mut self.edges[index as usize];
            let other = if edge.source == from { edge.target } else { edge.source };
            if edge.calls.is_empty() {
                continue;
            }
            if other == into {
                edge.calls.clear();
                self.queue.remove(index);
            } else if let Some(known) = self.edge_to[other as usize] {
                let calls = std::mem::take(&mut edge.calls);
                self.edges[known as usize].calls.extend(calls);
                self.queue.remove(index);
            } else {
                *(if edge.source == from { &mut edge.source } else { &mut edge.target }) = into;
                kept.push(index);
            }
        }
        for &edge in &kept {
            let ChainCalls { source, target, .. } = self.edges[edge as usize];
            self.edge_to[if source == into { target } else { source } as usize] = None;
        }
        self.chains[into as usize].edges = kept;
    }
}

/// Returns the weight of a chain's misses in the modeled cache, as if its weight were spread evenly
/// over its lines.
fn misses(chain: Density, total: u64, config: &CdsortConfig) -> f64 {
    let line_weight = chain.ratio() * config.cache_line_bytes as f64;
    chain.weight as f64 * miss_probability(line_weight, total, config.cache_entries)
}

/// Returns the calls whose distance depends on the order.
fn calls(graph: &CallGraph) -> Vec<SortedCall> {
    let calls = graph.arcs().iter().filter(|arc| arc.weight > 0 && !arc.is_recursive());
    calls
        .map(|arc| SortedCall {
            caller: arc.caller as u32,
            callee: arc.callee as u32,
            weight: arc.weight,
            call_offset: graph.call_offset(arc),
            target_offset: arc.target_offset,
        })
        .collect()
}

/// Creates one edge for each pair of functions with calls between them, sorted by caller, as LLVM
/// does.
fn edges(calls: &[SortedCall]) -> Vec<ChainCalls> {
    let mut by_caller: Vec<u32> = (0..calls.len() as u32).collect();
    by_caller.sort_by_key(|&call| calls[call as usize].caller);
    let mut known: HashMap<(u32, u32), usize> = HashMap::with_capacity(calls.len());
    let mut edges: Vec<ChainCalls> = Vec::new();
    for index in by_caller {
        let SortedCall { caller, callee, .. } = calls[index as usize];
        let edge = *known.entry((caller.min(callee), caller.max(callee))).or_insert(edges.len());
        match edges.get_mut(edge) {
            Some(edge) => edge.calls.push(index),
            None => edges.push(ChainCalls {
                source: caller,
                target: callee,
                calls: vec![index],
                ..ChainCalls::default()
            }),
        }
    }
    edges
}
