//! Calls that were counted, by caller and callee.

use std::collections::HashMap;

/// Who called whom: numbers of functions; a caller that is no known function has none.
pub type CallKey = (Option<u32>, u32);

/// How often each was called by each.
#[derive(Debug, Clone)]
pub struct Calls {
    counts: HashMap<CallKey, u64>,
    most: usize,
    /// Calls of pairs that there was no room for.
    pub crowded: u64,
    /// Calls of code that has no name.
    pub unnamed: u64,
}

impl Calls {
    /// One that never has more than `most` pairs.
    pub fn new(most: usize) -> Self {
        Self { counts: HashMap::new(), most, crowded: 0, unnamed: 0 }
    }

    /// Bytes that one takes at most.
    pub fn bound(most: usize) -> usize {
        most.saturating_mul(8).div_ceil(7).next_power_of_two().saturating_mul(size_of::<(CallKey, u64)>() + 1)
    }

    /// Counts so many calls of `callee`; none if it has no name.
    pub fn add(&mut self, caller: Option<u32>, callee: Option<u32>, calls: u64) {
        let Some(callee) = callee else {
            self.unnamed = self.unnamed.saturating_add(calls);
            return;
        };
        let key = (caller, callee);
        if !self.counts.contains_key(&key) && self.counts.len() >= self.most {
            self.crowded = self.crowded.saturating_add(calls);
            return;
        }
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(calls);
    }

    /// All pairs, in order.
    pub fn rows(&self) -> Vec<(CallKey, u64)> {
        let mut rows: Vec<_> = self.counts.iter().map(|(key, count)| (*key, *count)).collect();
        rows.sort_unstable();
        rows
    }

    /// Forgets all.
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
        let mut calls = Calls::new(2);
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
