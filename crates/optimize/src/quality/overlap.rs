//! Overlap of the hot functions of two halves of a training.
//!
//! Functions that are hot in only one half are hot by chance, and tuning for them is useless. The
//! hot set of a half at 90 % is the smallest set of functions with 90 % of its instructions
//! (functions of one name in the source are one; of equally hot ones the first by name). The
//! overlap is the share of both hot sets' weight that is in functions of both: with `w₁`, `w₂` a
//! function's share of its half's instructions and `H₁`, `H₂` the hot sets,
//!
//! ```text
//! (w₁(H₁∩H₂) + w₂(H₁∩H₂)) / (w₁(H₁) + w₂(H₂))
//! ```
//!
//! which is 1 for equal sets and 0 for disjoint ones. A second figure is `Σ min(w₁, w₂)` over all
//! functions, which also compares how hot they are.

use kerntune_profile::{source_name, Profile, Symbol, Tables};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Shares of the instructions for which hot sets are compared.
const HOT_CUTS: [f64; 2] = [0.90, 0.99];

/// Instructions of each function, by its name in the source.
pub(super) type FunctionWeights = BTreeMap<String, u64>;

/// Hot sets of two halves at one cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HotSets {
    /// Least share of a half's instructions in its hot set.
    pub cut: f64,
    /// Functions of each half's hot set.
    pub functions: [u64; 2],
    /// Functions in both hot sets.
    pub common: u64,
    /// Overlap, 0 to 1.
    pub overlap: f64,
}

/// Overlap of two halves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HotOverlap {
    /// Description of the halves.
    pub halves: String,
    /// Hot sets at 90 % and at 99 %.
    pub hot: [HotSets; 2],
    /// Common weight `Σ min(w₁, w₂)`, 0 to 1.
    pub common_weight: f64,
    /// The same of instructions instead of functions; `None` unless both halves are of one kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_code: Option<f64>,
}

/// Reason for which a recording has no halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoHalvesReason {
    /// Its counts are not divided by region.
    NoFunctions,
    /// Each region occurs only once.
    Once,
}

impl fmt::Display for NoHalvesReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoHalvesReason::NoFunctions => "its counts are of all regions together",
            NoHalvesReason::Once => "no region of it occurs twice",
        })
    }
}

impl HotOverlap {
    /// Computes the overlap of two halves, described by `halves`; `None` if one of them is empty.
    pub(super) fn of(halves: String, weights: [&FunctionWeights; 2]) -> Option<Self> {
        let shares = [shares(weights[0])?, shares(weights[1])?];
        let share = |half: usize, name: &str| shares[half].get(name).copied().unwrap_or_default();
        let hot = HOT_CUTS.map(|cut| {
            let sets = [hot_set(&shares[0], cut), hot_set(&shares[1], cut)];
            let common: BTreeSet<&str> = sets[0].intersection(&sets[1]).copied().collect();
            let weight =
                |half: usize, set: &BTreeSet<&str>| -> f64 { set.iter().map(|name| share(half, name)).sum() };
            let all = weight(0, &sets[0]) + weight(1, &sets[1]);
            HotSets {
                cut,
                functions: [sets[0].len() as u64, sets[1].len() as u64],
                common: common.len() as u64,
                overlap: (weight(0, &common) + weight(1, &common)) / all,
            }
        });
        let common_weight = shares[0].iter().map(|(name, one)| one.min(share(1, name))).sum();
        Some(Self { halves, hot, common_weight, common_code: None })
    }

    /// Computes the overlap of two recordings, described by `halves`; `None` if one of them is empty.
    pub(super) fn of_recordings(halves: String, [one, two]: [&Profile; 2]) -> Option<Self> {
        let overlap = Self::of(halves, [&by_blocks(&one.tables), &by_blocks(&two.tables)])?;
        let is_one_kernel = one.manifest.kernel.id == two.manifest.kernel.id;
        let common_code = is_one_kernel.then(|| common_code([&one.tables, &two.tables]));
        Some(Self { common_code, ..overlap })
    }
}

/// Returns `Σ min(w₁, w₂)` over all bytes of code, with their shares of the executed bytes.
fn common_code(halves: [&Tables; 2]) -> f64 {
    let mut changes: BTreeMap<u64, [i128; 2]> = BTreeMap::new();
    let mut sums = [0u128; 2];
    for (half, tables) in halves.iter().enumerate() {
        for block in tables.blocks.iter().filter(|block| block.count > 0) {
            let (start, count) = (block.start.get(), i128::from(block.count));
            changes.entry(start).or_default()[half] += count;
            changes.entry(start.saturating_add(block.bytes)).or_default()[half] -= count;
            sums[half] += u128::from(block.count) * u128::from(block.bytes);
        }
    }
    let (mut counts, mut common) = ([0i128; 2], 0.0);
    let ends = changes.keys().skip(1).copied().collect::<Vec<_>>();
    for ((start, change), end) in changes.into_iter().zip(ends) {
        counts = [counts[0] + change[0], counts[1] + change[1]];
        let share = |half: usize| counts[half] as f64 / sums[half].max(1) as f64;
        common += share(0).min(share(1)) * (end - start) as f64;
    }
    common
}

