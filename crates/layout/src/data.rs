//! Data caches and data TLBs of one or more cores. `touch` and `translate` run inside an emulator
//! callback for almost every memory access.

use crate::config::{DataConfig, LARGE_PAGE_BYTES, SMALL_PAGE_BYTES};
use crate::lru::LruSets;
use crate::timestamps::{TimestampSets, TouchedWay, NO_WAY};
use std::ops::{Add, AddAssign, Sub};

/// Events of the data caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataCounts {
    /// Reads. Each line, and each element of a string instruction, counts as one.
    pub loads: u64,
    /// Writes, counted like reads.
    pub stores: u64,
    /// Lines that missed the L1D.
    pub l1d_misses: u64,
    /// Lines that missed the L1D on a write; part of `l1d_misses`.
    pub l1d_store_misses: u64,
    /// Lines that also missed the core's L2.
    pub l2_misses: u64,
    /// Lines that missed all caches.
    pub l3_misses: u64,
    /// Lines found only in the cache of another core that had written them.
    pub transfers: u64,
    /// Translations that missed the first-level data TLB.
    pub dtlb_misses: u64,
    /// Translations that missed all TLBs and needed a page walk.
    pub walks: u64,
}

impl DataCounts {
    /// Returns true if the L1D or the first-level TLB was missed.
    pub fn is_miss(&self) -> bool {
        self.l1d_misses | self.dtlb_misses != 0
    }

    fn each(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            loads: f(self.loads, other.loads),
            stores: f(self.stores, other.stores),
            l1d_misses: f(self.l1d_misses, other.l1d_misses),
            l1d_store_misses: f(self.l1d_store_misses, other.l1d_store_misses),
            l2_misses: f(self.l2_misses, other.l2_misses),
            l3_misses: f(self.l3_misses, other.l3_misses),
            transfers: f(self.transfers, other.transfers),
            dtlb_misses: f(self.dtlb_misses, other.dtlb_misses),
            walks: f(self.walks, other.walks),
        }
    }
}

impl Add for DataCounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }
}

impl AddAssign for DataCounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for DataCounts {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        self.each(before, |now, then| now - then)
    }
}

/// Caches and TLBs of one core.
#[derive(Debug, Clone)]
struct CoreCaches {
    /// L1D and first-level TLBs: banks [`L1D`], [`DTLB`], and one after it for large pages if they
    /// have their own.
    first: TimestampSets,
    has_dtlb_large: bool,
    l2: Option<LruSets>,
    stlb: Option<LruSets>,
}

const L1D: usize = 0;
const DTLB: usize = 1;

/// Ways of a core's L1D and first-level TLB that an access used, for [`DataCaches::repeat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheWays {
    /// Way of the first-level TLBs, as [`DataCaches::translate`] returned it.
    pub tlb: u32,
    /// Way of the L1D, as [`DataCaches::touch`] returned it, or [`CacheWays::UNKNOWN`].
    pub l1d: u32,
}

impl CacheWays {
    /// Way that holds nothing.
    pub const UNKNOWN: u32 = NO_WAY;
}

/// L1D, data TLBs and L2 of each core, and the shared L3, all with true LRU replacement.
///
/// The model has no prefetching, no speculation and no memory latency. A missing line is allocated
/// in every level. The L2 and the L3 also hold code: [`DataCaches::code`] takes the lines that the
/// L1I misses. A write removes the line from the caches of all other cores (MESI without the E
/// state).
#[derive(Debug, Clone)]
pub struct DataCaches {
    cores: Vec<CoreCaches>,
    l3: Option<LruSets>,
    /// For each line, 1 + the core that wrote it last, if no other core has touched it since;
    /// otherwise 0. [`WATCHED`] is added for watched lines.
    owners: Vec<u8>,
    line_shift: u32,
}

/// Physical memory whose lines have owners, in bytes. No guest has more.
const OWNED_BYTES: u64 = 1 << 38;
/// Bit of [`DataCaches::owners`] for lines that [`DataCaches::watch`] was called for.
const WATCHED: u8 = 1 << 7;

