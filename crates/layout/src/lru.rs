//! Sets with the least recently used entry replaced: what caches, TLBs and branch target buffers are here.

use crate::SMALL_PAGE_BYTES;

/// Sets of tags, the most recently used first.
#[derive(Debug, Clone)]
pub(crate) struct LruSets {
    /// Set after set, `ways` tags each; 0 is an empty way, which no real tag is.
    tags: Box<[u64]>,
    ways: usize,
    set_mask: u64,
    /// log2 of the bytes that one tag stands for.
    shift: u32,
    /// The tag touched last. It is the first of its set: to touch it again changes nothing.
    last: u64,
}

/// In every tag, so that none is 0. Numbers of lines and pages never reach it: they are addresses shifted. Addresses of
/// branches do in the kernel's half, and those of the other half differ from all of them by more bits than this one.
const PRESENT: u64 = 1 << 63;

#[inline]
fn tag(block: u64, salt: u64) -> u64 {
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

    /// Touches every block from `start` to `end`; returns how many were not there, and hands over each of them.
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

    /// As [`Self::walk`], where each block that is not there brings along the next `ahead` of its page that are not there
    /// either. Those are handed over with `false`: nobody waited for them.
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
                    // It may be in the same set.
                    self.last = 0;
                }
            }
        }
        misses
    }

    /// As [`Self::walk`], for who runs ahead: of the next `lines` blocks after one that was waited for, those that are not there
    /// were asked for meanwhile, and are handed over with `false`. `asked` is how many of them are left.
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

    /// Whether a block is there.
    pub(crate) fn has(&self, block: u64, salt: u64) -> bool {
        self.holds(block, tag(block, salt))
    }

    /// Throws a block without salt out, if it is there.
    pub(crate) fn forget(&mut self, block: u64) {
        let first = (block & self.set_mask) as usize * self.ways;
        let set = &mut self.tags[first..first + self.ways];
        if let Some(way) = set.iter().position(|held| *held == tag(block, 0)) {
            set[way..].rotate_left(1);
            set[self.ways - 1] = 0;
        }
    }

    /// Looks up one block by itself, in a structure that is not walked; true if it was not there.
    pub(crate) fn misses(&mut self, block: u64, salt: u64) -> bool {
        self.touch(block, tag(block, salt))
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
