//! Context switches by who, to whom and why.

use kerntune_profile::SwitchKind;
use std::collections::HashMap;

/// A kind of switch. Names are numbers of [`super::Threads`], the reason is a function's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Switch {
    /// Who had the CPU.
    pub from: Option<u32>,
    /// Who got it.
    pub to: Option<u32>,
    /// The innermost function that is none of the scheduler's.
    pub reason: Option<u32>,
    /// Whether it was taken or given up.
    pub kind: SwitchKind,
}

/// How often there was each.
#[derive(Debug, Clone)]
pub struct Switches {
    counts: HashMap<Switch, u64>,
    most: usize,
    /// Switches of kinds that there was no room for.
    pub crowded: u64,
}

impl Switches {
    /// One that never has more than `most` kinds.
    pub fn new(most: usize) -> Self {
        Self { counts: HashMap::with_capacity(most), most, crowded: 0 }
    }

    /// Bytes that one takes at most.
    pub fn bound(most: usize) -> usize {
        most.saturating_mul(8).div_ceil(7).next_power_of_two().saturating_mul(size_of::<(Switch, u64)>() + 1)
    }

    /// Counts `weight` switches.
    pub fn add(&mut self, switch: Switch, weight: u64) {
        let known = self.counts.contains_key(&switch);
        if !known && self.counts.len() >= self.most {
            self.crowded += weight;
            return;
        }
        *self.counts.entry(switch).or_default() += weight;
    }

    /// All kinds, in order.
    pub fn rows(&self) -> Vec<(Switch, u64)> {
        let mut rows: Vec<_> = self.counts.iter().map(|(switch, count)| (*switch, *count)).collect();
        rows.sort_unstable();
        rows
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.crowded = 0;
    }
}
