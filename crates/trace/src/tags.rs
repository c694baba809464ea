//! Records of event tags of McRae's profiler: a tag, and the value of a counter.

use serde::{Deserialize, Serialize};

/// Smallest width of a tag or a clock, in bits.
pub const MIN_TAG_BITS: u32 = 16;
/// Greatest width of a tag or a clock, in bits.
pub const MAX_TAG_BITS: u32 = 64;
/// Greatest length of a tick: a second.
const MAX_TICK_PS: u64 = 1_000_000_000_000;
/// Largest number of bytes of a record.
pub const MAX_TAG_RECORD: usize = 16;

/// Widths of a record's two fields, and the length of a tick. Each field takes whole bytes.
///
/// ```
/// use kerntune_trace::TagLayout;
/// let box_of_1993 = TagLayout::MCRAE;
/// assert_eq!(box_of_1993.record_bytes(), 5);
/// assert_eq!(box_of_1993.record(0x1234, 0x01_0203), [0x34, 0x12, 3, 2, 1]);
/// let wide = TagLayout::new(20, 40, 83_333).unwrap();
/// assert_eq!((wide.record_bytes(), wide.max_tag(), wide.ticks(1_000)), (8, 0xf_ffff, 12));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagLayout {
    tag_bits: u32,
    clock_bits: u32,
    tick_ps: u64,
}

impl TagLayout {
    /// McRae's prototype: tags of 16 bits and a counter of microseconds with 24 bits.
    pub const MCRAE: Self = Self { tag_bits: 16, clock_bits: 24, tick_ps: 1_000_000 };

    /// Creates a layout; `None` if a width is not between 16 and 64 bits, or a tick is not between a
    /// picosecond and a second.
    pub const fn new(tag_bits: u32, clock_bits: u32, tick_ps: u64) -> Option<Self> {
        let is_wide = tag_bits >= MIN_TAG_BITS && clock_bits >= MIN_TAG_BITS;
        let is_narrow = tag_bits <= MAX_TAG_BITS && clock_bits <= MAX_TAG_BITS;
        if is_wide && is_narrow && tick_ps >= 1 && tick_ps <= MAX_TICK_PS {
            Some(Self { tag_bits, clock_bits, tick_ps })
        } else {
            None
        }
    }

    /// Returns the width of a tag in bits.
    pub fn tag_bits(self) -> u32 {
        self.tag_bits
    }

    /// Returns the width of the clock in bits.
    pub fn clock_bits(self) -> u32 {
        self.clock_bits
    }

    /// Returns the length of a tick in ps.
    pub fn tick_ps(self) -> u64 {
        self.tick_ps
    }

    /// Returns the greatest tag.
    pub fn max_tag(self) -> u64 {
        u64::MAX >> (MAX_TAG_BITS - self.tag_bits)
    }

    /// Returns the greatest value of the clock, after which it begins again at 0.
    pub fn max_time(self) -> u64 {
        u64::MAX >> (MAX_TAG_BITS - self.clock_bits)
    }

    /// Returns the bytes of a tag in a record.
    pub fn tag_bytes(self) -> usize {
        self.tag_bits.div_ceil(8) as usize
    }

    /// Returns the bytes of a record.
    pub fn record_bytes(self) -> usize {
        self.tag_bytes() + self.clock_bits.div_ceil(8) as usize
    }

    /// Returns the value of the clock at this time in ns.
    pub fn ticks(self, ns: u64) -> u64 {
        // At most 2^64 · 1000, and only the low bits count.
        (u128::from(ns) * 1000 / u128::from(self.tick_ps)) as u64 & self.max_time()
    }

    /// Returns the time of this many ticks in ns; `None` if it has more than 64 bits.
    pub fn ns(self, ticks: u128) -> Option<u64> {
        u64::try_from(ticks.checked_mul(self.tick_ps.into())? / 1000).ok()
    }

    /// Returns the time in ns after which the clock begins again.
    pub fn round_ns(self) -> Option<u64> {
        self.ns(u128::from(self.max_time()) + 1)
    }

    /// Returns a record's bytes, the least significant ones first. Higher bits than the layout has
    /// are left out.
    pub fn record(self, tag: u64, time: u64) -> Vec<u8> {
        let mut bytes = [0; MAX_TAG_RECORD];
        let count = self.write(tag, time, &mut bytes);
        bytes[..count].to_vec()
    }

    /// Writes a record's bytes to the beginning of `out`; returns their number.
    pub fn write(self, tag: u64, time: u64, out: &mut [u8; MAX_TAG_RECORD]) -> usize {
        let (tag_bytes, count) = (self.tag_bytes(), self.record_bytes());
        out[..8].copy_from_slice(&(tag & self.max_tag()).to_le_bytes());
        let time = (time & self.max_time()).to_le_bytes();
        out[tag_bytes..count].copy_from_slice(&time[..count - tag_bytes]);
        count
    }
}

impl Default for TagLayout {
    fn default() -> Self {
        Self::MCRAE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_bounds() {
        assert_eq!(TagLayout::new(16, 24, 1_000_000), Some(TagLayout::MCRAE));
        for (tag, clock, tick) in [(15, 24, 1), (65, 24, 1), (16, 8, 1), (16, 24, 0), (16, 24, u64::MAX)] {
            assert_eq!(TagLayout::new(tag, clock, tick), None, "{tag} {clock} {tick}");
        }
        let widest = TagLayout::new(64, 64, 1).unwrap();
        assert_eq!((widest.max_tag(), widest.max_time(), widest.record_bytes()), (u64::MAX, u64::MAX, 16));
        assert_eq!(widest.record(u64::MAX, 1)[7..], [255, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_clock_begins_again() {
        assert_eq!(TagLayout::MCRAE.ticks(999), 0);
        assert_eq!(TagLayout::MCRAE.ticks(0x0102_0304 * 1000 + 17), 0x02_0304);
        assert_eq!(TagLayout::MCRAE.record(0x1_0002, 0x0102_0304), [2, 0, 4, 3, 2]);
        assert_eq!(TagLayout::new(16, 64, 1).unwrap().ticks(5), 5000);
    }
}
