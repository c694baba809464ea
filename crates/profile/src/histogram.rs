//! Log-scaled buckets of histograms: four for each doubling.
//!
//! A bucket holds the values whose three leading binary digits are the same. For `e = floor(log2
//! ns)`:
//!
//! ```text
//! bucket(ns) = ns                                   for ns < 4
//! bucket(ns) = 4·(e − 1) + ((ns >> (e − 2)) & 3)    otherwise
//! ```
//!
//! The values 4, 5, 6 and 7 have one bucket each; then come 8–9, 10–11, 12–13, 14–15, 16–19 and so
//! on. No bucket is wider than a quarter of its lower bound.

use crate::Ticks;

/// Number of buckets that cover all 64-bit values.
pub const BUCKETS: u32 = 252;

/// Returns the bucket of a time, 0 to [`BUCKETS`]` - 1`.
#[inline]
pub fn bucket_of(time: Ticks) -> u32 {
    let ns = time.0;
    if ns < 4 {
        return ns as u32;
    }
    let exponent = 63 - ns.leading_zeros();
    4 * (exponent - 1) + (ns >> (exponent - 2)) as u32 % 4
}

/// Returns the least and the greatest time of a bucket, both inclusive. A number beyond the last
/// bucket gets the bounds of the last.
pub fn bounds(bucket: u32) -> (Ticks, Ticks) {
    let bucket = bucket.min(BUCKETS - 1);
    if bucket < 4 {
        return (Ticks(bucket.into()), Ticks(bucket.into()));
    }
    let shift = bucket / 4 - 1;
    let low = u64::from(4 + bucket % 4) << shift;
    (Ticks(low), Ticks(low + ((1 << shift) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_by_hand() {
        let of = |ns| bucket_of(Ticks(ns));
        assert_eq!([of(0), of(3), of(4), of(7), of(8), of(9), of(10), of(16)], [0, 3, 4, 7, 8, 8, 9, 12]);
        assert_eq!(bounds(12), (Ticks(16), Ticks(19)));
        assert_eq!(of(u64::MAX), BUCKETS - 1);
        assert_eq!(bounds(BUCKETS - 1).1, Ticks(u64::MAX));
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for bucket in 1..BUCKETS {
            assert_eq!(bounds(bucket).0 .0, bounds(bucket - 1).1 .0 + 1, "at {bucket}");
        }
    }

    proptest! {
        #[test]
        fn a_time_lies_within_its_bucket(ns in any::<u64>()) {
            let (low, high) = bounds(bucket_of(Ticks(ns)));
            prop_assert!(low.0 <= ns && ns <= high.0);
        }
    }
}
