//! Waits for locks, from the begin and the end of every contention.

use super::wait_totals::{add, sorted, WaitTotals};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Lock that was waited for at a call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKey {
    /// Address of the lock; 0 for the locks that found no room.
    pub address: u64,
    /// Flags of the tracepoint (`LCB_F_*` in `include/trace/events/lock.h`).
    pub flags: u32,
    /// Node of the call path.
    pub path: u32,
}

/// Thread that waits: its id, or the CPU for an idle task, all of which have the id 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockWaiter {
    /// Thread id; 0 for an idle task.
    pub tid: u32,
    /// CPU of an idle task; 0 for others, which may continue on another CPU.
    pub cpu: u32,
}

/// Sums of the waits for locks.
#[derive(Debug, Clone)]
pub struct LockTable {
    open: FxHashMap<(LockWaiter, u64), (u64, u32, u32)>,
    sums: FxHashMap<LockKey, WaitTotals>,
    max: usize,
    /// Waits that found no room.
    pub crowded: u64,
}

/// A wait without an end in this time has lost it, in ns.
const STALE_NS: u64 = 60_000_000_000;

impl LockTable {
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
        let row = size_of::<((LockWaiter, u64), (u64, u32, u32))>() + size_of::<(LockKey, WaitTotals)>();
        entries.saturating_mul(row + 2)
    }

    /// Checks whether a wait for a lock has begun and not ended. A mutex reports a begin for each
    /// change from spinning to sleeping and back.
    pub fn is_waiting(&self, waiter: LockWaiter, address: u64) -> bool {
        self.open.contains_key(&(waiter, address))
    }

    /// Handles the begin of a wait at `time` in ns.
    pub fn begin(&mut self, time: u64, waiter: LockWaiter, key: LockKey) {
        if self.open.len() >= self.max {
            self.open.retain(|_, (since, ..)| time.saturating_sub(*since) < STALE_NS);
        }
        if self.open.len() >= self.max {
            self.crowded += 1;
            return;
        }
        self.open.entry((waiter, key.address)).or_insert((time, key.flags, key.path));
    }

    /// Handles the end of a wait at `time` in ns. A wait that began before the table is left out.
    pub fn end(&mut self, time: u64, waiter: LockWaiter, address: u64) {
        let Some((since, flags, path)) = self.open.remove(&(waiter, address)) else { return };
        let ns = time.saturating_sub(since);
        let key = LockKey { address, flags, path };
        // Locks in objects are many. A quarter of the room is for sums of them.
        let of_locks = self.max - self.max / 4;
        if !add(&mut self.sums, of_locks, key, ns)
            && !add(&mut self.sums, self.max, LockKey { address: 0, ..key }, ns)
        {
            self.crowded += 1;
        }
    }

    /// Returns the sums, sorted.
    pub fn rows(&self) -> Vec<(LockKey, WaitTotals)> {
        sorted(&self.sums)
    }

    /// Removes all sums, and waits that have begun.
    pub fn clear(&mut self) {
        self.open.clear();
        self.sums.clear();
        self.crowded = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: LockWaiter = LockWaiter { tid: 7, cpu: 0 };

    #[test]
    fn a_wait_is_from_its_first_begin_to_its_end() {
        let mut table = LockTable::new(8);
        let key = LockKey { address: 0x1000, flags: 0x20, path: 3 };
        table.begin(100, A, key);
        // A spinlock in an interrupt meanwhile, and the mutex's change to sleeping.
        table.begin(110, A, LockKey { address: 0x2000, flags: 0, path: 4 });
        table.end(115, A, 0x2000);
        assert!(table.is_waiting(A, 0x1000));
        table.begin(120, A, LockKey { path: 5, ..key });
        table.end(160, A, 0x1000);
        table.end(170, A, 0x1000);
        let other = LockKey { address: 0x2000, flags: 0, path: 4 };
        let expected = [
            (key, WaitTotals { count: 1, ns: 60, max: 60 }),
            (other, WaitTotals { count: 1, ns: 5, max: 5 }),
        ];
        assert_eq!(table.rows(), expected);
    }

    #[test]
    fn many_locks_of_a_path_share_a_row_and_lost_ends_make_room() {
        let mut table = LockTable::new(4);
        for address in 1..=5 {
            table.begin(0, A, LockKey { address, flags: 0, path: 3 });
            table.end(10, A, address);
        }
        let rows = table.rows();
        assert_eq!(rows.len(), 4);
        assert_eq!(
            rows[0],
            (LockKey { address: 0, flags: 0, path: 3 }, WaitTotals { count: 2, ns: 20, max: 10 })
        );
        for address in 10..15 {
            table.begin(0, A, LockKey { address, flags: 0, path: 3 });
        }
        assert_eq!(table.crowded, 1);
        table.begin(STALE_NS, A, LockKey { address: 20, flags: 0, path: 3 });
        assert!(table.is_waiting(A, 20) && !table.is_waiting(A, 10));
    }
}
