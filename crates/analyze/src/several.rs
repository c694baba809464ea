//! What several CPUs do, and threads to each other: a CPU's own time, interrupts and switches; who interrupts whom; which
//! threads migrate; how long they wait for a CPU, and for locks.

use crate::accounts::NO_CALLER;
use crate::hash::Mixed;
use kerntune_profile::{bucket_of, Nanoseconds, Symbol};
use kerntune_trace::Waker;
use std::collections::HashMap;
use std::hash::Hash;

/// A CPU in a region, regions within it left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuAccount {
    /// Time that went to threads and interrupts there.
    pub busy: u64,
    pub interrupts: u64,
    pub switches: u64,
}

/// Waits of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub count: u64,
    pub ns: u64,
    pub max: u64,
}

impl Waits {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
        self.max = self.max.max(other.max);
    }
}

/// Who woke a thread up, by name: 0 nobody, 1 an interrupt, the others a thread's name.
type WakerName = u32;

/// Sums of all that, by region first.
#[derive(Debug, Default)]
pub(crate) struct Several {
    /// Region, CPU.
    pub cpus: HashMap<(u32, u32), CpuAccount, Mixed>,
    /// Region, CPU, the interrupt's function.
    pub interrupts: HashMap<(u32, u32, u32), u64, Mixed>,
    /// Region, sender, receiver, the function that sends, the function on whose behalf.
    pub signals: HashMap<(u32, u32, u32, u32, u32), u64, Mixed>,
    /// Region, name of the thread, from, to, the function that moves it.
    pub migrations: HashMap<(u32, u32, u32, u32, u32), u64, Mixed>,
    /// Region, name of the thread, waker, bucket.
    pub delays: HashMap<(u32, u32, WakerName, u32), Waits, Mixed>,
    /// Region, the function that waits, the lock, the function on whose behalf.
    pub locks: HashMap<(u32, u32, u64, u32), Waits, Mixed>,
}

/// [`WakerName`] of a waker, by the names of threads.
pub(crate) fn waker_name(waker: Waker, comm_of: &[u32]) -> WakerName {
    match waker {
        Waker::Nobody => 0,
        Waker::Interrupt => 1,
        Waker::Thread(thread) => comm_of.get(thread as usize).map_or(1, |comm| comm + 2),
    }
}

impl Several {
    pub fn delay(&mut self, region: u32, comm: u32, waker: WakerName, ns: u64) {
        let waits = self.delays.entry((region, comm, waker, bucket_of(Nanoseconds(ns)))).or_default();
        waits.add(Waits { count: 1, ns, max: ns });
    }

    pub fn lock(&mut self, key: (u32, u32, u64, u32), ns: u64) {
        self.locks.entry(key).or_default().add(Waits { count: 1, ns, max: ns });
    }

    /// Adds what was counted elsewhere.
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

fn counts<K: Hash + Eq>(sums: &mut HashMap<K, u64, Mixed>, more: HashMap<K, u64, Mixed>) {
    for (key, count) in more {
        *sums.entry(key).or_default() += count;
    }
}

fn waits<K: Hash + Eq>(sums: &mut HashMap<K, Waits, Mixed>, more: HashMap<K, Waits, Mixed>) {
    for (key, count) in more {
        sums.entry(key).or_default().add(count);
    }
}

/// Functions that do what others ask for: locks, interrupts between CPUs, the scheduler.
#[derive(Debug, Default)]
pub(crate) struct Servants {
    is_servant: Vec<bool>,
}

/// Their sources, and names for kernels of which those are not known.
const SOURCES: &[&str] =
    &["kernel/locking/", "kernel/sched/", "kernel/smp.c", "arch/x86/kernel/smp.c", "arch/x86/kernel/apic/"];
const BEGINS: &[&str] = &[
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

impl Servants {
    pub fn new(symbols: &[Symbol]) -> Self {
        let is_servant = |symbol: &Symbol| {
            let source = symbol
                .file
                .as_deref()
                .is_some_and(|file| SOURCES.iter().any(|source| file.starts_with(source)));
            symbol.module.is_none() && (source || BEGINS.iter().any(|begin| symbol.name.starts_with(begin)))
        };
        Self { is_servant: symbols.iter().map(is_servant).collect() }
    }

    /// The first function from the top of a stack that is none; [`NO_CALLER`] without any.
    pub fn master(&self, mut functions: impl Iterator<Item = u32>) -> u32 {
        let is_servant = |function: &u32| self.is_servant.get(*function as usize).copied().unwrap_or(false);
        functions.find(|function| !is_servant(function)).unwrap_or(NO_CALLER)
    }
}
