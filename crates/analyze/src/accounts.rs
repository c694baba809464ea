//! Counters of the calls over one arc.

use crate::hash::BuildIntegerHasher;
use kerntune_profile::{bucket_of, Ticks};
use kerntune_trace::EnterKind;
use std::collections::HashMap;

/// Caller of functions that no function called.
pub(crate) const NO_CALLER: u32 = u32::MAX;
/// Upper bound of function numbers, so that an arc fits into 64 bits.
pub(crate) const FUNCTION_LIMIT: usize = 1 << 29;

/// Caller, callee and kind of entry, packed into one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ArcKey(u64);

impl ArcKey {
    #[inline]
    pub fn new(caller: u32, callee: u32, how: EnterKind) -> Self {
        Self(u64::from(caller) << 32 | u64::from(callee) << 3 | how as u64)
    }

    pub fn caller(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn callee(self) -> u32 {
        self.0 as u32 >> 3
    }

    pub fn how(self) -> EnterKind {
        EnterKind::from_code(self.0 as u8 & 7).unwrap_or(EnterKind::Syscall)
    }
}

/// Times of a call that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedCall {
    pub self_time: u64,
    pub total: u64,
    /// Virtual time of the entry.
    pub begin: u64,
}

/// Counters of an arc in a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArcAccount {
    pub sums: ArcSums,
    pub spanning: SpanningCalls,
    /// Virtual time at which the first of the slowest calls began.
    pub slowest_at: u64,
    pub histogram: CallHistogram,
}

impl ArcAccount {
    /// Number of calls that were made in the region.
    pub fn calls(&self) -> u64 {
        self.sums.calls + self.spanning.calls
    }

    /// Number of calls that ended in the region.
    pub fn ended(&self) -> u64 {
        self.sums.calls + self.spanning.ended
    }

    /// The callee's self time that passed in the region, whether or not its calls ended there.
    pub fn self_time(&self) -> u64 {
        self.sums.self_time.wrapping_add(self.spanning.self_time)
    }

    /// Self time of the calls that ended in the region, over their whole length.
    pub fn ended_self_time(&self) -> u64 {
        self.sums.self_time.wrapping_add(self.spanning.ended_self_time)
    }
}

/// Counters of calls that were open when the region changed or the chunk ended: they may end in
/// another region, or never. They are few, and are kept out of the hot [`ArcSums`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SpanningCalls {
    /// Calls that were made in the region.
    pub calls: u64,
    /// Calls that ended in the region.
    pub ended: u64,
    /// Self time that passed in the region.
    pub self_time: u64,
    /// Self time of the calls that ended in the region, over their whole length.
    pub ended_self_time: u64,
}

impl SpanningCalls {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.ended += other.ended;
        self.self_time = self.self_time.wrapping_add(other.self_time);
        self.ended_self_time = self.ended_self_time.wrapping_add(other.ended_self_time);
    }
}

/// Counters that every call updates. They fill one cache line, since an analysis spends most of its
/// time on misses here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct ArcSums {
    /// Calls that were made and ended in the region, without [`SpanningCalls`].
    pub calls: u64,
    /// Self time of these calls.
    pub self_time: u64,
    /// This and the following: of all calls that ended.
    pub total: u64,
    pub max: u64,
    pub min: u64,
    /// Greatest total time of one call.
    pub slowest: u64,
    /// Number of consecutive calls in one bucket that the histogram does not have yet, that bucket,
    /// and the virtual time at which the first of them began.
    row: u32,
    bucket: u32,
    begin: u64,
}

const NO_BUCKET: u32 = u32::MAX;

impl ArcSums {
    pub const NONE: Self = Self {
        calls: 0,
        self_time: 0,
        total: 0,
        max: 0,
        min: u64::MAX,
        slowest: 0,
        row: 0,
        bucket: NO_BUCKET,
        begin: u64::MAX,
    };

    /// Adds other counters, without their consecutive calls (`row`).
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.self_time = self.self_time.wrapping_add(other.self_time);
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
        self.slowest = self.slowest.max(other.slowest);
    }

    /// Adds the consecutive calls to the histogram.
    fn end_row(&mut self, histogram: &mut CallHistogram) {
        let Self { row, bucket, begin, .. } =
            std::mem::replace(self, Self { row: 0, bucket: NO_BUCKET, begin: u64::MAX, ..*self });
        if bucket != NO_BUCKET {
            histogram.add(bucket, (row.into(), begin));
        }
    }
}

/// Number of calls in a bucket, and the virtual time at which the first of them began.
pub(crate) type BucketCount = (u64, u64);

