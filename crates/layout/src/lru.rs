//! Set-associative table with LRU replacement: the base of caches, TLBs and branch target buffers.

use crate::SMALL_PAGE_BYTES;

/// Sets of tags, each with the most recently used tag first.
#[derive(Debug, Clone)]
pub(crate) struct LruSets {
    /// Tags of all sets, `ways` for each set. 0 marks an empty way; no real tag is 0.
    tags: Box<[u64]>,
    ways: usize,
    set_mask: u64,
    /// log2 of the block size in bytes.
    shift: u32,
    /// Last touched tag. It is first in its set, so touching it again changes nothing.
    last: u64,
}

/// Bit set in every tag, so that no tag is 0.
///
/// Line and page numbers are shifted addresses and never reach this bit. Kernel branch addresses
/// do, but user branch addresses differ from them in more bits than this one.
const PRESENT: u64 = 1 << 63;

#[inline]
pub(crate) fn tag(block: u64, salt: u64) -> u64 {
    (block ^ salt) | PRESENT
}

impl LruSets {
    pub(crate) fn new(entries: u64, ways: u64, block_bytes: u64) -> Self {
        Self {
            tags: vec![0; entries as usize].into_boxed_slice(),
            ways: ways as usize,
            set_mask: entries / ways - 1,
            shift: block_bytes.trailing_zeros(),
            last: 0,
        }
    }

    pub(crate) fn blocks(&self, start: u64, end: u64) -> u64 {
        (end >> self.shift) - (start >> self.shift) + 1
    }

    /// Touches every block from `start` to `end`. Calls `missed` for each missing block and returns
    /// their number.
    #[inline]
    pub(crate) fn walk(&mut self, start: u64, end: u64, salt: u64, mut missed: impl FnMut(u64)) -> u64 {
        let mut block = start >> self.shift;
        let last = end >> self.shift;
        let mut misses = 0;
        loop {
            let tag = tag(block, salt);
            if tag != self.last {
                self.last = tag;
                let absent = self.touch(block, tag);
                misses += u64::from(absent);
                if absent {
                    missed(block);
                }
            }
            if block == last {
                return misses;
            }
            block += 1;
        }
    }

    /// Works like [`Self::walk`] and prefetches: each miss also loads the next `ahead` blocks of
    /// its page that are missing. These are passed to `missed` with `false`, since nothing waits
    /// for them.
    pub(crate) fn walk_ahead(
        &mut self,
        (start, end): (u64, u64),
        salt: u64,
        ahead: u64,
        mut missed: impl FnMut(u64, bool),
    ) -> u64 {
        let page = (SMALL_PAGE_BYTES >> self.shift).max(1) - 1;
        let mut misses = 0;
        for block in start >> self.shift..=end >> self.shift {
            let wanted = tag(block, salt);
            if wanted == self.last {
                continue;
            }
            self.last = wanted;
            if !self.touch(block, wanted) {
                continue;
            }
            misses += 1;
            missed(block, true);
            for next in block + 1..=(block + ahead).min(block | page) {
                let tag = tag(next, salt);
                if !self.holds(next, tag) {
                    self.touch(next, tag);
                    missed(next, false);
                    // The prefetched block may have displaced the last tag from the first place of
                    // its set.
                    self.last = 0;
                }
            }
        }
        misses
    }

    /// Works like [`Self::walk`] and runs ahead: after an awaited block, the next `lines` blocks of
    /// the path are requested early. If one of them is missing, it is passed to `missed` with
    /// `false`. `asked` is the number of requests left.
    pub(crate) fn walk_running_ahead(
        &mut self,
        (start, end): (u64, u64),
        salt: u64,
        (lines, asked): (u64, &mut u64),
        mut missed: impl FnMut(u64, bool),
    ) -> u64 {
        let mut misses = 0;
        for block in start >> self.shift..=end >> self.shift {
            let tag = tag(block, salt);
            if tag == self.last {
                continue;
            }
            self.last = tag;
            let is_awaited = *asked == 0;
            *asked = asked.saturating_sub(1);
            if self.touch(block, tag) {
                if is_awaited {
                    misses += 1;
                    *asked = lines;
                }
                missed(block, is_awaited);
            }
        }
        misses
    }

    fn holds(&self, block: u64, tag: u64) -> bool {
        let first = (block & self.set_mask) as usize * self.ways;
        self.tags[first..first + self.ways].contains(&tag)
    }

    /// Returns true if the block is present.
    pub(crate) fn has(&self, block: u64, salt: u64) -> bool {
        self.holds(block, tag(block, salt))
    }

    /// Removes a block that has no salt, if it is present.
    pub(crate) fn forget(&mut self, block: u64) {
        let first = (block & self.set_mask) as usize * self.ways;
        let set = &mut self.tags[first..first + self.ways];
        if let Some(way) = set.iter().position(|held| *held == tag(block, 0)) {
            set[way..].rotate_left(1);
            set[self.ways - 1] = 0;
        }
    }

    /// Looks up and touches a single block; returns true if it was missing. For tables that are
    /// never walked.
    pub(crate) fn misses(&mut self, block: u64, salt: u64) -> bool {
        self.touch(block, tag(block, salt))
    }

    /// Moves `tag` to the front of its set; returns true if it was missing.
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

/// Moves `tag` to the front of `set` in one pass that shifts the tags before it by one place.
/// Returns true if the tag was missing and the last one was dropped.
#[inline]
fn move_to_front(set: &mut [u64], tag: u64) -> bool {
    let mut displaced = tag;
    for way in set {
        displaced = std::mem::replace(way, displaced);
        if displaced == tag {
            return false;
        }
    }
    true
}

/// Works like [`move_to_front`] for the most common associativity. The tag's position in the set is
/// unpredictable: a fixed number of steps costs less than one misprediction.
#[inline]
fn move_to_front_branchless(set: &mut [u64; 8], tag: u64) -> bool {
    let mut displaced = tag;
    let mut found = false;
    for way in set {
        let held = *way;
        *way = if found { held } else { displaced };
        found |= held == tag;
        displaced = held;
    }
    !found
}
