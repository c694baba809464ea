//! What is counted of the calls over one arc.

use crate::hash::Mixed;
use kerntune_profile::{bucket_of, Nanoseconds};
use kerntune_trace::How;
use std::collections::HashMap;

/// Caller of what nothing called.
pub(crate) const NO_CALLER: u32 = u32::MAX;
/// Functions must have numbers below this for an arc to fit into 64 bits.
pub(crate) const FUNCTION_LIMIT: usize = 1 << 29;

/// Caller, callee and how, in one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ArcKey(u64);

impl ArcKey {
    #[inline]
    pub fn new(caller: u32, callee: u32, how: How) -> Self {
        Self(u64::from(caller) << 32 | u64::from(callee) << 3 | how as u64)
    }

    pub fn caller(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn callee(self) -> u32 {
        self.0 as u32 >> 3
    }

    pub fn how(self) -> How {
        match self.0 & 7 {
            0 => How::Call,
            1 => How::Jump,
            2 => How::Interrupt,
            3 => How::Exception,
            _ => How::Syscall,
        }
    }
}

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub net: u64,
    pub elapsed: u64,
    /// Virtual time at which it began.
    pub begin: u64,
}

/// What is counted of an arc in a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub calls: u64,
    /// The callee's net time that passed in the region, whether or not its call ended there.
    pub net: u64,
    pub elapsed: u64,
    pub max: u64,
    pub min: u64,
    /// Greatest elapsed time of one call, and when the first of those began.
    pub slowest: u64,
    pub slowest_at: u64,
    pub histogram: Histogram,
}

impl Account {
    pub const EMPTY: Self = Self {
        calls: 0,
        net: 0,
        elapsed: 0,
        max: 0,
        min: u64::MAX,
        slowest: 0,
        slowest_at: u64::MAX,
        histogram: Histogram { first: 0, buckets: Vec::new() },
    };

    /// Counts one call; its net time comes by [`Self::net`].
    #[inline]
    pub fn count(&mut self, call: Call) {
        self.calls += 1;
        // Recursion can count the same time many times over.
        self.elapsed = self.elapsed.saturating_add(call.elapsed);
        self.max = self.max.max(call.net);
        self.min = self.min.min(call.net);
        self.slow(call.elapsed, call.begin);
        self.histogram.count(bucket_of(Nanoseconds(call.elapsed)), call.begin);
    }

    #[inline]
    fn slow(&mut self, elapsed: u64, begin: u64) {
        if elapsed > self.slowest || (elapsed == self.slowest && begin < self.slowest_at) {
            (self.slowest, self.slowest_at) = (elapsed, begin);
        }
    }

    /// Adds what was counted elsewhere, but for the histogram.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.net = self.net.wrapping_add(other.net);
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
        self.slow(other.slowest, other.slowest_at);
    }
}

/// A bucket: how many calls, and when the first of them began.
pub(crate) type Bucket = (u64, u64);

/// A histogram with room from its first bucket that is not empty to its last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    first: u32,
    buckets: Vec<Bucket>,
}

/// An empty bucket: any call is earlier.
const VACANT: Bucket = (0, u64::MAX);

impl Histogram {
    #[inline]
    fn count(&mut self, bucket: u32, begin: u64) {
        let at = bucket.wrapping_sub(self.first) as usize;
        match self.buckets.get_mut(at) {
            Some(found) => *found = (found.0 + 1, found.1.min(begin)),
            None => self.add(bucket, (1, begin)),
        }
    }

    /// Adds to a bucket for which there may be no room yet.
    #[cold]
    fn add(&mut self, bucket: u32, (count, begin): Bucket) {
        if self.buckets.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = (self.first - bucket) as usize;
            self.buckets.splice(0..0, std::iter::repeat_n(VACANT, more));
            self.first = bucket;
        }
        let at = (bucket - self.first) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, VACANT);
        }
        let found = &mut self.buckets[at];
        *found = (found.0 + count, found.1.min(begin));
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, counted) in other.rows() {
            self.add(bucket, counted);
        }
    }

    /// The buckets that are not empty, in order.
    pub fn rows(&self) -> impl Iterator<Item = (u32, Bucket)> + '_ {
        (self.first..).zip(self.buckets.iter().copied()).filter(|(_, (count, _))| *count > 0)
    }
}

/// Region and arc.
pub(crate) type AccountKey = (u32, ArcKey);

/// The accounts of all regions.
#[derive(Default)]
pub(crate) struct Accounts {
    pub rows: Vec<Account>,
    keys: Vec<AccountKey>,
    numbers: HashMap<AccountKey, u32, Mixed>,
}

impl Accounts {
    /// The number of an arc's account.
    pub fn number(&mut self, key: AccountKey) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.rows.push(Account::EMPTY);
            self.keys.push(key);
            self.rows.len() as u32 - 1
        })
    }

    #[inline]
    pub fn get(&mut self, number: u32) -> &mut Account {
        &mut self.rows[number as usize]
    }

    /// Adds other accounts; returns their numbers here.
    pub fn merge(&mut self, other: Self) -> Vec<u32> {
        let rows = other.keys.into_iter().zip(other.rows);
        rows.map(|(key, row)| {
            let number = self.number(key);
            let mine = self.get(number);
            mine.add(&row);
            match mine.histogram.buckets.is_empty() {
                true => mine.histogram = row.histogram,
                false => mine.histogram.merge(&row.histogram),
            }
            number
        })
        .collect()
    }

    /// All accounts with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (AccountKey, &Account)> {
        self.keys.iter().copied().zip(&self.rows)
    }

    /// All accounts by region and arc.
    pub fn sorted(self) -> Vec<(AccountKey, Account)> {
        let mut rows: Vec<_> = self.keys.into_iter().zip(self.rows).collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn keys_hold_what_went_in() {
        for how in [How::Call, How::Jump, How::Interrupt, How::Exception, How::Syscall] {
            let key = ArcKey::new(NO_CALLER, FUNCTION_LIMIT as u32 - 1, how);
            assert_eq!((key.caller(), key.callee(), key.how()), (NO_CALLER, (1 << 29) - 1, how));
        }
    }

    #[test]
    fn of_the_slowest_calls_the_first_is_kept() {
        let mut account = Account::EMPTY;
        for (elapsed, begin) in [(5, 30), (9, 50), (9, 20), (9, 70), (0, 10)] {
            account.count(Call { net: elapsed, elapsed, begin });
        }
        assert_eq!((account.slowest, account.slowest_at), (9, 20));
        assert_eq!((account.calls, account.max, account.min), (5, 9, 0));
    }

    proptest! {
        #[test]
        fn a_histogram_is_a_map(calls in prop::collection::vec((0u32..252, 0u64..100), 0..60), cut in 0usize..60) {
            let mut map: BTreeMap<u32, Bucket> = BTreeMap::new();
            let mut parts = [Histogram::default(), Histogram::default()];
            for (i, &(bucket, begin)) in calls.iter().enumerate() {
                parts[usize::from(i < cut)].count(bucket, begin);
                let found = map.entry(bucket).or_insert(VACANT);
                *found = (found.0 + 1, found.1.min(begin));
            }
            let [mut first, second] = parts;
            first.merge(&second);
            prop_assert_eq!(first.rows().collect::<BTreeMap<_, _>>(), map);
        }
    }
}
