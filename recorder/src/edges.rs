//! Counts of taken branches, by pair of blocks.

/// An open-addressing table of fixed size: nothing is allocated when an edge is counted.
pub struct Edges {
    slots: Box<[Slot]>,
    used: usize,
    /// Branches that found the table full.
    pub uncounted: u64,
}

/// A pair and its count, together: an edge costs one line of the host's cache.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// 0 where none is.
    key: u64,
    count: u64,
}

/// Slots for each number of a block. What runs together is translated together and has numbers side by side, so that its
/// edges lie side by side as well.
const EACH: usize = 4;

impl Edges {
    /// Room for `1 << bits` pairs, of which three quarters are used.
    pub fn new(bits: u32) -> Self {
        Self { slots: vec![Slot::default(); 1 << bits].into_boxed_slice(), used: 0, uncounted: 0 }
    }

    /// Counts one branch from block `from` to block `to`; numbers from 1. A return goes to many places, each of which few
    /// returns lead to; with other branches it is the other way round.
    #[inline]
    pub fn count(&mut self, from: u32, to: u32, is_return: bool) {
        let key = u64::from(from) << 32 | u64::from(to);
        let mask = self.slots.len() - 1;
        let near = if is_return { to } else { from };
        let mut at = near as usize * EACH;
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
                *slot = Slot { key, count: 1 };
                return;
            }
            at += 1;
        }
    }

    /// All pairs with their counts.
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
        let mut edges = Edges::new(4);
        for to in 1..=14 {
            edges.count(7, to, to % 2 == 0);
            edges.count(7, to, to % 2 == 0);
        }
        assert_eq!(edges.iter().map(|(_, _, n)| n).sum::<u64>(), 24);
        assert_eq!(edges.uncounted, 4);
        assert!(edges.iter().all(|(from, to, n)| from == 7 && to <= 12 && n == 2));
    }
}
