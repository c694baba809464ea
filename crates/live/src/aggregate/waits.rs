//! Waits by call path: the tables that events of tracepoints fill, and the paths that they share.

use super::lock_waits::{LockKey, LockTable, LockWaiter};
use super::off_cpu::{LeftState, OffCpuTable, SwitchedOut, WakeCause};
use super::system_calls::SystemCallTable;
use super::{Aggregate, ChainRole, SampleFrame, SampleTree, CALL_OFFSET};

/// Flag of a wait for a mutex that spins, which changes while the thread waits (`LCB_F_SPIN`).
const MUTEX_SPINS: u32 = 1;
/// Flag of a wait for a mutex (`LCB_F_MUTEX`).
const MUTEX: u32 = 1 << 5;

/// Tables of waits, and the call paths that their rows refer to.
#[derive(Debug, Clone)]
pub struct WaitTables {
    /// Call paths. A row refers to a node.
    pub paths: SampleTree,
    /// Time off the CPU.
    pub off_cpu: OffCpuTable,
    /// Waits for locks.
    pub locks: LockTable,
    /// System calls.
    pub calls: SystemCallTable,
}

impl WaitTables {
    /// Creates tables of at most `max` rows each; 0 for none.
    pub fn new(max: usize) -> Self {
        Self {
            paths: SampleTree::new(max.saturating_mul(2)),
            off_cpu: OffCpuTable::new(max),
            locks: LockTable::new(max),
            calls: SystemCallTable::new(max),
        }
    }

    /// Returns an upper bound for the tables' memory, in bytes.
    pub fn bound(max: usize) -> usize {
        SampleTree::bound(max.saturating_mul(2))
            .saturating_add(OffCpuTable::bound(max))
            .saturating_add(LockTable::bound(max))
            .saturating_add(SystemCallTable::bound(max))
    }

    /// Returns the number of waits and system calls that found no room.
    pub fn crowded(&self) -> u64 {
        self.off_cpu.crowded.saturating_add(self.locks.crowded).saturating_add(self.calls.crowded)
    }

    /// Removes all waits.
    pub fn clear(&mut self) {
        self.paths.clear();
        self.off_cpu.clear();
        self.locks.clear();
        self.calls.clear();
    }

    /// Handles the end of a thread.
    pub fn ended(&mut self, tid: u32) {
        self.off_cpu.ended(tid);
        self.calls.ended(tid);
    }
}

/// Innermost functions that are not part of a wait's call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InnerFrames {
    /// Those that record the event.
    Tracing,
    /// Also those of the scheduler.
    Scheduler,
}

impl Aggregate {
    /// Returns the node of a kernel call chain among the paths of waits, and true if it is of an
    /// interrupt. The interrupted code is not part of the path.
    fn wait_path(&mut self, kernel: &[u64], inner: InnerFrames) -> (u32, bool) {
        self.path.clear();
        let mut is_interrupt = false;
        for (depth, address) in kernel.iter().enumerate() {
            let at = address.saturating_sub(if depth == 0 { 0 } else { CALL_OFFSET });
            let Some(function) = self.lookups.lookup(&self.table, at) else { continue };
            let role = self.role(function);
            let is_inner = match inner {
                InnerFrames::Tracing => role == ChainRole::Tracing,
                InnerFrames::Scheduler => matches!(role, ChainRole::Tracing | ChainRole::Scheduler),
            };
            if self.path.is_empty() && is_inner {
                continue;
            }
            self.path.push(SampleFrame::Function(function));
            if role == ChainRole::Interrupt {
                is_interrupt = true;
                break;
            }
        }
        let Self { path, waits, .. } = self;
        (waits.paths.intern(path.iter().rev().copied()), is_interrupt)
    }

