//! Fast non-cryptographic hashing of integers. Keys are trusted, so there is no protection against
//! chosen collisions.

/// Hasher for maps with integer keys.
pub(crate) type BuildIntegerHasher = rustc_hash::FxBuildHasher;

/// The golden ratio, scaled to 64 bits (Fibonacci hashing).
const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

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
