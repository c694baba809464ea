//! TAGE: tagged tables indexed by histories of increasing length. The table with the longest
//! history that has an entry for the branch predicts. After Seznec and Michaud (JILP 8, 2006).

use super::counter::TwoBitCounter;
use crate::xorshift::XorShift64;

/// Entry of a tagged table.
#[derive(Debug, Clone, Copy, Default)]
struct TageEntry {
    tag: u16,
    /// Range -4 to 3; predicts taken from 0 on.
    counter: i8,
    /// Recent usefulness, 0 to 3.
    useful: u8,
}

impl TageEntry {
    fn taken(self) -> bool {
        self.counter >= 0
    }

    fn learn(&mut self, taken: bool) {
        self.counter = if taken { (self.counter + 1).min(3) } else { (self.counter - 1).max(-4) };
    }

    /// Returns true if the entry has hardly been used since its allocation.
    fn is_new(self) -> bool {
        self.useful == 0 && matches!(self.counter, -1 | 0)
    }
}

/// History of fixed length, folded into a few bits by a circular shift register.
#[derive(Debug, Clone, Copy)]
struct FoldedHistory {
    bits: u64,
    width: u32,
    /// Bit position of the outcome that leaves the history.
    out: u32,
}

impl FoldedHistory {
    fn new(length: u64, width: u32) -> Self {
        Self { bits: 0, width, out: (length % u64::from(width)) as u32 }
    }

    #[inline]
    fn shift(&mut self, newest: u64, oldest: u64) {
        let mut bits = self.bits << 1 | newest;
        bits ^= oldest << self.out;
        bits ^= bits >> self.width;
        self.bits = bits & ((1 << self.width) - 1);
    }
}

#[derive(Debug, Clone)]
struct TageTable {
    entries: Box<[TageEntry]>,
    length: usize,
    index: FoldedHistory,
    /// Two widths, so that a periodic history does not fold to zero in both.
    tag: [FoldedHistory; 2],
}

impl TageTable {
    fn index(&self, branch: u64, path: u64) -> usize {
        let bits = self.entries.len().trailing_zeros();
        let path = path & ((1 << self.length.min(16)) - 1);
        let word = branch ^ branch >> bits ^ self.index.bits ^ path ^ path >> bits;
        word as usize & (self.entries.len() - 1)
    }

    fn tag(&self, branch: u64) -> u16 {
        let mask = (1u64 << self.tag[0].width) - 1;
        ((branch ^ self.tag[0].bits ^ self.tag[1].bits << 1) & mask) as u16
    }
}

/// TAGE predictor: base table, tagged tables and histories.
#[derive(Debug, Clone)]
pub(crate) struct Tage {
    base: Box<[TwoBitCounter]>,
    /// Tagged tables, shortest history first.
    tables: Box<[TageTable]>,
    /// Ring buffer of outcomes, a power of two long; the latest is at `newest`.
    history: Box<[bool]>,
    newest: usize,
    /// Lowest address bits of the last branches.
    path: u64,
    /// Counter of 0 to 15. From 8 on, a new entry is not trusted and the next shorter history
    /// predicts instead.
    distrust_new: u8,
    /// Number of branches until usefulness is aged again.
    until_aged: u32,
    /// True if the next aging clears the high bits of usefulness, false for the low bits.
    age_high: bool,
    /// Random numbers for allocations.
    random: XorShift64,
}

/// Number of branches between two agings. Each clears one of the two bits of usefulness.
const AGING_PERIOD: u32 = 256 * 1024;

/// Returns history lengths in a geometric series from `min` to `max`.
pub(super) fn histories(tables: u64, min: u64, max: u64) -> Vec<usize> {
    let steps = (tables - 1).max(1) as f64;
    let ratio = (max as f64 / min as f64).powf(1.0 / steps);
    (0..tables).map(|at| (min as f64 * ratio.powi(at as i32) + 0.5) as usize).collect()
}

