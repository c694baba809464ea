//! Time of threads off the CPU, from every context switch and every wake-up.
//!
//! A thread that loses the CPU is either blocked until something wakes it, or runnable until it gets
//! a CPU again. Both times are sums by call path and by what woke the thread; no event is kept.

use super::wait_totals::WaitTotals;
use kerntune_profile::{bucket_of, Ticks};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// Cause for which a thread became runnable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WakeCause {
    /// Nothing that was seen.
    Unknown,
    /// Nothing: the CPU was taken from it.
    Preempted,
    /// An interrupt.
    Interrupt,
    /// A thread, by the index of its name.
    Thread(u32),
}

/// Threads of a name that were blocked at a call path and woken at another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockedKey {
    /// Index of the thread's name.
    pub comm: u32,
    /// Node of the path in which it went to sleep.
    pub path: u32,
    /// Cause of its wake-up.
    pub waker: WakeCause,
    /// Node of the path that woke it.
    pub waker_path: u32,
}

/// Threads of a name that waited for a CPU, by the bucket of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DelayKey {
    /// Index of the thread's name.
    pub comm: u32,
    /// Cause for which it became runnable.
    pub waker: WakeCause,
    /// Bucket of the time.
    pub bucket: u32,
}

/// Thread that lost the CPU.
#[derive(Debug, Clone, Copy)]
pub struct SwitchedOut {
    /// Thread id; 0 for an idle task.
    pub tid: u32,
    /// Index of its name.
    pub comm: u32,
    /// State in which it left.
    pub state: LeftState,
    /// Node of its call path.
    pub path: u32,
}

/// State in which a thread left the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftState {
    /// It could have gone on.
    Runnable,
    /// It waits.
    Blocked,
    /// It has ended.
    Ended,
}

/// State of a thread off the CPU, since a time in ns.
#[derive(Debug, Clone, Copy)]
enum Waiting {
    Blocked { since: u64, path: u32, comm: u32 },
    Runnable { since: u64, waker: WakeCause },
}

/// Sums of the time off the CPU.
#[derive(Debug, Clone)]
pub struct OffCpuTable {
    waiting: FxHashMap<u32, Waiting>,
    blocked: FxHashMap<BlockedKey, WaitTotals>,
    delays: FxHashMap<DelayKey, WaitTotals>,
    max: usize,
    /// Threads to which the sums are restricted.
    followed: Option<FxHashSet<u32>>,
    /// Waits that found no room.
    pub crowded: u64,
}

impl OffCpuTable {
    /// Creates tables of at most `max` rows each and allocates their memory.
    pub fn new(max: usize) -> Self {
        Self {
            waiting: FxHashMap::with_capacity_and_hasher(max, FxBuildHasher),
            blocked: FxHashMap::with_capacity_and_hasher(max, FxBuildHasher),
            delays: FxHashMap::with_capacity_and_hasher(max, FxBuildHasher),
            max,
            followed: None,
            crowded: 0,
        }
    }

    /// Returns an upper bound for the tables' memory, in bytes.
    pub fn bound(max: usize) -> usize {
        let entries = max.saturating_mul(8).div_ceil(7).next_power_of_two();
        let row = size_of::<(u32, Waiting)>()
            + size_of::<(BlockedKey, WaitTotals)>()
            + size_of::<(DelayKey, WaitTotals)>()
            + size_of::<u32>();
        entries.saturating_mul(row + 4)
    }

    /// Restricts the sums to these threads and what they start.
    pub fn follow(&mut self, threads: impl IntoIterator<Item = u32>) {
        self.followed = Some(threads.into_iter().collect());
    }

    /// Checks whether a thread is one of those to which the sums are restricted.
    pub fn follows(&self, tid: u32) -> bool {
        tid != 0 && self.followed.as_ref().is_none_or(|threads| threads.contains(&tid))
    }

    /// Handles the start of a thread by a followed one.
    pub fn forked(&mut self, tid: u32) {
        if let Some(threads) = self.followed.as_mut().filter(|threads| threads.len() < self.max) {
            threads.insert(tid);
        }
    }

    /// Handles the end of a thread.
    pub fn ended(&mut self, tid: u32) {
        self.waiting.remove(&tid);
        if let Some(threads) = &mut self.followed {
            threads.remove(&tid);
        }
    }

    /// Handles a context switch at `time` in ns; `next` is the thread that gets the CPU, with the
    /// index of its name. A thread that is not followed does not count.
    pub fn switched(&mut self, time: u64, out: Option<SwitchedOut>, next: Option<(u32, u32)>) {
        if let Some(SwitchedOut { tid, comm, state, path }) = out {
            let state = match state {
                LeftState::Runnable => Some(Waiting::Runnable { since: time, waker: WakeCause::Preempted }),
                LeftState::Blocked => Some(Waiting::Blocked { since: time, path, comm }),
                LeftState::Ended => None,
            };
            match state {
                Some(state) => self.wait(tid, state),
                None => drop(self.waiting.remove(&tid)),
            }
        }
        let Some((tid, comm)) = next else { return };
        match self.waiting.remove(&tid) {
            Some(Waiting::Runnable { since, waker }) => {
                let ns = time.saturating_sub(since);
                self.delay(DelayKey { comm, waker, bucket: bucket_of(Ticks(ns)) }, ns);
            }
            // The wake-up was lost, or came before the record of the switch.
            Some(Waiting::Blocked { since, path, comm }) => {
                let key = BlockedKey { comm, path, waker: WakeCause::Unknown, waker_path: u32::MAX };
                self.block(key, time.saturating_sub(since));
            }
            None => {}
        }
    }

