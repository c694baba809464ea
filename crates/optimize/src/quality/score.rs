//! Score of a transfer: how the counts of the executed instructions were found.

use super::matching::FunctionLikeness;
use super::pairs::{FunctionPairs, PairedCode};
use super::recorded::scaled;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Executed instructions of the recorded kernel by how their counts reached another one. The sum is
/// all that ran in its functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TransferScore {
    /// In blocks with the same instructions, except for addresses, offsets and constants.
    pub exact: u64,
    /// In blocks that match by their operations, calls, or place.
    pub loose: u64,
    /// In blocks without a counterpart, where a function's flow gave counts to as many instructions.
    pub inferred: u64,
    /// In blocks whose counts are lost.
    pub lost: u64,
}

impl TransferScore {
    /// Returns the instructions whose counts are not lost.
    pub fn carried(&self) -> u64 {
        self.exact.saturating_add(self.loose).saturating_add(self.inferred)
    }
}

/// Counts of one recorded function.
#[derive(Default)]
struct FoundCounts {
    exact: u64,
    loose: u64,
    inferred: u64,
}

impl FoundCounts {
    fn left_of(&self, all: u64) -> u64 {
        all.saturating_sub(self.exact).saturating_sub(self.loose).saturating_sub(self.inferred)
    }
}

/// Computes the score for functions with their executed instructions. Returns also the functions
/// that lost counts, with their lost instructions.
pub(super) fn score(
    executed: &BTreeMap<usize, u64>,
    pairs: &FunctionPairs,
) -> (TransferScore, Vec<(usize, u64)>) {
    let mut found: BTreeMap<usize, FoundCounts> = BTreeMap::new();
    for (&at, &instructions) in executed {
        let Some(pair) = pairs.of_function(at) else { continue };
        let PairedCode::Whole(whole) = &pair.code else { continue };
        let found = found.entry(at).or_default();
        match whole.likeness {
            FunctionLikeness::Instructions => found.exact = instructions,
            _ => found.loose = instructions,
        }
    }
    // Exact matches first: a function's instructions count once.
    for exact in [true, false] {
        for part in pairs.rebuilt().flat_map(|function| &function.parts) {
            let Some(&instructions) = executed.get(&part.function) else { continue };
            // The graph's sum may differ from the executed one where the kernel patched its code.
            let amount = scaled(
                if exact { part.exact } else { part.loose },
                instructions,
                pairs.counted(part.function),
            );
            let found = found.entry(part.function).or_default();
            let amount = amount.min(found.left_of(instructions));
            *(if exact { &mut found.exact } else { &mut found.loose }) += amount;
        }
    }
    for function in pairs.rebuilt() {
        let mut inferred = function.inferred;
        for part in &function.parts {
            let Some(&instructions) = executed.get(&part.function) else { continue };
            let found = found.entry(part.function).or_default();
            let amount = inferred.min(found.left_of(instructions));
            found.inferred += amount;
            inferred -= amount;
        }
    }
    let mut total = TransferScore::default();
    let mut lost = Vec::new();
    for (&at, &instructions) in executed {
        let found = found.remove(&at).unwrap_or_default();
        total.exact = total.exact.saturating_add(found.exact);
        total.loose = total.loose.saturating_add(found.loose);
        total.inferred = total.inferred.saturating_add(found.inferred);
        let left = found.left_of(instructions);
        total.lost = total.lost.saturating_add(left);
        if left > 0 {
            lost.push((at, left));
        }
    }
    (total, lost)
}
