//! Call-chain clustering (C3), the algorithm of hfsort.
//!
//! Guilherme Ottoni and Bertrand Maher, "Optimizing Function Placement for Large-Scale Data-Center
//! Applications", CGO 2017. Thresholds and processing order are those of hfsort and of `ld.lld
//! --call-graph-profile-sort=hfsort`.

use super::density::{densest_first, Density};
use super::graph::CallGraph;
use super::permutation::PlacementOrder;

/// Thresholds of [`c3`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct C3Config {
    /// Largest size of a cluster, in bytes: functions of a larger cluster no longer share a page.
    /// hfsort and lld use 1 MiB.
    pub max_cluster_bytes: u64,
    /// Largest factor by which a merge may reduce the density of the caller's cluster; 8 in hfsort
    /// and lld (`MAX_DENSITY_DEGRADATION`).
    pub max_density_degradation: u32,
    /// The most likely caller must make more than one in this many calls; 10 in hfsort and lld.
    pub min_call_share: u32,
}

impl Default for C3Config {
    fn default() -> Self {
        Self { max_cluster_bytes: 1 << 20, max_density_degradation: 8, min_call_share: 10 }
    }
}

/// Orders functions by call-chain clustering.
///
/// Functions are processed by decreasing density (weight per byte). The cluster that a function
/// leads is appended to the cluster of its most likely caller, so that a callee follows its caller,
/// unless a threshold of `config` forbids it. The remaining clusters are sorted by density.
///
/// The intention is that caller and callee share a page, which is most likely if the callee
/// directly follows its caller. The algorithm does not backtrack and has no explicit objective;
/// [`Placement::expected_same_page_weight`](super::Placement::expected_same_page_weight) measures
/// the intention.
pub fn c3(graph: &CallGraph, config: &C3Config) -> PlacementOrder {
    let hot = graph.hot();
    let mut clusters = ClusterLists::new(graph, &graph.spaces());
    let callers = likely_callers(graph);
    let mut by_density: Vec<u32> = (0..hot.len() as u32).filter(|&function| hot[function as usize]).collect();
    // The sort is stable: among equals the lower index comes first.
    by_density.sort_by(|&a, &b| clusters.density[b as usize].compare(clusters.density[a as usize]));

    for &function in &by_density {
        // The function leads its cluster: only processed functions have been appended to others.
        let Some(LikelyCaller { caller, calls, all_calls }) = callers[function as usize] else { continue };
        if u128::from(calls) * u128::from(config.min_call_share) <= u128::from(all_calls) {
            continue;
        }
        let into = clusters.leader(caller);
        if into == function {
            continue;
        }
        let before = clusters.density[into as usize];
        let after = before.with(clusters.density[function as usize]);
        if after.bytes <= config.max_cluster_bytes && !is_diluted(before, after, config) {
            clusters.append(into, function);
        }
    }
    let left = by_density.into_iter().filter(|&function| clusters.leads[function as usize] == function);
    let left = left.map(|leader| (clusters.density[leader as usize], clusters.members(leader))).collect();
    PlacementOrder::of_chains(densest_first(left), hot.len())
}

/// Returns true if the merge would dilute the caller's cluster too much.
fn is_diluted(before: Density, after: Density, config: &C3Config) -> bool {
    let min = u128::from(before.weight) * u128::from(after.bytes);
    // A saturated product exceeds any value of `min`.
    let kept = (u128::from(after.weight) * u128::from(before.bytes))
        .saturating_mul(config.max_density_degradation.into());
    kept < min
}

/// Most likely caller of a function.
#[derive(Debug, Clone, Copy)]
struct LikelyCaller {
    caller: u32,
    /// Calls made by this caller.
    calls: u64,
    /// Calls by all callers, including recursive ones.
    all_calls: u64,
}

/// Finds the most likely caller of each function other than itself. Among equals the lowest index
/// wins.
fn likely_callers(graph: &CallGraph) -> Vec<Option<LikelyCaller>> {
    let mut ends: Vec<(u32, u32, u64)> = graph
        .arcs()
        .iter()
        .filter(|arc| arc.weight > 0)
        .map(|arc| (arc.callee as u32, arc.caller as u32, arc.weight))
        .collect();
    ends.sort_unstable();
    let mut likely: Vec<Option<LikelyCaller>> = vec![None; graph.functions().len()];
    for of_callee in ends.chunk_by(|a, b| a.0 == b.0) {
        let callee = of_callee[0].0;
        let all_calls = of_callee.iter().map(|(.., calls)| calls).sum();
        for of_pair in of_callee.chunk_by(|a, b| a.1 == b.1) {
            let caller = of_pair[0].1;
            let calls = of_pair.iter().map(|(.., calls)| calls).sum();
            let best = &mut likely[callee as usize];
            if caller != callee && best.is_none_or(|best| calls > best.calls) {
                *best = Some(LikelyCaller { caller, calls, all_calls });
            }
        }
    }
    likely
}

/// Clusters as linked lists of functions, each identified by its first function.
struct ClusterLists {
    /// Link towards the cluster's first function, with path compression (union-find).
    leads: Vec<u32>,
    /// Next function of the cluster; the function itself if it is the last.
    next: Vec<u32>,
    /// Last function of each leader's cluster.
    last: Vec<u32>,
    /// Weight and size of each leader's cluster.
    density: Vec<Density>,
}

impl ClusterLists {
    /// Creates one cluster per function.
    fn new(graph: &CallGraph, spaces: &[u64]) -> Self {
        let alone: Vec<u32> = (0..spaces.len() as u32).collect();
        let density = graph.functions().iter().zip(spaces);
        let density = density.map(|(function, &bytes)| Density { weight: function.weight, bytes }).collect();
        Self { leads: alone.clone(), next: alone.clone(), last: alone, density }
    }

    fn leader(&mut self, mut function: u32) -> u32 {
        while self.leads[function as usize] != function {
            let up = self.leads[function as usize];
            self.leads[function as usize] = self.leads[up as usize];
            function = up;
        }
        function
    }

    fn append(&mut self, into: u32, from: u32) {
        self.leads[from as usize] = into;
        self.next[self.last[into as usize] as usize] = from;
        self.last[into as usize] = self.last[from as usize];
        self.density[into as usize] = self.density[into as usize].with(self.density[from as usize]);
    }

    fn members(&self, leader: u32) -> Vec<u32> {
        let following = |&function: &u32| {
            let next = self.next[function as usize];
            (next != function).then_some(next)
        };
        std::iter::successors(Some(leader), following).collect()
    }
}
