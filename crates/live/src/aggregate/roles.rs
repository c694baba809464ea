//! Role of a function in call chains, by name.

use kerntune_isa::{GuestIsa, Isa};
use kerntune_trace::FunctionKind;

/// Role of a function in a sample's call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainRole {
    /// Any other function.
    Plain,
    /// Entry of an interrupt.
    Interrupt,
    /// Entry of an exception.
    Exception,
    /// Entry of a system call.
    Syscall,
    /// Function that halts the CPU until the next interrupt.
    Halt,
    /// Function of the scheduler.
    Scheduler,
    /// Function that records an event of a tracepoint.
    Tracing,
}

/// Functions in which an idle CPU waits for an interrupt, directly or in a callee.
const HALTS: [&str; 16] = [
    "acpi_idle_do_entry",
    "acpi_idle_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "default_idle",
    "hlt_play_dead",
    "intel_idle",
    "intel_idle_irq",
    "intel_idle_ibrs",
    "intel_idle_hlt",
    "mwait_idle",
    "native_safe_halt",
    "pv_native_safe_halt",
    "tdx_safe_halt",
    "xen_safe_halt",
];
/// Scheduler functions on the way to a context switch.
const SCHEDULER: [&str; 20] = [
    "__schedule",
    "schedule",
    "schedule_idle",
    "schedule_timeout",
    "schedule_timeout_interruptible",
    "schedule_timeout_uninterruptible",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "schedule_preempt_disabled",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "preempt_schedule_notrace",
    "preempt_schedule_thunk",
    "__cond_resched",
    "io_schedule",
    "io_schedule_timeout",
    "perf_trace_sched_switch",
    "__perf_event_task_sched_out",
    "__traceiter_sched_switch",
];

/// Prefixes of functions that the kernel generates for tracepoints.
const TRACING: [&str; 3] = ["perf_trace_", "__traceiter_", "trace_event_raw_event_"];

impl ChainRole {
    /// Returns the role of the function with this name.
    pub fn of(name: &str) -> Self {
        let name = name.split_once('.').map_or(name, |(whole, _)| whole);
        match GuestIsa::function_kind(name) {
            Some(FunctionKind::Interrupt) => return ChainRole::Interrupt,
            Some(FunctionKind::Exception) => return ChainRole::Exception,
            Some(FunctionKind::Syscall) => return ChainRole::Syscall,
            _ => {}
        }
        match name {
            _ if GuestIsa::is_common_interrupt(name) => ChainRole::Interrupt,
            _ if HALTS.contains(&name) => ChainRole::Halt,
            _ if SCHEDULER.contains(&name) => ChainRole::Scheduler,
            _ if TRACING.iter().any(|prefix| name.starts_with(prefix)) => ChainRole::Tracing,
            _ => ChainRole::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_their_names() {
        for (name, role) in [
            ("asm_sysvec_apic_timer_interrupt", ChainRole::Interrupt),
            ("asm_common_interrupt", ChainRole::Interrupt),
            ("asm_exc_page_fault", ChainRole::Exception),
            ("entry_SYSCALL_64", ChainRole::Syscall),
            ("pv_native_safe_halt", ChainRole::Halt),
            ("__schedule", ChainRole::Scheduler),
            ("schedule_timeout.isra.0", ChainRole::Scheduler),
            ("__traceiter_sched_waking", ChainRole::Tracing),
            ("tcp_ack", ChainRole::Plain),
        ] {
            assert_eq!(ChainRole::of(name), role, "{name}");
        }
    }
}
