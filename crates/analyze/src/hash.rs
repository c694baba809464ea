//! Hashing of small numbers: none of the keys is chosen by a foe, and all of them are looked up often.

use std::hash::{BuildHasherDefault, Hasher};

/// For maps with keys of integers.
pub(crate) type Mixed = BuildHasherDefault<Mix>;

/// The golden ratio's 64 bits (Fibonacci hashing).
const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// One multiplication per word, the high half folded onto the low one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mix(u64);

/// The hash of two words.
#[inline]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    fold(a, b).wrapping_mul(RATIO)
}

/// A hash of two words that is good enough to be one of many.
#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ RATIO) * u128::from(b ^ RATIO.rotate_left(32));
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let mixed = mix(self.0, word);
        self.0 = mixed ^ mixed >> 32;
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