    /// Handles a context switch at `time` in ns. `out` is the thread that loses the CPU, with the
    /// index of its name, its state and its call chain; `next` the one that gets it.
    pub fn off_cpu_switch(
        &mut self,
        time: u64,
        out: (u32, u32, LeftState),
        kernel: &[u64],
        next: (u32, u32),
    ) {
        let (tid, comm, state) = out;
        let out = self.waits.off_cpu.follows(tid).then(|| {
            let path = match state {
                LeftState::Blocked => self.wait_path(kernel, InnerFrames::Scheduler).0,
                LeftState::Runnable | LeftState::Ended => SampleTree::ROOT,
            };
            SwitchedOut { tid, comm, state, path }
        });
        let next = Some(next).filter(|(tid, _)| self.waits.off_cpu.follows(*tid));
        self.waits.off_cpu.switched(time, out, next);
    }

    /// Handles a wake-up of `tid` at `time` in ns by the thread with the name `waker`, at a call
    /// chain.
    pub fn off_cpu_wake(&mut self, time: u64, tid: u32, waker: u32, kernel: &[u64]) {
        if !self.waits.off_cpu.follows(tid) || !self.waits.off_cpu.is_blocked(tid) {
            return;
        }
        let (path, is_interrupt) = self.wait_path(kernel, InnerFrames::Tracing);
        let waker = if is_interrupt { WakeCause::Interrupt } else { WakeCause::Thread(waker) };
        self.waits.off_cpu.woken(time, tid, waker, path);
    }

    /// Handles the begin of a wait for the lock at `address`, at `time` in ns and at a call chain.
    pub fn lock_wait(&mut self, time: u64, waiter: LockWaiter, address: u64, flags: u32, kernel: &[u64]) {
        if self.waits.locks.is_waiting(waiter, address) {
            return;
        }
        let flags = if flags & MUTEX != 0 { flags & !MUTEX_SPINS } else { flags };
        let (path, _) = self.wait_path(kernel, InnerFrames::Tracing);
        self.waits.locks.begin(time, waiter, LockKey { address, flags, path });
    }

    /// Handles the first wake-up of a new thread at `time` in ns by the thread with the name `waker`.
    pub fn off_cpu_start(&mut self, time: u64, tid: u32, waker: u32) {
        if self.waits.off_cpu.follows(tid) {
            self.waits.off_cpu.started(time, tid, WakeCause::Thread(waker));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableBounds;
    use kerntune_symbols::{FunctionTable, Kallsyms};

    #[test]
    fn paths_end_where_a_thread_called_the_scheduler_and_begin_at_an_interrupt() {
        let names = "ffffffff81000000 T entry_SYSCALL_64\nffffffff81001000 T pipe_read\nffffffff81002000 T schedule\n\
             ffffffff81003000 T asm_sysvec_apic_timer_interrupt\nffffffff81004000 T try_to_wake_up\n\
             ffffffff81005000 T end\n";
        let symbols = Kallsyms::parse(names.as_bytes(), "test").unwrap().symbols;
        let bounds = TableBounds { waits: 16, ..TableBounds::default() };
        let mut all = Aggregate::new(FunctionTable::new(symbols), bounds);
        let at = |number: u64| 0xffff_ffff_8100_0010 + number * 0x1000;
        let comm = all.threads.number("a");
        all.off_cpu_switch(10, (5, comm, LeftState::Blocked), &[at(2), at(1), at(0)], (0, 0));
        all.off_cpu_wake(25, 5, comm, &[at(4), at(3), at(1), at(0)]);
        let [(key, totals)] = all.waits.off_cpu.blocked()[..] else { panic!() };
        let names = |node| -> Vec<String> {
            let functions = all.waits.paths.functions(node);
            functions.iter().map(|f| all.table.functions()[*f as usize].name.clone()).collect()
        };
        assert_eq!(names(key.path), ["entry_SYSCALL_64", "pipe_read"]);
        assert_eq!(names(key.waker_path), ["asm_sysvec_apic_timer_interrupt", "try_to_wake_up"]);
        assert_eq!((key.waker, totals.ns), (WakeCause::Interrupt, 15));
    }
}
