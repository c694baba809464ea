//! Rows of the tables about several CPUs.

use crate::accumulators::sorted;
use crate::known::{TraceContext, INTERRUPT};
use crate::multi_cpu::{CpuAccount, MultiCpuCounts};
use crate::AnalysisInput;
use kerntune_profile::{
    thread_name, Address, CpuFrontEndStats, CpuInterruptStats, CpuModelEventStats, CpuStats, DelayStats,
    FunctionIndex, Instructions, LockStats, MigrationStats, ModelEvent, SignalStats, Tables, Ticks,
};
use kerntune_trace::{CpuCounters, CpuFrontEnd};

/// Adds the rows; a run with one CPU has none.
pub(crate) fn add(
    tables: &mut Tables,
    multi_cpu: &mut MultiCpuCounts,
    input: &AnalysisInput<'_>,
    known: &TraceContext,
) {
    let inside = |region: u32| region < known.outside();
    let comm = |number: u32| known.comms.get(number as usize).cloned().unwrap_or_default();
    tables.cpus = cpus(tables, multi_cpu, input);
    front_ends(tables, input);
    let interrupts =
        sorted(&mut multi_cpu.interrupts).into_iter().filter(|((region, ..), _)| inside(*region));
    tables.cpu_interrupts = interrupts
        .map(|((region, cpu, function), count)| CpuInterruptStats {
            region,
            cpu,
            function: FunctionIndex(function),
            count,
        })
        .collect();
    let signals = sorted(&mut multi_cpu.signals).into_iter().filter(|((region, ..), _)| inside(*region));
    tables.signals = signals
        .map(|((region, from_cpu, to_cpu, function, reason), count)| SignalStats {
            region,
            from_cpu,
            to_cpu,
            function: FunctionIndex(function),
            reason: FunctionIndex(reason),
            count,
        })
        .collect();
    let migrations =
        sorted(&mut multi_cpu.migrations).into_iter().filter(|((region, ..), _)| inside(*region));
    tables.migrations = migrations
        .map(|((region, name, from_cpu, to_cpu, reason), count)| MigrationStats {
            region,
            comm: comm(name),
            from_cpu,
            to_cpu,
            reason: FunctionIndex(reason),
            count,
        })
        .collect();
    let delays = sorted(&mut multi_cpu.delays).into_iter().filter(|((region, ..), _)| inside(*region));
    tables.delays = delays
        .map(|((region, name, waker, bucket), waits)| DelayStats {
            region,
            comm: comm(name),
            waker: match waker {
                0 => String::new(),
                1 => INTERRUPT.to_owned(),
                name => thread_name(&comm(name - 2)).into_owned(),
            },
            bucket,
            count: waits.count,
            delay_ticks: Ticks(waits.ns),
            max_ticks: Ticks(waits.max),
        })
        .collect();
    let locks = sorted(&mut multi_cpu.locks).into_iter().filter(|((region, ..), _)| inside(*region));
    tables.locks = locks
        .map(|((region, function, address, caller), waits)| LockStats {
            region,
            function: FunctionIndex(function),
            address: Address(address),
            name: name_of(address, input),
            caller: FunctionIndex(caller),
            count: waits.count,
            wait_ticks: Ticks(waits.ns),
            max_ticks: Ticks(waits.max),
        })
        .collect();
}

fn cpus(tables: &Tables, multi_cpu: &MultiCpuCounts, input: &AnalysisInput<'_>) -> Vec<CpuStats> {
    let mut rows = Vec::new();
    for (region, number) in input.recording.regions.iter().zip(0u32..) {
        for (&CpuCounters { kernel, user, halted_ns, .. }, cpu) in region.cpus.iter().zip(0u32..) {
            let mut sum = CpuAccount::default();
            for within in tables.within(number) {
                let CpuAccount { busy, interrupts, switches } =
                    multi_cpu.cpus.get(&(within, cpu)).copied().unwrap_or_default();
                sum.busy = sum.busy.saturating_add(busy);
                sum.interrupts += interrupts;
                sum.switches += switches;
            }
            rows.push(CpuStats {
                region: number,
                cpu,
                kernel_instructions: Instructions(kernel),
                user_instructions: Instructions(user),
                busy_ticks: Ticks(sum.busy),
                halted_ticks: Ticks(halted_ns),
                interrupts: sum.interrupts,
                switches: sum.switches,
            });
        }
    }
    rows
}

/// Adds the rows of the CPUs' front ends. Events that only a newer recorder knows are left out.
fn front_ends(tables: &mut Tables, input: &AnalysisInput<'_>) {
    for (region, number) in input.recording.regions.iter().zip(0u32..) {
        let counted =
            region.cpus.iter().zip(0u32..).filter_map(|(of, cpu)| Some((cpu, of.front_end.as_ref()?)));
        for (cpu, CpuFrontEnd { kernel, user, model_events }) in counted {
            tables.cpu_front_ends.push(CpuFrontEndStats {
                region: number,
                cpu,
                kernel_taken_branches: kernel.taken_branches,
                user_taken_branches: user.taken_branches,
                kernel_l1i_misses: kernel.l1i_misses,
                user_l1i_misses: user.l1i_misses,
                kernel_itlb_misses: kernel.itlb_misses,
                user_itlb_misses: user.itlb_misses,
            });
            tables.cpu_model_events.extend(model_events.iter().filter_map(|counted| {
                let event = ModelEvent::from_name(&counted.event)?;
                Some(CpuModelEventStats {
                    region: number,
                    cpu,
                    event,
                    kernel: counted.kernel,
                    user: counted.user,
                })
            }));
        }
    }
}

/// Returns the name of the kernel variable that contains an address, with the offset in it; for
/// per-CPU variables also the CPU.
fn name_of(address: u64, input: &AnalysisInput<'_>) -> String {
    let find = |address: u64| {
        let after = input.objects.partition_point(|(start, ..)| *start <= address);
        let (start, bytes, name) = input.objects.get(after.checked_sub(1)?)?;
        let offset = address - start;
        (offset < *bytes).then(|| match offset {
            0 => name.clone(),
            offset => format!("{name}+{offset:#x}"),
        })
    };
    let per_cpu = || {
        let offsets = input.recording.per_cpu.iter().enumerate();
        let mut found = offsets.filter_map(|(cpu, offset)| {
            Some(format!("{} of CPU {cpu}", find(address.wrapping_sub(*offset))?))
        });
        found.next()
    };
    find(address).or_else(per_cpu).unwrap_or_default()
}

/// Checks whether any of these rows refers to a function.
pub(crate) fn name(tables: &Tables, function: FunctionIndex) -> bool {
    tables.cpu_interrupts.iter().any(|row| row.function == function)
        || tables.signals.iter().any(|row| row.function == function || row.reason == function)
        || tables.migrations.iter().any(|row| row.reason == function)
        || tables.locks.iter().any(|row| row.function == function || row.caller == function)
}