impl Tage {
    pub(super) fn new(base: u64, entries: u64, tag_bits: u32, histories: &[usize]) -> Self {
        let room = histories.iter().copied().max().unwrap_or(1) + 1;
        let index_bits = entries.trailing_zeros();
        let table = |&length: &usize| TageTable {
            entries: vec![TageEntry::default(); entries as usize].into_boxed_slice(),
            length,
            index: FoldedHistory::new(length as u64, index_bits),
            tag: [
                FoldedHistory::new(length as u64, tag_bits),
                FoldedHistory::new(length as u64, tag_bits - 1),
            ],
        };
        Self {
            base: vec![TwoBitCounter::WEAK; base as usize].into_boxed_slice(),
            tables: histories.iter().map(table).collect(),
            history: vec![false; room.next_power_of_two()].into_boxed_slice(),
            newest: 0,
            path: 0,
            distrust_new: 8,
            until_aged: AGING_PERIOD,
            age_high: true,
            random: XorShift64(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Finds the entry for the branch with the longest history, in the tables below `end`. Returns
    /// table and index.
    fn find(&self, end: usize, branch: u64) -> Option<(usize, usize)> {
        (0..end).rev().find_map(|at| {
            let table = &self.tables[at];
            let index = table.index(branch, self.path);
            (table.entries[index].tag == table.tag(branch)).then_some((at, index))
        })
    }

    pub(super) fn guess(&mut self, branch: u64, taken: bool) -> bool {
        let base = branch as usize & (self.base.len() - 1);
        let provider = self.find(self.tables.len(), branch);
        let longest = provider.map_or(0, |(at, _)| at);
        let taken_of = |found: Option<(usize, usize)>| match found {
            Some((at, index)) => self.tables[at].entries[index].taken(),
            None => self.base[base].taken(),
        };
        let (first, other) = (taken_of(provider), taken_of(self.find(longest, branch)));
        let entry = provider.map(|(at, index)| self.tables[at].entries[index]);
        let is_new = entry.is_some_and(TageEntry::is_new);
        let guess = if is_new && self.distrust_new >= 8 { other } else { first };

        if let Some((at, index)) = provider {
            if is_new && first != other {
                self.distrust_new = match other == taken {
                    true => (self.distrust_new + 1).min(15),
                    false => self.distrust_new.saturating_sub(1),
                };
            }
            let entry = &mut self.tables[at].entries[index];
            entry.learn(taken);
            if first != other {
                entry.useful = match first == taken {
                    true => (entry.useful + 1).min(3),
                    false => entry.useful.saturating_sub(1),
                };
            }
        } else {
            self.base[base].learn(taken);
        }
        // The longest history mispredicted; a longer one might help.
        if first != taken {
            self.allocate(provider.map_or(0, |(at, _)| at + 1), branch, taken);
        }
        self.age();
        self.remember(branch, taken);
        guess
    }

    /// Allocates an entry in a table from `first` on. Each table is twice as likely as the next
    /// one.
    fn allocate(&mut self, first: usize, branch: u64, taken: bool) {
        let mut free = None;
        for at in first..self.tables.len() {
            let index = self.tables[at].index(branch, self.path);
            if self.tables[at].entries[index].useful > 0 {
                continue;
            }
            free = Some((at, index));
            if (self.random.bits() >> 32) % 3 < 2 {
                break;
            }
        }
        match free {
            Some((at, index)) => {
                let tag = self.tables[at].tag(branch);
                let counter = if taken { 0 } else { -1 };
                self.tables[at].entries[index] = TageEntry { tag, counter, useful: 0 };
            }
            None => {
                for at in first..self.tables.len() {
                    let index = self.tables[at].index(branch, self.path);
                    let entry = &mut self.tables[at].entries[index];
                    entry.useful = entry.useful.saturating_sub(1);
                }
            }
        }
    }

    fn age(&mut self) {
        self.until_aged -= 1;
        if self.until_aged > 0 {
            return;
        }
        self.until_aged = AGING_PERIOD;
        let kept = if self.age_high { 1 } else { 2 };
        self.age_high = !self.age_high;
        for table in &mut self.tables {
            table.entries.iter_mut().for_each(|entry| entry.useful &= kept);
        }
    }

    fn remember(&mut self, branch: u64, taken: bool) {
        let mask = self.history.len() - 1;
        self.newest = (self.newest + 1) & mask;
        self.history[self.newest] = taken;
        for table in &mut self.tables {
            let oldest = self.history[(self.newest + self.history.len() - table.length) & mask];
            let (newest, oldest) = (u64::from(taken), u64::from(oldest));
            table.index.shift(newest, oldest);
            table.tag.iter_mut().for_each(|folded| folded.shift(newest, oldest));
        }
        self.path = (self.path << 1 | branch & 1) & 0xffff;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_history_is_what_folding_it_anew_gives() {
        let (length, width) = (37, 9);
        let mut folded = FoldedHistory::new(length as u64, width);
        let mut all = vec![0u64; length];
        let mut state = 7u64;
        for _ in 0..500 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bit = state >> 63;
            let oldest = all[all.len() - length];
            all.push(bit);
            folded.shift(bit, oldest);
            // The newest outcome at bit 0, the next at bit 1, and so on, modulo the width.
            let anew = all
                .iter()
                .rev()
                .take(length)
                .enumerate()
                .fold(0, |word, (age, bit)| word ^ bit << (age % width as usize));
            assert_eq!(folded.bits, anew);
        }
    }

    #[test]
    fn lengths_grow_from_the_first_to_the_last() {
        assert_eq!(histories(7, 5, 130), [5, 9, 15, 25, 44, 76, 130]);
        assert_eq!(histories(1, 3, 9), [3]);
        assert_eq!(histories(3, 8, 8), [8, 8, 8]);
    }
}
