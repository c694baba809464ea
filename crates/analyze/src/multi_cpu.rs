//! Counters of several CPUs and of the interaction of threads: time, interrupts and switches of
//! each CPU; interrupts between CPUs; migrations; waits for a CPU and for locks.

use crate::accounts::NO_CALLER;
use crate::hash::BuildIntegerHasher;
use kerntune_profile::{bucket_of, Symbol, Ticks};
use kerntune_trace::Waker;
use std::collections::HashMap;
use std::hash::Hash;

/// Counters of a CPU in a region, without the regions inside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuAccount {
    /// Time of threads and interrupts on this CPU.
    pub busy: u64,
    pub interrupts: u64,
    pub switches: u64,
}

/// Number, sum and maximum of waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WaitTotals {
    pub count: u64,
    pub ns: u64,
    pub max: u64,
}

impl WaitTotals {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
        self.max = self.max.max(other.max);
    }
}

/// Name of a waker: 0 for an unknown one, 1 for an interrupt, others are the index of a thread's
/// name plus 2.
type WakerName = u32;

/// Counters, with the region first in each key.
#[derive(Debug, Default)]
pub(crate) struct MultiCpuCounts {
    /// Key: region, CPU.
    pub cpus: HashMap<(u32, u32), CpuAccount, BuildIntegerHasher>,
    /// Key: region, CPU, function of the interrupt.
    pub interrupts: HashMap<(u32, u32, u32), u64, BuildIntegerHasher>,
    /// Key: region, sending CPU, receiving CPU, function that sends, function on whose behalf it
    /// does.
    pub signals: HashMap<(u32, u32, u32, u32, u32), u64, BuildIntegerHasher>,
    /// Key: region, name of the thread, CPU before and after, function that moves it.
    pub migrations: HashMap<(u32, u32, u32, u32, u32), u64, BuildIntegerHasher>,
    /// Key: region, name of the thread, waker, bucket.
    pub delays: HashMap<(u32, u32, WakerName, u32), WaitTotals, BuildIntegerHasher>,
    /// Key: region, function that waits, address of the lock, function on whose behalf it does.
    pub locks: HashMap<(u32, u32, u64, u32), WaitTotals, BuildIntegerHasher>,
}

/// Returns the name of a waker, given the names of threads.
pub(crate) fn waker_name(waker: Waker, comm_of: &[u32]) -> WakerName {
    match waker {
        Waker::Nobody => 0,
        Waker::Interrupt => 1,
        Waker::Thread(thread) => comm_of.get(thread as usize).map_or(1, |comm| comm + 2),
    }
}

impl MultiCpuCounts {
    pub fn delay(&mut self, region: u32, comm: u32, waker: WakerName, ns: u64) {
        let waits = self.delays.entry((region, comm, waker, bucket_of(Ticks(ns)))).or_default();
        waits.add(WaitTotals { count: 1, ns, max: ns });
    }

    pub fn lock(&mut self, key: (u32, u32, u64, u32), ns: u64) {
        self.locks.entry(key).or_default().add(WaitTotals { count: 1, ns, max: ns });
    }

    /// Adds other counters.
    pub fn merge(&mut self, other: Self) {
        for (key, more) in other.cpus {
            let sum = self.cpus.entry(key).or_default();
            sum.busy = sum.busy.wrapping_add(more.busy);
            sum.interrupts += more.interrupts;
            sum.switches += more.switches;
        }
        counts(&mut self.interrupts, other.interrupts);
        counts(&mut self.signals, other.signals);
        counts(&mut self.migrations, other.migrations);
        waits(&mut self.delays, other.delays);
        waits(&mut self.locks, other.locks);
    }
}

fn counts<K: Hash + Eq>(
    sums: &mut HashMap<K, u64, BuildIntegerHasher>,
    more: HashMap<K, u64, BuildIntegerHasher>,
) {
    for (key, count) in more {
        *sums.entry(key).or_default() += count;
    }
}

fn waits<K: Hash + Eq>(
    sums: &mut HashMap<K, WaitTotals, BuildIntegerHasher>,
    more: HashMap<K, WaitTotals, BuildIntegerHasher>,
) {
    for (key, count) in more {
        sums.entry(key).or_default().add(count);
    }
}

/// Functions that serve their callers: locks, interrupts between CPUs, the scheduler.
#[derive(Debug, Default)]
pub(crate) struct ServiceFunctions {
    is_service: Vec<bool>,
}

/// Source files of these functions, and prefixes of their names for kernels without source files in
/// the symbols.
const SOURCES: &[&str] =
    &["kernel/locking/", "kernel/sched/", "kernel/smp.c", "arch/x86/kernel/smp.c", "arch/x86/kernel/apic/"];
const NAME_PREFIXES: &[&str] = &[
    "_raw_",
    "__pte_offset_map_lock",
    "queued_",
    "native_queued_",
    "mutex_",
    "__mutex_",
    "down_",
    "__down_",
    "rwsem_",
    "try_to_wake_up",
    "__wake_up",
    "smp_call_function",
    "on_each_cpu",
    "native_smp_",
    "native_send_",
    "send_call_function_",
    "__smp_call_",
];

impl ServiceFunctions {
    pub fn new(symbols: &[Symbol]) -> Self {
        let is_service = |symbol: &Symbol| {
            let source = symbol
                .file
                .as_deref()
                .is_some_and(|file| SOURCES.iter().any(|source| file.starts_with(source)));
            symbol.module.is_none()
                && (source || NAME_PREFIXES.iter().any(|begin| symbol.name.starts_with(begin)))
        };
        Self { is_service: symbols.iter().map(is_service).collect() }
    }

    /// Returns the first function from the top of a stack that is not a service function, on whose
    /// behalf the others run; [`NO_CALLER`] if there is none.
    pub fn client(&self, mut functions: impl Iterator<Item = u32>) -> u32 {
        let is_service = |function: &u32| self.is_service.get(*function as usize).copied().unwrap_or(false);
        functions.find(|function| !is_service(function)).unwrap_or(NO_CALLER)
    }
}
