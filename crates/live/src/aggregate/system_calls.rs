//! System calls with their times and errors, from every entry and exit.

use super::wait_totals::sorted;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// System call of the threads of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SystemCallKey {
    /// Index of the thread's name.
    pub comm: u32,
    /// Number of the system call.
    pub number: u32,
    /// True for the numbers of 32-bit programs.
    pub is_compat: bool,
}

/// Counts and times of a system call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemCallTotals {
    /// Calls that were made.
    pub calls: u64,
    /// Calls of them that returned.
    pub ended: u64,
    /// Calls of them that returned an error.
    pub errors: u64,
    /// Time of the calls that returned, from entry to exit, in ns.
    pub ns: u64,
    /// Longest of them, in ns.
    pub max: u64,
}

/// Sums of system calls.
#[derive(Debug, Clone)]
pub struct SystemCallTable {
    open: FxHashMap<u32, (SystemCallKey, u64)>,
    sums: FxHashMap<SystemCallKey, SystemCallTotals>,
    max: usize,
    /// Calls that found no room.
    pub crowded: u64,
}

/// Greatest error number (`MAX_ERRNO`).
const MAX_ERRNO: i64 = 4095;

impl SystemCallTable {
    /// Creates tables of at most `max` rows each and allocates their memory.
    pub fn new(max: usize) -> Self {
        Self {
            open: FxHashMap::with_capacity_and_hasher(max, FxBuildHasher),
            sums: FxHashMap::with_capacity_and_hasher(max, FxBuildHasher),
            max,
            crowded: 0,
        }
    }

    /// Returns an upper bound for the tables' memory, in bytes.
    pub fn bound(max: usize) -> usize {
        let entries = max.saturating_mul(8).div_ceil(7).next_power_of_two();
        let row = size_of::<(u32, (SystemCallKey, u64))>() + size_of::<(SystemCallKey, SystemCallTotals)>();
        entries.saturating_mul(row + 2)
    }

    /// Handles an entry at `time` in ns.
    pub fn enter(&mut self, time: u64, tid: u32, key: SystemCallKey) {
        if self.sums.len() >= self.max && !self.sums.contains_key(&key)
            || self.open.len() >= self.max && !self.open.contains_key(&tid)
        {
            self.crowded += 1;
            return;
        }
        self.sums.entry(key).or_default().calls += 1;
        self.open.insert(tid, (key, time));
    }

    /// Handles an exit at `time` in ns with what the call returned. A call that began before the
    /// table is left out.
    pub fn exit(&mut self, time: u64, tid: u32, number: u32, returned: i64) {
        let Some((key, since)) = self.open.remove(&tid).filter(|(key, _)| key.number == number) else {
            return;
        };
        let ns = time.saturating_sub(since);
        let totals = self.sums.entry(key).or_default();
        totals.ended += 1;
        totals.errors += u64::from((-MAX_ERRNO..0).contains(&returned));
        totals.ns = totals.ns.saturating_add(ns);
        totals.max = totals.max.max(ns);
    }

    /// Handles the end of a thread.
    pub fn ended(&mut self, tid: u32) {
        self.open.remove(&tid);
    }

    /// Returns the sums, sorted.
    pub fn rows(&self) -> Vec<(SystemCallKey, SystemCallTotals)> {
        sorted(&self.sums)
    }

    /// Removes all sums, and calls that have begun.
    pub fn clear(&mut self) {
        self.open.clear();
        self.sums.clear();
        self.crowded = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_times_and_errors_and_some_never_end() {
        let mut table = SystemCallTable::new(2);
        let read = SystemCallKey { comm: 3, number: 0, is_compat: false };
        table.exit(5, 7, 0, 1);
        table.enter(10, 7, read);
        table.exit(30, 7, 0, 100);
        table.enter(40, 7, read);
        table.exit(45, 7, 0, -11);
        // An address in the upper half of the memory is no error.
        table.enter(50, 7, read);
        table.exit(51, 7, 0, -4096);
        table.enter(60, 7, SystemCallKey { number: 231, ..read });
        table.ended(7);
        table.enter(70, 8, SystemCallKey { number: 9, ..read });
        let expected = [
            (read, SystemCallTotals { calls: 3, ended: 3, errors: 1, ns: 26, max: 20 }),
            (
                SystemCallKey { number: 231, ..read },
                SystemCallTotals { calls: 1, ..SystemCallTotals::default() },
            ),
        ];
        assert_eq!(table.rows(), expected);
        assert_eq!(table.crowded, 1);
    }
}
