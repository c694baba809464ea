//! Counted calls by caller and callee.

use std::collections::HashMap;

/// Indices of caller and callee; `None` for an unknown caller.
pub type CallKey = (Option<u32>, u32);

/// Number of calls by caller and callee.
#[derive(Debug, Clone)]
pub struct CallTable {
    counts: HashMap<CallKey, u64>,
    max: usize,
    /// Calls of pairs that found no room.
    pub crowded: u64,
    /// Calls of code without a name.
    pub unnamed: u64,
}

impl CallTable {
    /// Creates a table of at most `max` pairs.
    pub fn new(max: usize) -> Self {
        Self { counts: HashMap::new(), max, crowded: 0, unnamed: 0 }
    }

    /// Returns an upper bound for the table's memory, in bytes.
    pub fn bound(max: usize) -> usize {
        max.saturating_mul(8).div_ceil(7).next_power_of_two().saturating_mul(size_of::<(CallKey, u64)>() + 1)
    }

    /// Adds calls of `callee`, which is `None` if it has no name.
    pub fn add(&mut self, caller: Option<u32>, callee: Option<u32>, calls: u64) {
        let Some(callee) = callee else {
            self.unnamed = self.unnamed.saturating_add(calls);
            return;
        };
        let key = (caller, callee);
        if !self.counts.contains_key(&key) && self.counts.len() >= self.max {
            self.crowded = self.crowded.saturating_add(calls);
            return;
        }
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(calls);
    }

    /// Returns all pairs, sorted.
    pub fn rows(&self) -> Vec<(CallKey, u64)> {
        let mut rows: Vec<_> = self.counts.iter().map(|(key, count)| (*key, *count)).collect();
        rows.sort_unstable();
        rows
    }

    /// Removes all calls.
    pub fn clear(&mut self) {
        self.counts.clear();
        (self.crowded, self.unnamed) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_or_has_no_name_is_counted_apart() {
        let mut calls = CallTable::new(2);
        calls.add(Some(1), Some(2), 5);
        calls.add(None, Some(2), 1);
        calls.add(Some(1), Some(2), 2);
        calls.add(Some(3), Some(2), 4);
        calls.add(Some(1), None, 8);
        assert_eq!(calls.rows(), [((None, 2), 1), ((Some(1), 2), 7)]);
        assert_eq!((calls.crowded, calls.unnamed), (4, 8));
        calls.clear();
        assert_eq!((calls.rows().len(), calls.crowded, calls.unnamed), (0, 0, 0));
    }
}
