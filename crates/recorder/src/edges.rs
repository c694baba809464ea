//! Counts of taken branches by pair of blocks.

/// Open-addressing hash table of fixed size; counting never allocates.
pub struct EdgeTable {
    slots: Box<[EdgeSlot]>,
    used: usize,
    /// Branches not counted because the table was full.
    pub uncounted: u64,
}

/// Pair of blocks with its count. They lie together, so that an edge costs one cache line of the
/// host.
#[derive(Debug, Clone, Copy, Default)]
struct EdgeSlot {
    /// Source and target block; 0 for an empty slot.
    key: u64,
    count: u64,
}

/// Slots per block number. Code that runs together is translated together and gets adjacent
/// numbers, so its edges are adjacent, too.
const SLOTS_PER_BLOCK: usize = 4;

impl EdgeTable {
    /// Creates a table of `1 << bits` slots, of which up to three quarters are used.
    pub fn new(bits: u32) -> Self {
        Self { slots: vec![EdgeSlot::default(); 1 << bits].into_boxed_slice(), used: 0, uncounted: 0 }
    }

    /// Counts a branch from block `from` to block `to`; numbers begin at 1.
    ///
    /// A return is stored near its target, any other branch near its source: a return has many
    /// targets, each reached by few returns.
    #[inline]
    pub fn count(&mut self, from: u32, to: u32, is_return: bool) {
        let key = u64::from(from) << 32 | u64::from(to);
        let near = if is_return { to } else { from };
        let at = near as usize * SLOTS_PER_BLOCK;
        let mask = self.slots.len() - 1;
        match self.slots.get_mut(at & mask) {
            Some(slot) if slot.key == key => slot.count += 1,
            _ => self.count_from(at, key),
        }
    }

    /// Counts a branch whose first slot is `at`.
    // Apart, so that the frequent way saves no registers for it.
    #[inline(never)]
    fn count_from(&mut self, mut at: usize, key: u64) {
        let mask = self.slots.len() - 1;
        loop {
            let slot = &mut self.slots[at & mask];
            if slot.key == key {
                slot.count += 1;
                return;
            }
            if slot.key == 0 {
                if self.used >= (mask + 1) / 4 * 3 {
                    self.uncounted += 1;
                    return;
                }
                self.used += 1;
                *slot = EdgeSlot { key, count: 1 };
                return;
            }
            at += 1;
        }
    }

    /// Returns all pairs with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let pairs = self.slots.iter().filter(|slot| slot.key != 0);
        pairs.map(|slot| ((slot.key >> 32) as u32, slot.key as u32, slot.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_pair_and_says_when_it_is_full() {
        let mut edges = EdgeTable::new(4);
        for to in 1..=14 {
            edges.count(7, to, to % 2 == 0);
            edges.count(7, to, to % 2 == 0);
        }
        assert_eq!(edges.iter().map(|(_, _, n)| n).sum::<u64>(), 24);
        assert_eq!(edges.uncounted, 4);
        assert!(edges.iter().all(|(from, to, n)| from == 7 && to <= 12 && n == 2));
    }
}
