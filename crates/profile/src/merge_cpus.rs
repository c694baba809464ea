//! Sums of the tables of several CPUs.

use crate::{
    Address, CpuFrontEndStats, CpuInterruptStats, CpuModelEventStats, CpuStats, DelayStats, FunctionIndex,
    Instructions, LockStats, MigrationStats, ModelEvent, SignalStats, Tables, Ticks,
};
use std::collections::BTreeMap;

/// Number of waits, their total time, and the longest.
#[derive(Default)]
struct WaitSum {
    count: u64,
    ns: Ticks,
    max: Ticks,
}

/// Sums over all parts, by the key that a row has in every part.
#[derive(Default)]
pub(crate) struct CpuSum {
    cpus: BTreeMap<(u32, u32), CpuStats>,
    front_ends: BTreeMap<(u32, u32), CpuFrontEndStats>,
    model_events: BTreeMap<(u32, u32, ModelEvent), [u64; 2]>,
    interrupts: BTreeMap<(u32, u32, FunctionIndex), u64>,
    signals: BTreeMap<(u32, u32, u32, FunctionIndex, FunctionIndex), u64>,
    migrations: BTreeMap<(u32, String, u32, u32, FunctionIndex), u64>,
    delays: BTreeMap<(u32, String, String, u32), WaitSum>,
    locks: BTreeMap<(u32, FunctionIndex, Address, String, FunctionIndex), WaitSum>,
}

impl CpuSum {
    /// Adds a part times its weight, with new numbers of regions and functions.
    pub fn add(
        &mut self,
        part: &Tables,
        weight: u64,
        region: impl Fn(u32) -> u32,
        function: impl Fn(FunctionIndex) -> FunctionIndex,
    ) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more.saturating_mul(weight));
        let wait = |sum: &mut WaitSum, count: u64, ns: Ticks, max: Ticks| {
            add(&mut sum.count, count);
            sum.ns += ns * weight;
            sum.max = sum.max.max(max);
        };
        for row in &part.cpus {
            let region = region(row.region);
            let none = CpuStats {
                region,
                cpu: row.cpu,
                kernel_instructions: Instructions(0),
                user_instructions: Instructions(0),
                busy_ticks: Ticks::ZERO,
                halted_ticks: Ticks::ZERO,
                interrupts: 0,
                switches: 0,
            };
            let sum = self.cpus.entry((region, row.cpu)).or_insert(none);
            add(&mut sum.kernel_instructions.0, row.kernel_instructions.0);
            add(&mut sum.user_instructions.0, row.user_instructions.0);
            sum.busy_ticks += row.busy_ticks * weight;
            sum.halted_ticks += row.halted_ticks * weight;
            add(&mut sum.interrupts, row.interrupts);
            add(&mut sum.switches, row.switches);
        }
        for row in &part.cpu_front_ends {
            let region = region(row.region);
            let none = CpuFrontEndStats {
                region,
                cpu: row.cpu,
                kernel_taken_branches: 0,
                user_taken_branches: 0,
                kernel_l1i_misses: 0,
                user_l1i_misses: 0,
                kernel_itlb_misses: 0,
                user_itlb_misses: 0,
            };
            let sum = self.front_ends.entry((region, row.cpu)).or_insert(none);
            add(&mut sum.kernel_taken_branches, row.kernel_taken_branches);
            add(&mut sum.user_taken_branches, row.user_taken_branches);
            add(&mut sum.kernel_l1i_misses, row.kernel_l1i_misses);
            add(&mut sum.user_l1i_misses, row.user_l1i_misses);
            add(&mut sum.kernel_itlb_misses, row.kernel_itlb_misses);
            add(&mut sum.user_itlb_misses, row.user_itlb_misses);
        }
        for row in &part.cpu_model_events {
            let key = (region(row.region), row.cpu, row.event);
            let [kernel, user] = self.model_events.entry(key).or_default();
            add(kernel, row.kernel);
            add(user, row.user);
        }
        for row in &part.cpu_interrupts {
            let key = (region(row.region), row.cpu, function(row.function));
            add(self.interrupts.entry(key).or_default(), row.count);
        }
        for row in &part.signals {
            let (function, reason) = (function(row.function), function(row.reason));
            let key = (region(row.region), row.from_cpu, row.to_cpu, function, reason);
            add(self.signals.entry(key).or_default(), row.count);
        }
        for row in &part.migrations {
            let reason = function(row.reason);
            let key = (region(row.region), row.comm.clone(), row.from_cpu, row.to_cpu, reason);
            add(self.migrations.entry(key).or_default(), row.count);
        }
        for row in &part.delays {
            let key = (region(row.region), row.comm.clone(), row.waker.clone(), row.bucket);
            wait(self.delays.entry(key).or_default(), row.count, row.delay_ticks, row.max_ticks);
        }
        for row in &part.locks {
            let (function, caller) = (function(row.function), function(row.caller));
            let key = (region(row.region), function, row.address, row.name.clone(), caller);
            wait(self.locks.entry(key).or_default(), row.count, row.wait_ticks, row.max_ticks);
        }
    }

    /// Moves the sums into the tables.
    pub fn finish(self, tables: &mut Tables) {
        tables.cpus = self.cpus.into_values().collect();
        tables.cpu_front_ends = self.front_ends.into_values().collect();
        let events = self.model_events.into_iter();
        tables.cpu_model_events = events
            .map(|((region, cpu, event), [kernel, user])| CpuModelEventStats {
                region,
                cpu,
                event,
                kernel,
                user,
            })
            .collect();
        let interrupts = self.interrupts.into_iter();
        tables.cpu_interrupts = interrupts
            .map(|((region, cpu, function), count)| CpuInterruptStats { region, cpu, function, count })
            .collect();
        let signals = self.signals.into_iter();
        tables.signals = signals
            .map(|((region, from_cpu, to_cpu, function, reason), count)| SignalStats {
                region,
                from_cpu,
                to_cpu,
                function,
                reason,
                count,
            })
            .collect();
        let migrations = self.migrations.into_iter();
        tables.migrations = migrations
            .map(|((region, comm, from_cpu, to_cpu, reason), count)| MigrationStats {
                region,
                comm,
                from_cpu,
                to_cpu,
                reason,
                count,
            })
            .collect();
        let delays = self.delays.into_iter();
        tables.delays = delays
            .map(|((region, comm, waker, bucket), WaitSum { count, ns, max })| DelayStats {
                region,
                comm,
                waker,
                bucket,
                count,
                delay_ticks: ns,
                max_ticks: max,
            })
            .collect();
        let locks = self.locks.into_iter();
        tables.locks = locks
            .map(|((region, function, address, name, caller), WaitSum { count, ns, max })| LockStats {
                region,
                function,
                address,
                name,
                caller,
                count,
                wait_ticks: ns,
                max_ticks: max,
            })
            .collect();
    }
}
