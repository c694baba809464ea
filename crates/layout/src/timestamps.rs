//! Set-associative tables with LRU replacement by time of use: for caches and TLBs of which a user
//! remembers the way that holds a block, and then repeats a hit without a search.

use crate::lru::tag;
use std::ops::Range;

/// Way that holds no block, in every table.
pub(crate) const NO_WAY: u32 = 0;

/// Place for one block.
#[derive(Debug, Clone, Copy, Default)]
struct CacheWay {
    /// Tag of the block; 0 if the way is empty.
    tag: u64,
    /// Time of the last use; 0 if the way is empty.
    used: u64,
}

/// Sets of ways with the same index.
#[derive(Debug, Clone)]
struct WayBank {
    /// Number of the first way.
    first: usize,
    /// Ways of a set.
    ways: usize,
    set_mask: u64,
}

/// Banks of sets of ways. Ways are numbered over all banks.
#[derive(Debug, Clone)]
pub(crate) struct TimestampSets {
    /// All ways, after [`NO_WAY`].
    ways: Box<[CacheWay]>,
    banks: Box<[WayBank]>,
    /// Number of uses so far, which is the time.
    uses: u64,
}

/// Result of [`TimestampSets::touch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TouchedWay {
    /// Way that holds the block now.
    pub way: u32,
    /// True if the block was missing, and the way's block was replaced.
    pub missed: bool,
}

impl TimestampSets {
    /// Creates empty banks, each of this number of entries and of ways per set.
    pub fn new(banks: &[(u64, u64)]) -> Self {
        let mut first = NO_WAY as usize + 1;
        let banks: Box<[WayBank]> = banks
            .iter()
            .map(|&(entries, ways)| {
                let bank = WayBank { first, ways: ways as usize, set_mask: entries / ways - 1 };
                first += entries as usize;
                bank
            })
            .collect();
        Self { ways: vec![CacheWay::default(); first].into_boxed_slice(), banks, uses: 0 }
    }

    /// Touches a block.
    pub fn touch(&mut self, bank: usize, block: u64, salt: u64) -> TouchedWay {
        let tag = tag(block, salt);
        self.uses += 1;
        let now = self.uses;
        let (first, set) = self.set(bank, block);
        let (mut oldest, mut least) = (0, u64::MAX);
        for (at, way) in set.iter_mut().enumerate() {
            if way.tag == tag {
                way.used = now;
                return TouchedWay { way: (first + at) as u32, missed: false };
            }
            if way.used < least {
                (oldest, least) = (at, way.used);
            }
        }
        if let Some(way) = set.get_mut(oldest) {
            *way = CacheWay { tag, used: now };
        }
        TouchedWay { way: (first + oldest) as u32, missed: true }
    }

    /// Touches a block without a salt if `way` holds it, and whatever `other` holds, which must not
    /// be an empty way. Returns false and does nothing if `way` holds another block.
    #[inline]
    pub fn touch_ways(&mut self, way: u32, block: u64, other: u32) -> bool {
        let now = self.uses + 1;
        match self.ways.get_mut(way as usize) {
            Some(way) if way.tag == tag(block, 0) => way.used = now,
            _ => return false,
        }
        if let Some(way) = self.ways.get_mut(other as usize) {
            way.used = now;
        }
        self.uses = now;
        true
    }

    /// Touches whatever a way holds, which must not be empty.
    #[inline]
    pub fn touch_way(&mut self, way: u32) {
        self.uses += 1;
        if let Some(way) = self.ways.get_mut(way as usize) {
            way.used = self.uses;
        }
    }

    /// Returns true if a block without a salt is present.
    pub fn has(&self, bank: usize, block: u64) -> bool {
        self.ways[self.places(bank, block)].iter().any(|way| way.tag == tag(block, 0))
    }

    /// Removes a block without a salt, if it is present.
    pub fn forget(&mut self, bank: usize, block: u64) {
        let (_, set) = self.set(bank, block);
        if let Some(way) = set.iter_mut().find(|way| way.tag == tag(block, 0)) {
            *way = CacheWay::default();
        }
    }

    /// Returns the ways of a block's set, and the number of the first.
    fn set(&mut self, bank: usize, block: u64) -> (usize, &mut [CacheWay]) {
        let places = self.places(bank, block);
        (places.start, &mut self.ways[places])
    }

    /// Returns the numbers of the ways of a block's set.
    fn places(&self, bank: usize, block: u64) -> Range<usize> {
        let bank = &self.banks[bank];
        let first = bank.first + (block & bank.set_mask) as usize * bank.ways;
        first..first + bank.ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lru::LruSets;
    use crate::xorshift::XorShift64;

    /// Touches, repeats and removes blocks in both kinds of tables, and compares the misses.
    #[test]
    fn the_least_recently_used_block_is_replaced() {
        let mut random = XorShift64(7);
        for (entries, ways) in [(8, 1), (16, 2), (24, 12), (64, 64), (512, 8)] {
            let mut expected = LruSets::new(entries, ways, 64);
            let mut found = TimestampSets::new(&[(4, 2), (entries, ways)]);
            let mut last = None;
            for _ in 0..20_000 {
                let block = u64::from(random.below(entries as u32 * 2));
                match random.below(8) {
                    0 => {
                        expected.forget(block);
                        found.forget(1, block);
                        assert!(!found.has(1, block));
                    }
                    1 => {
                        let Some((way, block)) = last else { continue };
                        let held = expected.has(block, 0);
                        assert_eq!(found.touch_ways(way, block, NO_WAY), held);
                        if held {
                            assert!(!expected.misses(block, 0));
                        }
                    }
                    _ => {
                        let touched = found.touch(1, block, 0);
                        assert_eq!(touched.missed, expected.misses(block, 0));
                        assert!(found.has(1, block));
                        last = Some((touched.way, block));
                    }
                }
            }
        }
    }

    #[test]
    fn no_way_holds_nothing() {
        let mut sets = TimestampSets::new(&[(2, 2), (1, 1)]);
        assert!(!sets.touch_ways(NO_WAY, 0, NO_WAY));
        assert_eq!(sets.touch(0, 5, 1), TouchedWay { way: 1, missed: true });
        assert_eq!(sets.touch(1, 5, 0), TouchedWay { way: 3, missed: true });
        assert_eq!(sets.touch(0, 6, 1), TouchedWay { way: 2, missed: true });
        sets.touch_way(1);
        assert_eq!(sets.touch(0, 7, 1), TouchedWay { way: 2, missed: true });
        assert!(sets.touch_ways(3, 5, 1));
        assert_eq!(sets.touch(0, 8, 1), TouchedWay { way: 2, missed: true });
    }
}
