//! Functions that another kernel has under another name.

use super::blocks::CodeGraph;
use super::rebuilt::BothKernels;
use kerntune_profile::source_name;
use std::collections::{BTreeMap, BTreeSet};

/// Least share of both functions' instructions in blocks that they have in common.
const MIN_COMMON: f64 = 0.5;
/// Fewest instructions of a block that tells functions apart, without a call.
const MIN_CONTENT: usize = 4;
/// Fewest such instructions of a function.
const MIN_INSTRUCTIONS: u64 = 12;
/// Most functions with one block in common that are compared.
const MAX_ALIKE: usize = 16;
/// Strength of the compared hashes: mnemonics in order, with the names of called functions.
const STRENGTH: usize = 3;

/// Finds counterparts for functions without a namesake, among those that have none in the recorded
/// kernel.
pub(super) fn renamed(kernels: &mut BothKernels, gone: &[usize]) -> Vec<(usize, usize)> {
    if gone.is_empty() {
        return Vec::new();
    }
    let mut weights: BTreeMap<usize, u64> = BTreeMap::new();
    let mut having: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for (function, at) in kernels.to.symbols().functions().iter().zip(0usize..) {
        let (name, cold) = source_name(&function.name);
        if cold || !kernels.from.namesakes(name, false).is_empty() {
            continue;
        }
        let Some(graph) = kernels.to.graph(at, &[]) else { continue };
        for (hash, weight) in features(&graph) {
            having.entry(hash).or_default().insert(at);
            *weights.entry(at).or_default() += weight;
        }
    }
    let mut found: Vec<(u64, usize, usize)> = Vec::new();
    for &at in gone {
        let Some(counted) = kernels.counted(at) else { continue };
        let features = features(&counted.graph);
        let all: u64 = features.values().sum();
        let mut common: BTreeMap<usize, u64> = BTreeMap::new();
        for (hash, weight) in &features {
            let alike = having.get(hash).filter(|alike| alike.len() <= MAX_ALIKE);
            for other in alike.into_iter().flatten() {
                *common.entry(*other).or_default() += weight;
            }
        }
        for (other, common) in common {
            let both = all + weights.get(&other).copied().unwrap_or_default();
            let share = 2.0 * common as f64 / both.max(1) as f64;
            if common >= MIN_INSTRUCTIONS && share >= MIN_COMMON {
                found.push(((share * 1e6) as u64, at, other));
            }
        }
    }
    found.sort_unstable_by_key(|(share, at, other)| (std::cmp::Reverse(*share), *at, *other));
    let (mut used, mut here) = (BTreeSet::new(), BTreeSet::new());
    found.retain(|(_, at, other)| !used.contains(other) && here.insert(*at) && used.insert(*other));
    found.into_iter().map(|(_, at, other)| (at, other)).collect()
}

/// Returns the blocks that tell a function apart, with their instructions.
fn features(graph: &CodeGraph) -> BTreeMap<u64, u64> {
    let telling = graph.blocks.iter().filter(|block| block.content >= MIN_CONTENT || block.has_call);
    telling.filter_map(|block| Some((block.hashes[STRENGTH]?, block.content as u64))).collect()
}