/// Returns each function's share; `None` if the sum is 0.
fn shares(weights: &FunctionWeights) -> Option<BTreeMap<&str, f64>> {
    let sum: u128 = weights.values().map(|weight| u128::from(*weight)).sum();
    let share = |weight: u64| weight as f64 / sum as f64;
    (sum > 0).then(|| weights.iter().map(|(name, weight)| (name.as_str(), share(*weight))).collect())
}

fn hot_set<'a>(shares: &BTreeMap<&'a str, f64>, cut: f64) -> BTreeSet<&'a str> {
    let mut hottest: Vec<(&str, f64)> = shares.iter().map(|(name, share)| (*name, *share)).collect();
    hottest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut sum = 0.0;
    let enough = |(_, share): &(&str, f64)| {
        let wanted = sum < cut;
        sum += share;
        wanted
    };
    hottest.into_iter().take_while(enough).map(|(name, _)| name).collect()
}

/// Returns the instructions of each function of a recording, by its blocks.
fn by_blocks(tables: &Tables) -> FunctionWeights {
    let mut functions: Vec<&Symbol> =
        tables.symbols.iter().filter(|symbol| symbol.module.is_none() && symbol.size > 0).collect();
    functions.sort_by_key(|symbol| symbol.address);
    let mut weights = FunctionWeights::new();
    for block in &tables.blocks {
        let after = functions.partition_point(|symbol| symbol.address <= block.start);
        let Some(function) = after.checked_sub(1).map(|at| functions[at]) else { continue };
        if block.start.get() < function.address.get().saturating_add(function.size) {
            add(&mut weights, function, block.instructions.get().saturating_mul(block.count));
        }
    }
    weights
}

/// Divides a recording with functions into two halves: of each region that occurs more than once,
/// every other occurrence.
pub(super) fn halves(tables: &Tables) -> Result<[FunctionWeights; 2], NoHalvesReason> {
    if tables.functions.is_empty() {
        return Err(NoHalvesReason::NoFunctions);
    }
    // A function row of a nested region belongs to that region, whose occurrences are counted
    // separately.
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let half: Vec<usize> = (tables.regions.iter())
        .map(|region| {
            let number = seen.entry(&region.name).or_default();
            *number += 1;
            (*number - 1) % 2
        })
        .collect();
    let mut weights = [FunctionWeights::new(), FunctionWeights::new()];
    for row in &tables.functions {
        let Some(region) = tables.regions.get(row.region as usize) else { continue };
        let Some(function) = tables.symbols.get(row.function.0 as usize) else { continue };
        // A region that occurs once would be in one half only.
        if seen.get(region.name.as_str()).is_some_and(|times| *times > 1) && function.module.is_none() {
            add(&mut weights[half[row.region as usize]], function, row.self_ticks.get());
        }
    }
    match weights.iter().any(FunctionWeights::is_empty) {
        true => Err(NoHalvesReason::Once),
        false => Ok(weights),
    }
}

fn add(weights: &mut FunctionWeights, function: &Symbol, instructions: u64) {
    let sum = weights.entry(source_name(&function.name).0.to_string()).or_default();
    *sum = sum.saturating_add(instructions);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(list: &[(&str, u64)]) -> FunctionWeights {
        list.iter().map(|(name, weight)| (name.to_string(), *weight)).collect()
    }

    #[test]
    fn halves_overlap_by_the_weight_of_what_is_hot_in_both() {
        let one = weights(&[("a", 50), ("b", 45), ("c", 5)]);
        let same = HotOverlap::of("same".into(), [&one, &one]).unwrap();
        assert_eq!((same.hot[0].functions, same.hot[0].common, same.hot[0].overlap), ([2, 2], 2, 1.0));
        assert_eq!((same.hot[1].functions, same.common_weight), ([3, 3], 1.0));

        // Of 0.95 and 0.95 only `a` is in both: 0.5 and 0.6.
        let other = weights(&[("a", 60), ("d", 35), ("c", 5)]);
        let half = HotOverlap::of("other".into(), [&one, &other]).unwrap();
        assert_eq!((half.hot[0].functions, half.hot[0].common), ([2, 2], 1));
        assert!((half.hot[0].overlap - 1.1 / 1.9).abs() < 1e-9, "{half:?}");
        assert!((half.common_weight - 0.55).abs() < 1e-9, "{half:?}");

        let apart = HotOverlap::of("apart".into(), [&one, &weights(&[("x", 1)])]).unwrap();
        assert_eq!((apart.hot[0].overlap, apart.common_weight), (0.0, 0.0));
        assert_eq!(HotOverlap::of("empty".into(), [&one, &FunctionWeights::new()]), None);
    }
}
