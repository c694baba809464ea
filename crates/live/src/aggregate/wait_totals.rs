//! Sums of waits, and tables of them with a bound.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Number of waits with the sum and the greatest of their times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitTotals {
    /// Number of waits.
    pub count: u64,
    /// Sum of their times, in ns.
    pub ns: u64,
    /// Longest of them, in ns.
    pub max: u64,
}

/// Adds a wait of `ns` to a table of at most `max` rows; returns false if it has no room.
pub(super) fn add<K: Eq + Hash>(table: &mut FxHashMap<K, WaitTotals>, max: usize, key: K, ns: u64) -> bool {
    if table.len() >= max && !table.contains_key(&key) {
        return false;
    }
    let totals = table.entry(key).or_default();
    totals.count += 1;
    totals.ns = totals.ns.saturating_add(ns);
    totals.max = totals.max.max(ns);
    true
}

/// Returns the rows of a table by key.
pub(super) fn sorted<K: Copy + Ord, V: Copy + Ord>(table: &FxHashMap<K, V>) -> Vec<(K, V)> {
    let mut rows: Vec<_> = table.iter().map(|(key, value)| (*key, *value)).collect();
    rows.sort_unstable();
    rows
}
