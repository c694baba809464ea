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
        How::from_code(self.0 as u8 & 7).unwrap_or(How::Syscall)
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

/// What was counted of an arc in a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub sums: Sums,
    pub interrupted: Interrupted,
    /// When the first of the slowest calls began.
    pub slowest_at: u64,
    pub histogram: Histogram,
}

impl Account {
    /// Calls that were made in the region.
    pub fn calls(&self) -> u64 {
        self.sums.calls + self.interrupted.calls
    }

    /// Calls that ended in the region.
    pub fn ended(&self) -> u64 {
        self.sums.calls + self.interrupted.ended
    }

    /// The callee's net time that passed in the region, whether or not its call ended there.
    pub fn net(&self) -> u64 {
        self.sums.net.wrapping_add(self.interrupted.net)
    }

    /// The whole net time of the calls that ended in the region.
    pub fn ended_net(&self) -> u64 {
        self.sums.net.wrapping_add(self.interrupted.ended_net)
    }
}

/// What is counted apart of calls that were open when the region changed or the chunk ended: they may end
/// in another region, or never. They are few, and what is counted of each call has no room for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Interrupted {
    /// How many were made in the region.
    pub calls: u64,
    /// How many ended in it.
    pub ended: u64,
    /// Their net time that passed in the region.
    pub net: u64,
    /// The whole net time of those that ended in it.
    pub ended_net: u64,
}

impl Interrupted {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.ended += other.ended;
        self.net = self.net.wrapping_add(other.net);
        self.ended_net = self.ended_net.wrapping_add(other.ended_net);
    }
}

/// What is counted of every call over an arc: one cache line, as waiting for these is what an analysis
/// spends its time with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Sums {
    /// Calls that were made and ended in the region, but for [`Interrupted`] ones.
    pub calls: u64,
    /// Their net time.
    pub net: u64,
    /// From here on: of all calls that ended.
    pub elapsed: u64,
    pub max: u64,
    pub min: u64,
    /// Greatest elapsed time of one call.
    pub slowest: u64,
    /// How many calls in a row were in one bucket that the histogram does not have yet, that bucket, and
    /// when the first of them began.
    row: u32,
    bucket: u32,
    begin: u64,
}

/// No bucket.
const NO_BUCKET: u32 = u32::MAX;

impl Sums {
    pub const NONE: Self = Self {
        calls: 0,
        net: 0,
        elapsed: 0,
        max: 0,
        min: u64::MAX,
        slowest: 0,
        row: 0,
        bucket: NO_BUCKET,
        begin: u64::MAX,
    };