    /// Checks whether a thread is known to be blocked.
    pub fn is_blocked(&self, tid: u32) -> bool {
        matches!(self.waiting.get(&tid), Some(Waiting::Blocked { .. }))
    }

    /// Handles a wake-up at `time` in ns of a thread that [is blocked](Self::is_blocked).
    pub fn woken(&mut self, time: u64, tid: u32, waker: WakeCause, waker_path: u32) {
        let Some(Waiting::Blocked { since, path, comm }) = self.waiting.get(&tid).copied() else { return };
        self.block(BlockedKey { comm, path, waker, waker_path }, time.saturating_sub(since));
        self.wait(tid, Waiting::Runnable { since: time, waker });
    }

    /// Handles the first wake-up of a new thread at `time` in ns.
    pub fn started(&mut self, time: u64, tid: u32, waker: WakeCause) {
        self.wait(tid, Waiting::Runnable { since: time, waker });
    }

    fn wait(&mut self, tid: u32, state: Waiting) {
        if self.waiting.len() < self.max || self.waiting.contains_key(&tid) {
            self.waiting.insert(tid, state);
        } else {
            self.crowded += 1;
        }
    }

    fn block(&mut self, key: BlockedKey, ns: u64) {
        if !super::wait_totals::add(&mut self.blocked, self.max, key, ns) {
            self.crowded += 1;
        }
    }

    fn delay(&mut self, key: DelayKey, ns: u64) {
        if !super::wait_totals::add(&mut self.delays, self.max, key, ns) {
            self.crowded += 1;
        }
    }

    /// Returns the times for which threads were blocked, sorted.
    pub fn blocked(&self) -> Vec<(BlockedKey, WaitTotals)> {
        super::wait_totals::sorted(&self.blocked)
    }

    /// Returns the times for which threads waited for a CPU, sorted.
    pub fn delays(&self) -> Vec<(DelayKey, WaitTotals)> {
        super::wait_totals::sorted(&self.delays)
    }

    /// Removes all sums, and waits that have begun.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.blocked.clear();
        self.delays.clear();
        self.crowded = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(tid: u32, state: LeftState) -> Option<SwitchedOut> {
        Some(SwitchedOut { tid, comm: tid, state, path: 7 })
    }

    #[test]
    fn a_thread_is_blocked_until_it_is_woken_and_then_waits_for_a_cpu() {
        let mut table = OffCpuTable::new(8);
        table.switched(100, out(1, LeftState::Blocked), None);
        assert!(table.is_blocked(1));
        table.woken(150, 1, WakeCause::Thread(2), 9);
        // A second wake-up of a runnable thread has no effect.
        table.woken(160, 1, WakeCause::Interrupt, 9);
        table.switched(157, out(2, LeftState::Runnable), Some((1, 1)));
        let key = BlockedKey { comm: 1, path: 7, waker: WakeCause::Thread(2), waker_path: 9 };
        assert_eq!(table.blocked(), [(key, WaitTotals { count: 1, ns: 50, max: 50 })]);
        let key = DelayKey { comm: 1, waker: WakeCause::Thread(2), bucket: bucket_of(Ticks(7)) };
        assert_eq!(table.delays(), [(key, WaitTotals { count: 1, ns: 7, max: 7 })]);
        // Preempted at 157, and there again at 200.
        table.switched(200, out(1, LeftState::Ended), Some((2, 2)));
        let key = DelayKey { comm: 2, waker: WakeCause::Preempted, bucket: bucket_of(Ticks(43)) };
        assert!(table.delays().contains(&(key, WaitTotals { count: 1, ns: 43, max: 43 })));
        table.switched(300, None, Some((1, 1)));
        assert_eq!((table.blocked().len(), table.delays().len()), (1, 2));
    }

    #[test]
    fn a_wake_up_that_was_not_seen_is_unknown() {
        let mut table = OffCpuTable::new(8);
        table.switched(10, out(1, LeftState::Blocked), None);
        table.switched(30, None, Some((1, 1)));
        let key = BlockedKey { comm: 1, path: 7, waker: WakeCause::Unknown, waker_path: u32::MAX };
        assert_eq!(table.blocked(), [(key, WaitTotals { count: 1, ns: 20, max: 20 })]);
        assert!(table.delays().is_empty());
    }

    #[test]
    fn only_followed_threads_and_what_they_start_count() {
        let mut table = OffCpuTable::new(2);
        table.follow([5]);
        assert!(table.follows(5) && !table.follows(6) && !table.follows(0));
        table.forked(6);
        assert!(table.follows(6));
        table.ended(6);
        assert!(!table.follows(6));
        for tid in 1..4 {
            table.started(0, tid, WakeCause::Interrupt);
        }
        assert_eq!(table.crowded, 1);
        table.clear();
        assert_eq!((table.crowded, table.follows(5)), (0, true));
    }
}
