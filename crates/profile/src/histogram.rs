//! Buckets of the histograms: four to each doubling.
//!
//! A bucket holds the values whose three leading binary digits are the same. For
//! `e = floor(log2 ns)`:
//!
//! ```text
//! bucket(ns) = ns                                   for ns < 4
//! bucket(ns) = 4·(e − 1) + ((ns >> (e − 2)) & 3)    otherwise
//! ```
//!
//! so 4 5 6 7 have one each, then 8–9, 10–11, 12–13, 14–15, then 16–19 and so on: no bucket is
//! wider than a quarter of its lower bound.

use crate::Nanoseconds;

/// Number of buckets that 64 bits need.
pub const BUCKETS: u32 = 252;

/// The bucket that a time falls into, 0 to [`BUCKETS`]` - 1`.
#[inline]
pub fn bucket_of(time: Nanoseconds) -> u32 {
    let ns = time.0;
    if ns < 4 {
        return ns as u32;
    }
    let exponent = 63 - ns.leading_zeros();
    4 * (exponent - 1) + (ns >> (exponent - 2)) as u32 % 4
}

/// The least and the greatest time of a bucket, both within it. Buckets that do not exist have
/// the bounds of the last.
pub fn bounds(bucket: u32) -> (Nanoseconds, Nanoseconds) {
    let bucket = bucket.min(BUCKETS - 1);
    if bucket < 4 {
        return (Nanoseconds(bucket.into()), Nanoseconds(bucket.into()));
    }
    let shift = bucket / 4 - 1;
    let low = u64::from(4 + bucket % 4) << shift;
    (Nanoseconds(low), Nanoseconds(low + ((1 << shift) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_by_hand() {
        let of = |ns| bucket_of(Nanoseconds(ns));
        assert_eq!([of(0), of(3), of(4), of(7), of(8), of(9), of(10), of(16)], [0, 3, 4, 7, 8, 8, 9, 12]);
        assert_eq!(bounds(12), (Nanoseconds(16), Nanoseconds(19)));
        assert_eq!(of(u64::MAX), BUCKETS - 1);
        assert_eq!(bounds(BUCKETS - 1).1, Nanoseconds(u64::MAX));
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
            let (low, high) = bounds(bucket_of(Nanoseconds(ns)));
            prop_assert!(low.0 <= ns && ns <= high.0);
        }
    }
}