impl DataCaches {
    /// Creates empty caches for this number of cores, less than 127.
    pub fn new(config: &DataConfig, line_bytes: u64, cores: usize) -> Self {
        let cache = |size: u64, ways: u64| LruSets::new(size / line_bytes, ways, line_bytes);
        let large = config.dtlb_large.map(|tlb| (tlb.entries, tlb.ways.unwrap_or(tlb.entries)));
        let l1d = (config.l1d.size_bytes / line_bytes, config.l1d.ways);
        let dtlb = (config.dtlb.entries, config.dtlb.ways);
        let first: Vec<_> = [l1d, dtlb].into_iter().chain(large).collect();
        let core = CoreCaches {
            first: TimestampSets::new(&first),
            has_dtlb_large: large.is_some(),
            l2: config.l2.map(|l2| cache(l2.size_bytes, l2.ways)),
            stlb: config.stlb.map(|tlb| LruSets::new(tlb.entries, tlb.ways, SMALL_PAGE_BYTES)),
        };
        Self {
            cores: vec![core; cores],
            l3: config.l3.map(|l3| cache(l3.size_bytes, l3.ways)),
            owners: Vec::new(),
            line_shift: line_bytes.trailing_zeros(),
        }
    }

    /// Returns log2 of the line size in bytes.
    pub fn line_shift(&self) -> u32 {
        self.line_shift
    }

    /// Reads or writes a line, given by its physical line number, and adds the misses to `counts`.
    /// Returns the way of the L1D that holds the line now.
    #[inline]
    pub fn touch(&mut self, core: usize, line: u64, store: bool, counts: &mut DataCounts) -> u32 {
        let several = self.cores.len() > 1;
        let Some(own) = self.cores.get_mut(core) else { return NO_WAY };
        let TouchedWay { way, missed } = own.first.touch(L1D, line, 0);
        if missed {
            counts.l1d_misses += 1;
            counts.l1d_store_misses += u64::from(store);
        }
        if several && (missed || store) {
            self.touch_shared(core, line, store, missed, counts);
        } else if missed {
            self.fill(core, line, counts);
        }
        way
    }

    /// Reads or writes a line through the translation and the way that an earlier access used, if
    /// this hits the L1D and changes nothing but the order of use. Otherwise does nothing and
    /// returns false.
    ///
    /// The TLB must still have the translation: no [`DataCaches::translate`] has replaced its way
    /// since. With several cores, writes to lines that the core does not own are never repeated, and
    /// others only if the line `is_watched` or not as stated.
    #[inline]
    pub fn repeat(&mut self, core: usize, line: u64, store: bool, ways: CacheWays, is_watched: bool) -> bool {
        let several = self.cores.len() > 1;
        let Some(own) = self.cores.get_mut(core) else { return false };
        if several {
            let Some(owner) = self.owners.get(line as usize) else { return false };
            let watched = if is_watched { WATCHED } else { 0 };
            let repeats = match store {
                true => *owner == (core as u8 + 1) | watched,
                false => *owner & WATCHED == watched,
            };
            if !repeats {
                return false;
            }
        }
        own.first.touch_ways(ways.l1d, line, ways.tlb)
    }

    /// Looks a line up in the levels behind the L1D.
    #[inline]
    fn fill(&mut self, core: usize, line: u64, counts: &mut DataCounts) {
        let l2 = self.cores[core].l2.as_mut();
        if l2.is_none_or(|l2| l2.misses(line, 0)) {
            counts.l2_misses += 1;
            let l3 = self.l3.as_mut();
            counts.l3_misses += u64::from(l3.is_none_or(|l3| l3.misses(line, 0)));
        }
    }

    fn touch_shared(&mut self, core: usize, line: u64, store: bool, missed: bool, counts: &mut DataCounts) {
        let owner = self.owner(line);
        let other = owner.checked_sub(1).map(usize::from).filter(|owner| *owner != core);
        let held = other.is_some_and(|other| self.cores[other].holds(line));
        if missed && held {
            // The line comes from the other core's cache and is in this core's caches from now on.
            counts.transfers += 1;
            counts.l2_misses += 1;
            if let Some(l2) = &mut self.cores[core].l2 {
                l2.misses(line, 0);
            }
            if let Some(l3) = &mut self.l3 {
                l3.misses(line, 0);
            }
        } else if missed {
            self.fill(core, line, counts);
        }
        if !store {
            if other.is_some() {
                self.set_owner(line, 0);
            }
        } else if owner != core as u8 + 1 {
            for (_, other) in self.cores.iter_mut().enumerate().filter(|(number, _)| *number != core) {
                other.forget(line);
            }
            self.set_owner(line, core as u8 + 1);
        }
    }

