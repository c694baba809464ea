//! Rows of a profile from waits of traced events.

use crate::aggregate::{Aggregate, DelayKey, WaitTotals, WakeCause};
use kerntune_convert::system_call_name;
use kerntune_profile::{
    Address, BlockedStats, DelayStats, FunctionIndex, LockPathStats, LockStats, SystemCallStats, Tables,
    Ticks,
};
use kerntune_symbols::KernelFunction;
use std::collections::BTreeMap;

/// Name of interrupts as wakers.
const INTERRUPT: &str = "[interrupt]";

/// Adds the rows of all waits.
pub(crate) fn add(all: &Aggregate, out: &mut Tables) {
    out.blocked = blocked(all);
    out.delays = delays(all);
    (out.locks, out.lock_paths) = locks(all);
    out.system_calls = system_calls(all);
}

/// Flags of waits for locks (`LCB_F_*` in `include/trace/events/lock.h`).
mod flag {
    pub const SPIN: u32 = 1;
    pub const READ: u32 = 1 << 1;
    pub const WRITE: u32 = 1 << 2;
    pub const RT: u32 = 1 << 3;
    pub const PERCPU: u32 = 1 << 4;
    pub const MUTEX: u32 = 1 << 5;
}

/// Returns the kind of a lock by the flags of its waits, and by the function that waits: kernels
/// before 6.0 have no flag for mutexes.
fn lock_kind(flags: u32, function: &str) -> &'static str {
    let has = |flag| flags & flag != 0;
    match flags {
        _ if has(flag::MUTEX) => "mutex",
        _ if has(flag::PERCPU) => "percpu rwsem",
        _ if has(flag::RT) => "rt mutex",
        _ if has(flag::SPIN) && (has(flag::READ) || has(flag::WRITE)) => "rwlock",
        _ if has(flag::SPIN) => "spinlock",
        _ if has(flag::READ) || has(flag::WRITE) => "rwsem",
        _ if function.starts_with("__mutex_lock") => "mutex",
        _ if function.starts_with("__down") => "semaphore",
        _ => "lock",
    }
}

/// Prefixes of the names of functions that take locks for their callers, for kernels whose source
/// files are not known.
const LOCKING: [&str; 14] = [
    "_raw_",
    "__raw_",
    "queued_",
    "native_queued_",
    "pv_queued_",
    "__pv_queued_",
    "mutex_",
    "__mutex_",
    "down_",
    "__down",
    "rwsem_",
    "percpu_",
    "__percpu_",
    "rt_mutex_",
];

fn is_locking(function: &KernelFunction) -> bool {
    function.file.as_deref().is_some_and(|file| file.starts_with("kernel/locking/"))
        || LOCKING.iter().any(|prefix| function.name.starts_with(prefix))
}

/// Returns the waits by lock and by call path.
fn locks(all: &Aggregate) -> (Vec<LockStats>, Vec<LockPathStats>) {
    let mut locks: BTreeMap<(u32, u64, FunctionIndex), WaitTotals> = BTreeMap::new();
    let mut paths: BTreeMap<(&str, String), WaitTotals> = BTreeMap::new();
    for (key, totals) in all.waits.locks.rows() {
        let functions = all.waits.paths.functions(key.path);
        let function = |number: &u32| all.table.functions().get(*number as usize);
        let innermost = functions.last().and_then(function).map_or("", |function| function.name.as_str());
        let kind = lock_kind(key.flags, innermost);
        join(paths.entry((kind, path(all, key.path))).or_default(), totals);
        let is_caller = |number: &&u32| function(number).is_some_and(|function| !is_locking(function));
        let caller =
            functions.iter().rev().find(is_caller).map_or(FunctionIndex::NONE, |n| FunctionIndex(*n));
        if let Some(waiting) = functions.last() {
            join(locks.entry((*waiting, key.address, caller)).or_default(), totals);
        }
    }
    let lock = |((function, address, caller), totals): ((u32, u64, FunctionIndex), WaitTotals)| LockStats {
        region: 0,
        function: FunctionIndex(function),
        address: Address(address),
        name: String::new(),
        caller,
        count: totals.count,
        wait_ticks: Ticks(totals.ns),
        max_ticks: Ticks(totals.max),
    };
    let path = |((kind, path), totals): ((&str, String), WaitTotals)| LockPathStats {
        region: 0,
        kind: kind.into(),
        path,
        count: totals.count,
        wait_ticks: Ticks(totals.ns),
        max_ticks: Ticks(totals.max),
    };
    (locks.into_iter().map(lock).collect(), paths.into_iter().map(path).collect())
}