    /// Adds what was counted elsewhere; the row is left out.
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.net = self.net.wrapping_add(other.net);
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
        self.slowest = self.slowest.max(other.slowest);
    }

    /// Gives the calls in a row to the histogram.
    fn end_row(&mut self, histogram: &mut Histogram) {
        let Self { row, bucket, begin, .. } =
            std::mem::replace(self, Self { row: 0, bucket: NO_BUCKET, begin: u64::MAX, ..*self });
        if bucket != NO_BUCKET {
            histogram.add(bucket, (row.into(), begin));
        }
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
    /// Adds to a bucket for which there may be no room yet.
    fn add(&mut self, bucket: u32, (count, begin): Bucket) {
        let at = bucket.wrapping_sub(self.first) as usize;
        match self.buckets.get_mut(at) {
            Some(found) => *found = (found.0 + count, found.1.min(begin)),
            None => self.widen(bucket, (count, begin)),
        }
    }

    #[cold]
    fn widen(&mut self, bucket: u32, (count, begin): Bucket) {
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
    rows: Vec<Sums>,
    interrupted: Vec<Interrupted>,
    /// See [`Account::slowest_at`].
    slowest_at: Vec<u64>,
    histograms: Vec<Histogram>,
    keys: Vec<AccountKey>,
    numbers: HashMap<AccountKey, u32, Mixed>,
}

impl Accounts {
    /// The number of an arc's account.
    pub fn number(&mut self, key: AccountKey) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.rows.push(Sums::NONE);
            self.interrupted.push(Interrupted::default());
            self.slowest_at.push(u64::MAX);
            self.histograms.push(Histogram::default());
            self.keys.push(key);
            self.rows.len() as u32 - 1
        })
    }

    /// What is counted of interrupted calls.
    pub fn interrupted(&mut self, number: u32) -> &mut Interrupted {
        &mut self.interrupted[number as usize]
    }

    /// Counts a call that was made and ended with nothing between.
    #[inline]
    pub fn count(&mut self, number: u32, call: Call) {
        let sums = &mut self.rows[number as usize];
        sums.calls += 1;
        sums.net = sums.net.wrapping_add(call.net);
        self.ended(number, call);
    }

    /// Counts the end of an interrupted call; that it was made, and its net time in the region, is counted already.
    pub fn end_interrupted(&mut self, number: u32, call: Call) {
        let interrupted = self.interrupted(number);
        interrupted.ended += 1;
        interrupted.ended_net = interrupted.ended_net.wrapping_add(call.net);
        self.ended(number, call);
    }

    /// Counts calls that are like others which were counted before, earlier in virtual time: as many, all of one
    /// bucket, with these times together. So there is no new extreme and no new first.
    pub fn repeat(&mut self, number: u32, bucket: u32, calls: u64, net: u64, elapsed: u64) {
        let sums = &mut self.rows[number as usize];
        sums.calls += calls;
        sums.net = sums.net.wrapping_add(net);
        sums.elapsed = sums.elapsed.saturating_add(elapsed);
        self.histograms[number as usize].add(bucket, (calls, u64::MAX));
    }

    /// What is counted of any call that ended.
    #[inline(always)]
    fn ended(&mut self, number: u32, Call { net, elapsed, begin }: Call) {
        let bucket = bucket_of(Nanoseconds(elapsed));
        let sums = &mut self.rows[number as usize];
        // Recursion can count the same time many times over.
        sums.elapsed = sums.elapsed.saturating_add(elapsed);
        sums.max = sums.max.max(net);
        sums.min = sums.min.min(net);
        if elapsed >= sums.slowest {
            let slowest_at = &mut self.slowest_at[number as usize];
            if elapsed > sums.slowest || begin < *slowest_at {
                (sums.slowest, *slowest_at) = (elapsed, begin);
            }
        }
        if sums.bucket != bucket || sums.row == u32::MAX {
            sums.end_row(&mut self.histograms[number as usize]);
            (sums.row, sums.bucket, sums.begin) = (0, bucket, begin);
        }
        sums.row += 1;
        sums.begin = sums.begin.min(begin);
    }

    /// Histograms have all calls.
    fn settle(&mut self) {
        for (sums, histogram) in self.rows.iter_mut().zip(&mut self.histograms) {
            sums.end_row(histogram);
        }
    }

    /// Adds other accounts; returns their numbers here.
    pub fn merge(&mut self, mut other: Self) -> Vec<u32> {
        self.settle();
        other.settle();
        let sums = other.rows.iter().zip(&other.interrupted);
        let slowest = other.rows.iter().map(|row| row.slowest).zip(other.slowest_at);
        let rows = other.keys.into_iter().zip(sums.zip(slowest).zip(other.histograms));
        rows.map(|(key, (((row, interrupted), (slowest, slowest_at)), histogram))| {
            let number = self.number(key);
            let at = number as usize;
            self.interrupted[at].add(interrupted);
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

    /// Region and arc of an account.
    pub fn key(&self, number: u32) -> Option<AccountKey> {
        self.keys.get(number as usize).copied()
    }

    /// Each account's key, the calls that were made, and the net time.
    pub fn iter(&self) -> impl Iterator<Item = (AccountKey, u64, u64)> + '_ {
        let sums = self.rows.iter().zip(&self.interrupted);
        let sums = sums.map(|(sums, other)| (sums.calls + other.calls, sums.net.wrapping_add(other.net)));
        self.keys.iter().zip(sums).map(|(key, (calls, net))| (*key, calls, net))
    }

    /// All accounts by region and arc.
    pub fn sorted(mut self) -> Vec<(AccountKey, Account)> {
        self.settle();
        let sums = self.rows.into_iter().zip(self.interrupted);
        let accounts = sums.zip(self.slowest_at).zip(self.histograms);
        let accounts = accounts.map(|(((sums, interrupted), slowest_at), histogram)| Account {
            sums,
            interrupted,
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
        for how in [How::Call, How::Jump, How::Interrupt, How::Exception, How::Syscall] {
            let key = ArcKey::new(NO_CALLER, FUNCTION_LIMIT as u32 - 1, how);
            assert_eq!((key.caller(), key.callee(), key.how()), (NO_CALLER, (1 << 29) - 1, how));
        }
    }

    #[test]
    fn of_the_slowest_calls_the_first_is_kept() {
        let mut accounts = Accounts::default();
        let number = accounts.number((0, ArcKey::new(NO_CALLER, 0, How::Call)));
        for (elapsed, begin) in [(5, 30), (9, 50), (9, 20), (9, 70), (0, 10)] {
            accounts.count(number, Call { net: elapsed, elapsed, begin });
        }
        let (_, Account { sums, slowest_at, .. }) = accounts.sorted().remove(0);
        assert_eq!((sums.slowest, slowest_at), (9, 20));
        assert_eq!((sums.calls, sums.max, sums.min), (5, 9, 0));
    }

    proptest! {
        #[test]
        fn a_histogram_is_a_map(
            // Times of one region of buckets, so that there are calls in a row in one.
            calls in prop::collection::vec((0u64..3000, 0u64..100, 0u32..2, any::<bool>()), 0..200),
        ) {
            let mut map: BTreeMap<(u32, u32), Bucket> = BTreeMap::new();
            let mut parts = [Accounts::default(), Accounts::default()];
            for &(elapsed, begin, arc, second) in &calls {
                let part = &mut parts[usize::from(second)];
                let number = part.number((arc, ArcKey::new(NO_CALLER, arc, How::Call)));
                part.count(number, Call { net: 0, elapsed, begin });
                let found = map.entry((arc, bucket_of(Nanoseconds(elapsed)))).or_insert(VACANT);
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
