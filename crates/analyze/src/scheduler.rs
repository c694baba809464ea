//! Finds the reason of a context switch from the stack of the thread that loses the CPU.

use crate::accounts::NO_CALLER;
use kerntune_profile::{SwitchKind, Symbol};
use kerntune_trace::EnterKind;

/// Role of a function in a context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchedulerRole {
    /// Not part of the scheduler.
    Outside,
    /// Part of the scheduler.
    Inside,
    /// Part of the scheduler that preempts.
    Takes,
    /// Not part of the scheduler, but a switch from here is a preemption.
    OutsideTakes,
}

/// Functions of the scheduler, whatever source file the symbols name for them.
const SCHEDULER: &[&str] =
    &["__switch_to_asm", "__switch_to", "__schedule", "schedule", "io_schedule", "yield", "yield_to"];
const SCHEDULER_PREFIXES: &[&str] = &["schedule_", "io_schedule_", "__schedule_"];
/// Functions among these by which the kernel preempts or offers to.
const PREEMPTING: &[&str] = &["_cond_resched", "__cond_resched", "dynamic_cond_resched", "__might_resched"];
const PREEMPTING_PREFIXES: &[&str] = &["preempt_schedule", "__cond_resched_", "dynamic_preempt_schedule"];
/// Exits of interrupts and system calls. Where its work loop is inlined, `do_syscall_64` calls the
/// scheduler itself, and only for a preemption.
const EXITS: &[&str] =
    &["raw_irqentry_exit_cond_resched", "dynamic_irqentry_exit_cond_resched", "do_syscall_64"];
const EXIT_PREFIXES: &[&str] = &["irqentry_exit", "exit_to_user_mode", "syscall_exit_to_user_mode"];
/// Source directory of the scheduler, and its one file that is code of the idle task.
const SOURCES: &str = "kernel/sched/";
const IDLE_SOURCE: &str = "kernel/sched/idle.c";

/// Roles of all functions.
#[derive(Debug, Default)]
pub(crate) struct SchedulerFunctions {
    roles: Vec<SchedulerRole>,
}

impl SchedulerFunctions {
    pub fn new(symbols: &[Symbol]) -> Self {
        let kernel = |symbol: &Symbol| match symbol.module {
            None => role(&symbol.name, symbol.file.as_deref()),
            Some(_) => SchedulerRole::Outside,
        };
        Self { roles: symbols.iter().map(kernel).collect() }
    }

    /// Returns reason and kind of a switch away from a stack, given from its top. The reason is the
    /// first function outside of the scheduler; [`NO_CALLER`] if there is none.
    pub fn switch_reason(&self, frames: impl Iterator<Item = (u32, EnterKind)>) -> (u32, SwitchKind) {
        let mut reason = None;
        let mut taken = false;
        for (function, how) in frames {
            if reason.is_none() {
                let role = self.roles.get(function as usize).copied().unwrap_or(SchedulerRole::Outside);
                taken |= matches!(role, SchedulerRole::Takes | SchedulerRole::OutsideTakes);
                if matches!(role, SchedulerRole::Outside | SchedulerRole::OutsideTakes) {
                    reason = Some(function);
                }
            }
            taken |= how == EnterKind::Interrupt;
            if taken && reason.is_some() {
                break;
            }
        }
        (reason.unwrap_or(NO_CALLER), if taken { SwitchKind::Preempted } else { SwitchKind::Voluntary })
    }
}

