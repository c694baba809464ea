//! Context switches by thread, next thread and reason.

use kerntune_profile::SwitchKind;
use std::collections::HashMap;

/// Kind of context switch. Names are indices of [`super::ThreadTable`], the reason is a function
/// index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledSwitch {
    /// Name index of the thread that lost the CPU.
    pub from: Option<u32>,
    /// Name index of the thread that got the CPU.
    pub to: Option<u32>,
    /// Innermost function outside of the scheduler.
    pub reason: Option<u32>,
    /// Voluntary switch or preemption.
    pub kind: SwitchKind,
}

/// Number of context switches of each kind.
#[derive(Debug, Clone)]
pub struct SwitchTable {
    counts: HashMap<SampledSwitch, u64>,
    max: usize,
    /// Switches whose kind found no room.
    pub crowded: u64,
}

impl SwitchTable {
    /// Creates a table of at most `max` kinds.
    pub fn new(max: usize) -> Self {
        Self { counts: HashMap::with_capacity(max), max, crowded: 0 }
    }

    /// Returns an upper bound for the table's memory, in bytes.
    pub fn bound(max: usize) -> usize {
        max.saturating_mul(8)
            .div_ceil(7)
            .next_power_of_two()
            .saturating_mul(size_of::<(SampledSwitch, u64)>() + 1)
    }

    /// Adds `weight` switches.
    pub fn add(&mut self, switch: SampledSwitch, weight: u64) {
        let known = self.counts.contains_key(&switch);
        if !known && self.counts.len() >= self.max {
            self.crowded += weight;
            return;
        }
        *self.counts.entry(switch).or_default() += weight;
    }

    /// Returns all kinds, sorted.
    pub fn rows(&self) -> Vec<(SampledSwitch, u64)> {
        let mut rows: Vec<_> = self.counts.iter().map(|(switch, count)| (*switch, *count)).collect();
        rows.sort_unstable();
        rows
    }

    /// Removes all switches.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.crowded = 0;
    }
}
