//! The caches themselves. `fetch` runs inside an emulator callback hundreds of millions of times.

use crate::config::{FrontEndConfig, LARGE_PAGE_BYTES, SMALL_PAGE_BYTES};
use crate::Result;
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

/// Whose instructions are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Ring 0.
    Kernel,
    /// Ring 3.
    User,
}

/// Events of one mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCounts {
    /// Cache lines walked, hit or missed. A line counts once for each fetch that touches it.
    pub lines: u64,
    /// Lines that were not in the L1I.
    pub l1i_misses: u64,
    /// Pages walked that were not in the iTLB.
    pub itlb_misses: u64,
}

/// Events by mode. The difference of two readings is what happened between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Fetched in [`Mode::Kernel`].
    pub kernel: ModeCounts,
    /// Fetched in [`Mode::User`].
    pub user: ModeCounts,
}

impl Sub for ModeCounts {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self {
            lines: self.lines - before.lines,
            l1i_misses: self.l1i_misses - before.l1i_misses,
            itlb_misses: self.itlb_misses - before.itlb_misses,
        }
    }
}

impl AddAssign for ModeCounts {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.l1i_misses += other.l1i_misses;
        self.itlb_misses += other.itlb_misses;
    }
}

impl Sub for Counts {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self { kernel: self.kernel - before.kernel, user: self.user - before.user }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.kernel += other.kernel;
        self.user += other.user;
    }
}

/// The L1I and the iTLB of one core, both with true LRU replacement.
///
/// The model is the plain one: no prefetch, no second level, no speculation, no TLB flush at a
/// context switch (entries are tagged, as with PCIDs). All kernel-mode fetches are taken to be
/// in pages of `kernel_text_page_bytes`, all user-mode fetches in 4-KiB pages.
#[derive(Debug, Clone)]
pub struct FrontEnd {
    l1i: LruSets,
    itlb: LruSets,
    /// For kernel text; absent where that shares the 4-KiB entries.
    itlb_large: Option<LruSets>,
    counts: Counts,
}

impl FrontEnd {
    /// Empty caches of these sizes.
    ///
    /// # Errors
    /// As [`FrontEndConfig::validate`].
    pub fn new(config: &FrontEndConfig) -> Result<Self> {
        config.validate()?;
        let l1i = config.l1i;
        let large = config.itlb_large.filter(|_| config.kernel_text_page_bytes == LARGE_PAGE_BYTES);
        Ok(Self {
            l1i: LruSets::new(l1i.size_bytes / l1i.line_bytes, l1i.ways, l1i.line_bytes),
            itlb: LruSets::new(config.itlb.entries, config.itlb.ways, SMALL_PAGE_BYTES),
            itlb_large: large.map(|t| LruSets::new(t.entries, t.ways.unwrap_or(t.entries), LARGE_PAGE_BYTES)),
            counts: Counts::default(),
        })
    }

    /// Fetches the bytes `start..=end_inclusive`, a straight run of instructions.
    ///
    /// `space` tells address spaces apart: 0 for the kernel, for user code whatever identifies
    /// the process or the physical page. It is folded into the tags by a hash; for 0 the tags are
    /// exact. An end before the start is taken for one byte. The work is proportional to the
    /// length of the range: hand it basic blocks.
    #[inline]
    pub fn fetch(&mut self, start: u64, end_inclusive: u64, mode: Mode, space: u64) {
        // Multiplication by an odd constant maps spaces one to one onto well spread words.
        let salt = space.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let end = end_inclusive.max(start);
        let (counts, itlb) = match (mode, &mut self.itlb_large) {
            (Mode::User, _) => (&mut self.counts.user, &mut self.itlb),
            (Mode::Kernel, None) => (&mut self.counts.kernel, &mut self.itlb),
            (Mode::Kernel, Some(large)) => (&mut self.counts.kernel, large),
        };
        counts.itlb_misses += itlb.walk(start, end, salt);
        counts.l1i_misses += self.l1i.walk(start, end, salt);
        counts.lines += self.l1i.blocks(start, end);
    }

    /// Everything counted since the caches were made.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Sets of tags, the most recently used first.
#[derive(Debug, Clone)]
struct LruSets {
    /// Set after set, `ways` tags each; 0 is an empty way, which no real tag is.
    tags: Box<[u64]>,
    ways: usize,
    set_mask: u64,
    /// log2 of the bytes that one tag stands for.
    shift: u32,
    /// The tag touched last. It is the first of its set: to touch it again changes nothing.
    last: u64,
}

/// In every tag, so that none is 0. Block numbers never reach it: they are addresses shifted.
const PRESENT: u64 = 1 << 63;

impl LruSets {
    fn new(entries: u64, ways: u64, block_bytes: u64) -> Self {
        Self {
            tags: vec![0; entries as usize].into_boxed_slice(),
            ways: ways as usize,
            set_mask: entries / ways - 1,
            shift: block_bytes.trailing_zeros(),
            last: 0,
        }
    }