fn role(name: &str, file: Option<&str>) -> SchedulerRole {
    // `foo.constprop.0` and similar clones count as `foo`.
    let name = name.split('.').next().unwrap_or(name);
    let is = |whole: &[&str], begins: &[&str]| {
        whole.contains(&name) || begins.iter().any(|begin| name.starts_with(begin))
    };
    let source = file.is_some_and(|file| file.starts_with(SOURCES) && file != IDLE_SOURCE);
    if is(EXITS, EXIT_PREFIXES) {
        SchedulerRole::OutsideTakes
    } else if is(PREEMPTING, PREEMPTING_PREFIXES) {
        SchedulerRole::Takes
    } else if source || is(SCHEDULER, SCHEDULER_PREFIXES) {
        SchedulerRole::Inside
    } else {
        SchedulerRole::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::FunctionIndex;

    /// Reason of a switch away from a stack, given from the outermost function. A name may be
    /// followed by `!` for an interrupt, and by ` @file`.
    fn switch_reason(stack: &[&str]) -> (String, SwitchKind) {
        let symbol = |(i, text): (usize, &&str)| {
            let (name, file) = text.split_once(" @").map_or((*text, None), |(name, file)| (name, Some(file)));
            Symbol {
                function: FunctionIndex(i as u32),
                name: name.trim_end_matches('!').into(),
                file: file.map(str::to_owned),
                ..Symbol::default()
            }
        };
        let symbols: Vec<Symbol> = stack.iter().enumerate().map(symbol).collect();
        let how = |text: &str| if text.contains('!') { EnterKind::Interrupt } else { EnterKind::Call };
        let frames = stack.iter().enumerate().rev().map(|(i, text)| (i as u32, how(text)));
        let (reason, kind) = SchedulerFunctions::new(&symbols).switch_reason(frames);
        (symbols.get(reason as usize).map_or("-".into(), |s| s.name.clone()), kind)
    }

    #[test]
    fn stacks_as_linux_has_them() {
        use SwitchKind::{Preempted, Voluntary};
        let cases: &[(&[&str], &str, SwitchKind)] = &[
            (
                &["do_syscall_64", "pipe_read", "schedule", "__schedule", "__switch_to_asm"],
                "pipe_read",
                Voluntary,
            ),
            (
                &[
                    "sk_wait_data",
                    "wait_woken @kernel/sched/wait.c",
                    "schedule_timeout",
                    "schedule",
                    "__schedule.constprop.0",
                    "__switch_to_asm",
                ],
                "sk_wait_data",
                Voluntary,
            ),
            (
                &["folio_wait_bit_common", "io_schedule", "schedule", "__schedule"],
                "folio_wait_bit_common",
                Voluntary,
            ),
            (&["ep_poll", "schedule_hrtimeout_range", "schedule", "__schedule"], "ep_poll", Voluntary),
            (&["shrink_node", "__cond_resched", "__schedule", "__switch_to_asm"], "shrink_node", Preempted),
            (&["vfs_write", "preempt_schedule_notrace", "__schedule"], "vfs_write", Preempted),
            (
                &[
                    "vfs_write",
                    "sysvec_apic_timer_interrupt!",
                    "irqentry_exit",
                    "preempt_schedule_irq",
                    "__schedule",
                ],
                "irqentry_exit",
                Preempted,
            ),
            (
                &[
                    "do_syscall_64",
                    "syscall_exit_to_user_mode",
                    "exit_to_user_mode_loop",
                    "schedule",
                    "__schedule",
                ],
                "exit_to_user_mode_loop",
                Preempted,
            ),
            (&["entry_SYSCALL_64", "do_syscall_64", "schedule", "__schedule"], "do_syscall_64", Preempted),
            (&["asm_irq!", "whatever", "schedule", "__schedule"], "whatever", Preempted),
            (&["do_exit", "do_task_dead @kernel/sched/core.c", "__schedule"], "do_exit", Voluntary),
            (&["do_idle @kernel/sched/idle.c", "schedule_idle", "__schedule"], "do_idle", Voluntary),
            (&["schedule", "__schedule"], "-", Voluntary),
            (&[], "-", Voluntary),
        ];
        for (stack, reason, kind) in cases {
            assert_eq!(switch_reason(stack), ((*reason).to_owned(), *kind), "{stack:?}");
        }
    }
}
