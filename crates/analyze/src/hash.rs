//! Fast non-cryptographic hasher for integer keys. Keys are trusted, so there is no protection
//! against chosen collisions.

use std::hash::{BuildHasherDefault, Hasher};

/// Hasher for maps with integer keys.
pub(crate) type BuildIntegerHasher = BuildHasherDefault<IntegerHasher>;

/// The golden ratio, scaled to 64 bits (Fibonacci hashing).
const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// One multiplication per word; the high half is folded onto the low one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IntegerHasher(u64);

/// Hashes two words.
#[inline]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    fold(a, b).wrapping_mul(RATIO)
}

/// Combines two words; for chains of such steps.
#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ RATIO) * u128::from(b ^ RATIO.rotate_left(32));
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for IntegerHasher {
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
