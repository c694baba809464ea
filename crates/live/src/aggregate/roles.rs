//! The part that a function plays in a call chain, by its name.

use kerntune_isa::{Guest, Isa};
use kerntune_trace::FunctionKind;

/// What a function is to a sample that has it in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Any other.
    Plain,
    /// Where an interrupt comes in.
    Interrupt,
    /// Where an exception comes in.
    Exception,
    /// Where a system call comes in.
    Syscall,
    /// Halts the CPU until the next interrupt.
    Halt,
    /// A part of the scheduler.
    Scheduler,
}

/// Functions in which an idle CPU waits for an interrupt: the instruction is in them, or in what they call.
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
/// Functions of the scheduler that lead to a switch.
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

impl Role {
    /// By the name.
    pub fn of(name: &str) -> Self {
        let name = name.split_once('.').map_or(name, |(whole, _)| whole);
        match Guest::function_kind(name) {
            Some(FunctionKind::Interrupt) => return Role::Interrupt,
            Some(FunctionKind::Exception) => return Role::Exception,
            Some(FunctionKind::Syscall) => return Role::Syscall,
            _ => {}
        }
        match name {
            _ if Guest::is_common_interrupt(name) => Role::Interrupt,
            _ if HALTS.contains(&name) => Role::Halt,
            _ if SCHEDULER.contains(&name) => Role::Scheduler,
            _ => Role::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_their_names() {
        for (name, role) in [
            ("asm_sysvec_apic_timer_interrupt", Role::Interrupt),
            ("asm_common_interrupt", Role::Interrupt),
            ("asm_exc_page_fault", Role::Exception),
            ("entry_SYSCALL_64", Role::Syscall),
            ("pv_native_safe_halt", Role::Halt),
            ("__schedule", Role::Scheduler),
            ("schedule_timeout.isra.0", Role::Scheduler),
            ("tcp_ack", Role::Plain),
        ] {
            assert_eq!(Role::of(name), role, "{name}");
        }
    }
}