fn join(sum: &mut WaitTotals, more: WaitTotals) {
    sum.count = sum.count.saturating_add(more.count);
    sum.ns = sum.ns.saturating_add(more.ns);
    sum.max = sum.max.max(more.max);
}

fn system_calls(all: &Aggregate) -> Vec<SystemCallStats> {
    let mut rows: BTreeMap<(String, String), SystemCallStats> = BTreeMap::new();
    for (key, totals) in all.waits.calls.rows() {
        let machine = if key.is_compat { "i686" } else { std::env::consts::ARCH };
        let name = system_call_name(key.number, machine);
        let name = name.map_or_else(|| format!("syscall_{}", key.number), str::to_owned);
        let name = if key.is_compat { format!("{name} (32 bits)") } else { name };
        let comm = all.threads.name(key.comm).to_owned();
        let row = rows.entry((comm.clone(), name.clone())).or_insert(SystemCallStats {
            comm,
            name,
            ..SystemCallStats::default()
        });
        row.calls = row.calls.saturating_add(totals.calls);
        row.ended = row.ended.saturating_add(totals.ended);
        row.errors = row.errors.saturating_add(totals.errors);
        row.elapsed_ticks = Ticks(row.elapsed_ticks.get().saturating_add(totals.ns));
        row.max_ticks = row.max_ticks.max(Ticks(totals.max));
    }
    rows.into_values().collect()
}

/// Returns the names of a call path's functions, outermost first, with `;` between them.
fn path(all: &Aggregate, node: u32) -> String {
    let functions = all.waits.paths.functions(node);
    let names = functions.iter().filter_map(|function| all.table.functions().get(*function as usize));
    names.map(|function| function.name.as_str()).collect::<Vec<_>>().join(";")
}

fn waker(all: &Aggregate, waker: WakeCause) -> String {
    match waker {
        WakeCause::Unknown | WakeCause::Preempted => String::new(),
        WakeCause::Interrupt => INTERRUPT.into(),
        WakeCause::Thread(comm) => all.threads.name(comm).into(),
    }
}

fn blocked(all: &Aggregate) -> Vec<BlockedStats> {
    // Several functions may share a name.
    let mut rows: BTreeMap<(&str, String, String, String), WaitTotals> = BTreeMap::new();
    for (key, totals) in all.waits.off_cpu.blocked() {
        let paths = [key.path, key.waker_path].map(|node| path(all, node));
        let [slept, woke] = paths;
        join(
            rows.entry((all.threads.name(key.comm), slept, waker(all, key.waker), woke)).or_default(),
            totals,
        );
    }
    let row = |((comm, path, waker, waker_path), totals): ((&str, _, _, _), WaitTotals)| BlockedStats {
        region: 0,
        comm: comm.into(),
        path,
        waker,
        waker_path,
        count: totals.count,
        blocked_ticks: Ticks(totals.ns),
        max_ticks: Ticks(totals.max),
    };
    rows.into_iter().map(row).collect()
}

fn delays(all: &Aggregate) -> Vec<DelayStats> {
    let row = |(key, totals): (DelayKey, WaitTotals)| DelayStats {
        region: 0,
        comm: all.threads.name(key.comm).into(),
        waker: waker(all, key.waker),
        bucket: key.bucket,
        count: totals.count,
        delay_ticks: Ticks(totals.ns),
        max_ticks: Ticks(totals.max),
    };
    all.waits.off_cpu.delays().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_of_which_kind_a_lock_is() {
        // perf's names of the same flags: spinlock, rwlock:W, mutex, rwsem:R, pcpu-sem:R, rt-mutex.
        for (flags, function, kind) in [
            (1, "native_queued_spin_lock_slowpath", "spinlock"),
            (5, "queued_write_lock_slowpath", "rwlock"),
            (0x21, "__mutex_lock.constprop.0", "mutex"),
            (2, "rwsem_down_read_slowpath", "rwsem"),
            (0x12, "percpu_rwsem_wait", "percpu rwsem"),
            (8, "rt_mutex_slowlock", "rt mutex"),
            (0, "__mutex_lock.constprop.0", "mutex"),
            (0, "__down_common", "semaphore"),
            (0, "something_new", "lock"),
        ] {
            assert_eq!(lock_kind(flags, function), kind, "{function}");
        }
    }
}
