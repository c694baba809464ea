//! Synthetic call graphs that resemble a kernel's: most functions are cold, a few helpers are
//! called from everywhere, and weights and sizes span several orders of magnitude. A seed gives the
//! same graph on every machine.

use kerntune_layout::order::{CallGraph, GraphArc, GraphFunction};
use kerntune_stats::SplitMix64;

/// Returns a number from 1 to about `2^bits`, with all powers of two about equally likely.
fn heavy_tailed(random: &mut SplitMix64, bits: u64) -> u64 {
    let octave = 1_u64 << random.below(bits);
    octave + random.below(octave)
}

/// Builds `functions` functions; up to `arcs` distinct arcs connect the hot ones (one in `1 /
/// hot_share`). A function's weight is the number of calls to it, as in lld. Arcs are sorted by
/// caller and callee.
pub fn kernel_like(seed: u64, functions: usize, arcs: usize, hot_share: f64) -> CallGraph {
    let mut random = SplitMix64(seed);
    let hot = ((functions as f64 * hot_share) as u64).max(2);
    // Hot functions are scattered.
    let mut places: Vec<usize> = (0..functions).collect();
    for i in 0..functions {
        let j = i + random.below((functions - i) as u64) as usize;
        places.swap(i, j);
    }
    let mut calls: Vec<(usize, usize, u64)> = (0..arcs)
        .map(|_| {
            let caller = random.below(hot);
            // Half of the calls go to neighbors in the same subsystem, the rest mostly to few helpers.
            let callee = match random.below(2) {
                0 => (caller + 1 + random.below(16)) % hot,
                _ => heavy_tailed(&mut random, 63) % hot.min(heavy_tailed(&mut random, 16)).max(1),
            };
            (places[caller as usize], places[callee as usize], heavy_tailed(&mut random, 20))
        })
        .collect();
    // No recursion: lld counts it in only one of its algorithms.
    calls.retain(|(caller, callee, _)| caller != callee);
    calls.sort_unstable();
    calls.dedup_by_key(|(caller, callee, _)| (*caller, *callee));
    let mut weights = vec![0; functions];
    for (_, callee, calls) in &calls {
        weights[*callee] += calls;
    }
    let sized = weights.iter().map(|&weight| {
        let size = 8 + heavy_tailed(&mut random, 11) + random.below(97);
        GraphFunction::new(size, weight)
    });
    let functions = sized.collect();
    let arcs =
        calls.into_iter().map(|(caller, callee, calls)| GraphArc::new(caller, callee, calls)).collect();
    CallGraph::new(functions, arcs).expect("a graph")
}