    fn owner(&self, line: u64) -> u8 {
        self.owners.get(line as usize).map_or(0, |owner| owner & !WATCHED)
    }

    fn set_owner(&mut self, line: u64, owner: u8) {
        if owner == 0 && line as usize >= self.owners.len() {
            return;
        }
        if let Some(place) = self.owner_mut(line) {
            *place = *place & WATCHED | owner;
        }
    }

    /// Returns the place of a line's owner; `None` beyond [`OWNED_BYTES`].
    fn owner_mut(&mut self, line: u64) -> Option<&mut u8> {
        if line >= OWNED_BYTES >> self.line_shift {
            return None;
        }
        let at = line as usize;
        if at >= self.owners.len() {
            // Grow by a sixteenth: cheap for few lines, and rare for many.
            self.owners.resize(at + at / 16 + 4096, 0);
        }
        self.owners.get_mut(at)
    }

    /// Marks a line as watched, on machines with several cores.
    pub fn watch(&mut self, line: u64) {
        if let Some(place) = self.owner_mut(line) {
            *place |= WATCHED;
        }
    }

    /// Returns true if [`DataCaches::watch`] was called for a line, or cannot be for so high an
    /// address.
    #[inline]
    pub fn is_watched(&self, line: u64) -> bool {
        match self.owners.get(line as usize) {
            Some(owner) => owner & WATCHED != 0,
            None => line >= OWNED_BYTES >> self.line_shift,
        }
    }

    /// Looks up the translation of an address and adds the misses to `counts`. `space` separates
    /// address spaces, as in [`crate::FrontEnd::fetch`]. Returns the way of the first-level TLBs
    /// that holds the translation now.
    pub fn translate(
        &mut self,
        core: usize,
        address: u64,
        space: u64,
        large: bool,
        counts: &mut DataCounts,
    ) -> u32 {
        let Some(own) = self.cores.get_mut(core) else { return NO_WAY };
        let shift = if large { LARGE_PAGE_BYTES } else { SMALL_PAGE_BYTES }.trailing_zeros();
        let page = address >> shift;
        // Keep large and small pages apart in a TLB that holds both.
        let salt = space.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(large) << 62;
        let bank = DTLB + usize::from(large && own.has_dtlb_large);
        let TouchedWay { way, missed } = own.first.touch(bank, page, salt);
        if missed {
            counts.dtlb_misses += 1;
            counts.walks += u64::from(own.stlb.as_mut().is_none_or(|stlb| stlb.misses(page, salt)));
        }
        way
    }

    /// Looks up a translation that the first-level TLB still has, as in [`DataCaches::repeat`].
    #[inline]
    pub fn translate_again(&mut self, core: usize, tlb: u32) {
        if let Some(own) = self.cores.get_mut(core) {
            own.first.touch_way(tlb);
        }
    }

    /// Allocates a line of code that the core's L1I missed. `salt` is the value passed to the
    /// callback of [`crate::FrontEnd::fetch_with_misses`].
    pub fn code(&mut self, core: usize, line: u64, salt: u64) {
        // Keep code apart from data, whose lines are physical line numbers.
        let salt = salt ^ 1 << 61;
        let Some(own) = self.cores.get_mut(core) else { return };
        if own.l2.as_mut().is_none_or(|l2| l2.misses(line, salt)) {
            if let Some(l3) = &mut self.l3 {
                l3.misses(line, salt);
            }
        }
    }
}

impl CoreCaches {
    fn holds(&self, line: u64) -> bool {
        self.first.has(L1D, line) || self.l2.as_ref().is_some_and(|l2| l2.has(line, 0))
    }