/// A histogram that stores the buckets from the first to the last that is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallHistogram {
    first: u32,
    buckets: Vec<BucketCount>,
}

/// An empty bucket: any call is earlier.
const VACANT: BucketCount = (0, u64::MAX);

impl CallHistogram {
    /// Adds to a bucket, which may lie outside of the stored ones.
    fn add(&mut self, bucket: u32, (count, begin): BucketCount) {
        let at = bucket.wrapping_sub(self.first) as usize;
        match self.buckets.get_mut(at) {
            Some(found) => *found = (found.0 + count, found.1.min(begin)),
            None => self.widen(bucket, (count, begin)),
        }
    }

    #[cold]
    fn widen(&mut self, bucket: u32, (count, begin): BucketCount) {
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

    /// Returns the buckets that are not empty, in order.
    pub fn rows(&self) -> impl Iterator<Item = (u32, BucketCount)> + '_ {
        (self.first..).zip(self.buckets.iter().copied()).filter(|(_, (count, _))| *count > 0)
    }
}

/// Region and arc.
pub(crate) type AccountKey = (u32, ArcKey);

/// The accounts of all regions.
#[derive(Default)]
pub(crate) struct ArcAccounts {
    rows: Vec<ArcSums>,
    spanning: Vec<SpanningCalls>,
    /// See [`ArcAccount::slowest_at`].
    slowest_at: Vec<u64>,
    histograms: Vec<CallHistogram>,
    keys: Vec<AccountKey>,
    numbers: HashMap<AccountKey, u32, BuildIntegerHasher>,
}