    fn blocks(&self, start: u64, end: u64) -> u64 {
        (end >> self.shift) - (start >> self.shift) + 1
    }

    /// Touches every block from `start` to `end`; returns how many were not there.
    #[inline]
    fn walk(&mut self, start: u64, end: u64, salt: u64) -> u64 {
        let mut block = start >> self.shift;
        let last = end >> self.shift;
        let mut misses = 0;
        loop {
            let tag = (block ^ salt) | PRESENT;
            if tag != self.last {
                self.last = tag;
                misses += u64::from(self.touch(block, tag));
            }
            if block == last {
                return misses;
            }
            block += 1;
        }
    }

    /// Makes `tag` the first of its set; true if it was not in it.
    #[inline]
    fn touch(&mut self, block: u64, tag: u64) -> bool {
        let first = (block & self.set_mask) as usize * self.ways;
        let set = &mut self.tags[first..first + self.ways];
        if set[0] == tag {
            return false;
        }
        match <&mut [u64; 8]>::try_from(&mut *set) {
            Ok(set) => move_to_front_branchless(set, tag),
            Err(_) => move_to_front(set, tag),
        }
    }
}

/// Makes `tag` the first of `set`, in one pass that finds it and moves all before it one place
/// down; true if it was not there and the last one fell out.
#[inline]
fn move_to_front(set: &mut [u64], tag: u64) -> bool {
    let mut carried = tag;
    for way in set {
        carried = std::mem::replace(way, carried);
        if carried == tag {
            return false;
        }
    }
    true
}

/// The same for the common associativity. Where in the set the tag is, no branch predictor can
/// tell: a fixed number of steps costs less than one misprediction.
#[inline]
fn move_to_front_branchless(set: &mut [u64; 8], tag: u64) -> bool {
    let mut carried = tag;
    let mut found = false;
    for way in set {
        let held = *way;
        *way = if found { held } else { carried };
        found |= held == tag;
        carried = held;
    }
    !found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    fn front_end(model: &str) -> FrontEnd {
        FrontEnd::new(&FrontEndConfig::named(model).unwrap()).unwrap()
    }

    #[test]
    fn the_ninth_line_of_a_set_evicts_the_least_recently_used() {
        let mut fe = front_end("generic");
        let line = |i: u64| TEXT + i * 4096; // all in set 0
        for i in 0..8 {
            fe.fetch(line(i), line(i), Mode::Kernel, 0);
        }
        fe.fetch(line(0), line(0), Mode::Kernel, 0); // now 1 is the oldest
        fe.fetch(line(8), line(8), Mode::Kernel, 0);
        let before = fe.counts();
        assert_eq!(before.kernel.l1i_misses, 9);
        fe.fetch(line(0), line(0), Mode::Kernel, 0);
        assert_eq!((fe.counts() - before).kernel.l1i_misses, 0);
        fe.fetch(line(1), line(1), Mode::Kernel, 0);
        assert_eq!((fe.counts() - before).kernel.l1i_misses, 1);
    }

    #[test]
    fn modes_are_counted_apart_and_spaces_do_not_hit_each_other() {
        let mut fe = front_end("generic");
        for space in [1, 2, 1, 2] {
            fe.fetch(0x40_1000, 0x40_103f, Mode::User, space);
        }
        assert_eq!(fe.counts().user, ModeCounts { lines: 4, l1i_misses: 2, itlb_misses: 2 });
        assert_eq!(fe.counts().kernel, ModeCounts::default());
    }

    #[test]
    fn large_pages_cover_two_mebibytes_of_kernel_text_and_leave_the_small_entries_alone() {
        let mut small = front_end("generic");
        let mut large = front_end("skylake");
        for fe in [&mut small, &mut large] {
            for page in 0..512 {
                fe.fetch(TEXT + page * 4096, TEXT + page * 4096, Mode::Kernel, 0);
            }
        }
        assert_eq!(small.counts().kernel.itlb_misses, 512);
        assert_eq!(large.counts().kernel.itlb_misses, 1);
    }

    #[test]
    fn the_top_of_the_address_space_and_backward_ranges_end() {
        let mut fe = front_end("generic");
        fe.fetch(u64::MAX - 1, u64::MAX, Mode::Kernel, 0);
        fe.fetch(u64::MAX, 0, Mode::Kernel, 0);
        fe.fetch(0, 0, Mode::User, u64::MAX);
        assert_eq!(fe.counts().kernel.lines, 2);
        assert_eq!(fe.counts().user.l1i_misses, 1);
    }
}