    fn forget(&mut self, line: u64) {
        self.first.forget(L1D, line);
        if let Some(l2) = &mut self.l2 {
            l2.forget(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{L2Config, LargeTlbConfig, TlbConfig};

    fn config() -> DataConfig {
        DataConfig {
            l1d: L2Config { size_bytes: 2 * 64, ways: 2 },
            l2: Some(L2Config { size_bytes: 4 * 64, ways: 4 }),
            l3: Some(L2Config { size_bytes: 8 * 64, ways: 8 }),
            dtlb: TlbConfig { entries: 2, ways: 2 },
            dtlb_large: Some(LargeTlbConfig { entries: 1, ways: None }),
            stlb: Some(TlbConfig { entries: 4, ways: 4 }),
        }
    }

    fn touch(caches: &mut DataCaches, core: usize, line: u64, store: bool) -> [u64; 4] {
        let mut counts = DataCounts::default();
        caches.touch(core, line, store, &mut counts);
        [counts.l1d_misses, counts.l2_misses, counts.l3_misses, counts.transfers]
    }

    #[test]
    fn each_level_holds_what_it_has_room_for() {
        let mut caches = DataCaches::new(&config(), 64, 1);
        for line in 0..8 {
            assert_eq!(touch(&mut caches, 0, line, false), [1, 1, 1, 0]);
        }
        assert_eq!(touch(&mut caches, 0, 7, true), [0, 0, 0, 0]);
        assert_eq!(touch(&mut caches, 0, 5, false), [1, 0, 0, 0]);
        assert_eq!(touch(&mut caches, 0, 0, false), [1, 1, 0, 0]);
        assert_eq!(touch(&mut caches, 0, 8, false), [1, 1, 1, 0]);
        // Code evicts data from the L2 without counting as data.
        for line in 0..4 {
            caches.code(0, line, 0);
        }
        touch(&mut caches, 0, 20, false);
        touch(&mut caches, 0, 21, false);
        assert_eq!(touch(&mut caches, 0, 0, false)[1], 1);
    }

    #[test]
    fn who_writes_takes_the_line_from_all_others() {
        let mut caches = DataCaches::new(&config(), 64, 3);
        assert_eq!(touch(&mut caches, 0, 9, true), [1, 1, 1, 0]);
        assert_eq!(touch(&mut caches, 0, 9, true), [0, 0, 0, 0]);
        // Written by core 0: transferred from cache to cache.
        assert_eq!(touch(&mut caches, 1, 9, true), [1, 1, 0, 1]);
        assert_eq!(touch(&mut caches, 0, 9, false), [1, 1, 0, 1]);
        // Read by both cores, thus shared; the third core gets it from the L3.
        assert_eq!(touch(&mut caches, 1, 9, false), [0, 0, 0, 0]);
        assert_eq!(touch(&mut caches, 2, 9, false), [1, 1, 0, 0]);
        // Writing a shared line is no miss, but removes it from the other cores.
        assert_eq!(touch(&mut caches, 1, 9, true), [0, 0, 0, 0]);
        assert_eq!(touch(&mut caches, 2, 9, false), [1, 1, 0, 1]);
    }

    #[test]
    fn what_was_written_and_has_left_the_caches_comes_from_behind_them() {
        let mut caches = DataCaches::new(&config(), 64, 2);
        touch(&mut caches, 0, 3, true);
        for line in 10..14 {
            touch(&mut caches, 0, line, true);
        }
        assert_eq!(touch(&mut caches, 1, 3, false), [1, 1, 0, 0]);
    }

    #[test]
    fn a_line_far_away_is_a_line() {
        let mut caches = DataCaches::new(&config(), 64, 2);
        assert_eq!(touch(&mut caches, 0, u64::MAX >> 6, true), [1, 1, 1, 0]);
        assert_eq!(touch(&mut caches, 1, u64::MAX >> 6, true)[3], 0);
    }

    #[test]
    fn large_pages_have_entries_of_their_own_and_spaces_are_apart() {
        let mut caches = DataCaches::new(&config(), 64, 1);
        let mut look = |address, space, large| {
            let mut counts = DataCounts::default();
            caches.translate(0, address, space, large, &mut counts);
            [counts.dtlb_misses, counts.walks]
        };
        assert_eq!(look(0, 1, false), [1, 1]);
        assert_eq!(look(0, 2, false), [1, 1]);
        assert_eq!(look(4095, 1, false), [0, 0]);
        assert_eq!(look(0, 0, true), [1, 1]);
        assert_eq!(look(LARGE_PAGE_BYTES - 1, 0, true), [0, 0]);
        assert_eq!(look(4096, 1, false), [1, 1]);
        assert_eq!(look(0, 2, false), [1, 0], "the second level still has it");
    }
}