impl ArcAccounts {
    /// Returns the number of an arc's account; makes the account if there is none.
    pub fn number(&mut self, key: AccountKey) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.rows.push(ArcSums::NONE);
            self.spanning.push(SpanningCalls::default());
            self.slowest_at.push(u64::MAX);
            self.histograms.push(CallHistogram::default());
            self.keys.push(key);
            self.rows.len() as u32 - 1
        })
    }

    /// Returns the counters of spanning calls of an account.
    pub fn spanning(&mut self, number: u32) -> &mut SpanningCalls {
        &mut self.spanning[number as usize]
    }

    /// Counts a call that was made and ended without a flush in between.
    #[inline]
    pub fn count(&mut self, number: u32, call: EndedCall) {
        let sums = &mut self.rows[number as usize];
        sums.calls += 1;
        sums.self_time = sums.self_time.wrapping_add(call.self_time);
        self.ended(number, call);
    }

    /// Counts the end of a spanning call; its entry, and its self time in the region, are counted
    /// already.
    pub fn end_spanning(&mut self, number: u32, call: EndedCall) {
        let spanning = self.spanning(number);
        spanning.ended += 1;
        spanning.ended_self_time = spanning.ended_self_time.wrapping_add(call.self_time);
        self.ended(number, call);
    }

    /// Counts calls that repeat earlier ones: `calls` of them, all in one bucket, with these sums
    /// of times. There can be no new extreme and no earlier first call.
    pub fn repeat(&mut self, number: u32, bucket: u32, calls: u64, self_time: u64, total: u64) {
        let sums = &mut self.rows[number as usize];
        sums.calls += calls;
        sums.self_time = sums.self_time.wrapping_add(self_time);
        sums.total = sums.total.saturating_add(total);
        self.histograms[number as usize].add(bucket, (calls, u64::MAX));
    }

    /// Counts the end of any call.
    #[inline(always)]
    fn ended(&mut self, number: u32, EndedCall { self_time, total, begin }: EndedCall) {
        let bucket = bucket_of(Ticks(total));
        let sums = &mut self.rows[number as usize];
        // Recursion can count the same time many times over.
        sums.total = sums.total.saturating_add(total);
        sums.max = sums.max.max(self_time);
        sums.min = sums.min.min(self_time);
        if total >= sums.slowest {
            let slowest_at = &mut self.slowest_at[number as usize];
            if total > sums.slowest || begin < *slowest_at {
                (sums.slowest, *slowest_at) = (total, begin);
            }
        }
        if sums.bucket != bucket || sums.row == u32::MAX {
            sums.end_row(&mut self.histograms[number as usize]);
            (sums.row, sums.bucket, sums.begin) = (0, bucket, begin);
        }
        sums.row += 1;
        sums.begin = sums.begin.min(begin);
    }

    /// Moves all consecutive calls into the histograms.
    fn settle(&mut self) {
        for (sums, histogram) in self.rows.iter_mut().zip(&mut self.histograms) {
            sums.end_row(histogram);
        }
    }

    /// Adds other accounts; returns the numbers that they have here.
    pub fn merge(&mut self, mut other: Self) -> Vec<u32> {
        self.settle();
        other.settle();
        let sums = other.rows.iter().zip(&other.spanning);
        let slowest = other.rows.iter().map(|row| row.slowest).zip(other.slowest_at);
        let rows = other.keys.into_iter().zip(sums.zip(slowest).zip(other.histograms));
        rows.map(|(key, (((row, spanning), (slowest, slowest_at)), histogram))| {
            let number = self.number(key);
            let at = number as usize;
            self.spanning[at].add(spanning);
            let mine = self.rows[at].slowest;
            if slowest > mine || (slowest == mine && slowest_at < self.slowest_at[at]) {
                self.slowest_at[at] = slowest_at;
            }
            self.rows[at].add(row);
            let mine = &mut self.histograms[at];
            match mine.buckets.is_empty() {
                true => *mine = histogram,
                false => mine.merge(&histogram),
            }
            number
        })
        .collect()
    }

    /// Returns region and arc of an account.
    pub fn key(&self, number: u32) -> Option<AccountKey> {
        self.keys.get(number as usize).copied()
    }

    /// Iterates over the accounts: key, number of calls made, self time.
    pub fn iter(&self) -> impl Iterator<Item = (AccountKey, u64, u64)> + '_ {
        let sums = self.rows.iter().zip(&self.spanning);
        let sums = sums
            .map(|(sums, other)| (sums.calls + other.calls, sums.self_time.wrapping_add(other.self_time)));
        self.keys.iter().zip(sums).map(|(key, (calls, self_time))| (*key, calls, self_time))
    }

    /// Returns all accounts, sorted by region and arc.
    pub fn sorted(mut self) -> Vec<(AccountKey, ArcAccount)> {
        self.settle();
        let sums = self.rows.into_iter().zip(self.spanning);
        let accounts = sums.zip(self.slowest_at).zip(self.histograms);
        let accounts = accounts.map(|(((sums, spanning), slowest_at), histogram)| ArcAccount {
            sums,
            spanning,
            slowest_at,
            histogram,
        });
        let mut rows: Vec<_> = self.keys.into_iter().zip(accounts).collect();
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
        for how in
            [EnterKind::Call, EnterKind::Jump, EnterKind::Interrupt, EnterKind::Exception, EnterKind::Syscall]
        {
            let key = ArcKey::new(NO_CALLER, FUNCTION_LIMIT as u32 - 1, how);
            assert_eq!((key.caller(), key.callee(), key.how()), (NO_CALLER, (1 << 29) - 1, how));
        }
    }

    #[test]
    fn of_the_slowest_calls_the_first_is_kept() {
        let mut accounts = ArcAccounts::default();
        let number = accounts.number((0, ArcKey::new(NO_CALLER, 0, EnterKind::Call)));
        for (total, begin) in [(5, 30), (9, 50), (9, 20), (9, 70), (0, 10)] {
            accounts.count(number, EndedCall { self_time: total, total, begin });
        }
        let (_, ArcAccount { sums, slowest_at, .. }) = accounts.sorted().remove(0);
        assert_eq!((sums.slowest, slowest_at), (9, 20));
        assert_eq!((sums.calls, sums.max, sums.min), (5, 9, 0));
    }

    proptest! {
        #[test]
        fn a_histogram_is_a_map(
            // Times within few buckets, so that consecutive calls share one.
            calls in prop::collection::vec((0u64..3000, 0u64..100, 0u32..2, any::<bool>()), 0..200),
        ) {
            let mut map: BTreeMap<(u32, u32), BucketCount> = BTreeMap::new();
            let mut parts = [ArcAccounts::default(), ArcAccounts::default()];
            for &(total, begin, arc, second) in &calls {
                let part = &mut parts[usize::from(second)];
                let number = part.number((arc, ArcKey::new(NO_CALLER, arc, EnterKind::Call)));
                part.count(number, EndedCall { self_time: 0, total, begin });
                let found = map.entry((arc, bucket_of(Ticks(total)))).or_insert(VACANT);
                *found = (found.0 + 1, found.1.min(begin));
            }
            let [mut first, second] = parts;
            first.merge(second);
            let mut found = BTreeMap::new();
            for ((arc, _), account) in first.sorted() {
                found.extend(account.histogram.rows().map(|(bucket, counted)| ((arc, bucket), counted)));
            }
            prop_assert_eq!(found, map);
        }
    }
}
