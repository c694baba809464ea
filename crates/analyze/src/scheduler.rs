//! Why a thread lost the CPU, told from its stack.

use crate::accounts::NO_CALLER;
use kerntune_profile::{SwitchKind, Symbol};
use kerntune_trace::How;

/// What a function has to do with the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Nothing.
    Outside,
    /// A part of it.
    Inside,
    /// A part of it that takes the CPU away.
    Takes,
    /// Not a part of it, but what calls it takes the CPU away.
    OutsideTakes,
}

/// Functions of the scheduler, whatever file they are said to be in.
const INSIDE: &[&str] =
    &["__switch_to_asm", "__switch_to", "__schedule", "schedule", "io_schedule", "yield", "yield_to"];
const INSIDE_BEGINS: &[&str] = &["schedule_", "io_schedule_", "__schedule_"];
/// Of these, the ones by which the kernel offers or takes the CPU.
const TAKES: &[&str] = &["_cond_resched", "__cond_resched", "dynamic_cond_resched", "__might_resched"];
const TAKES_BEGINS: &[&str] = &["preempt_schedule", "__cond_resched_", "dynamic_preempt_schedule"];
/// The ways out of interrupts and system calls. Where its work loop is inlined, `do_syscall_64` calls
/// the scheduler itself, and has no other reason to.
const OUT: &[&str] =
    &["raw_irqentry_exit_cond_resched", "dynamic_irqentry_exit_cond_resched", "do_syscall_64"];
const OUT_BEGINS: &[&str] = &["irqentry_exit", "exit_to_user_mode", "syscall_exit_to_user_mode"];
/// The scheduler's sources, and its one file that is the idle task's own code.
const SOURCES: &str = "kernel/sched/";
const IDLE_SOURCE: &str = "kernel/sched/idle.c";

/// Which functions are the scheduler's.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    parts: Vec<Part>,
}

impl Scheduler {
    pub fn new(symbols: &[Symbol]) -> Self {
        let kernel = |symbol: &Symbol| match symbol.module {
            None => part(&symbol.name, symbol.file.as_deref()),
            Some(_) => Part::Outside,
        };
        Self { parts: symbols.iter().map(kernel).collect() }
    }

    /// The reason, [`NO_CALLER`] if none is open, and the kind of a switch away from a stack, given
    /// from its top.
    pub fn why(&self, frames: impl Iterator<Item = (u32, How)>) -> (u32, SwitchKind) {
        let mut reason = None;
        let mut taken = false;
        for (function, how) in frames {
            if reason.is_none() {
                let part = self.parts.get(function as usize).copied().unwrap_or(Part::Outside);
                taken |= matches!(part, Part::Takes | Part::OutsideTakes);
                if matches!(part, Part::Outside | Part::OutsideTakes) {
                    reason = Some(function);
                }
            }
            taken |= how == How::Interrupt;
            if taken && reason.is_some() {
                break;
            }
        }
        (reason.unwrap_or(NO_CALLER), if taken { SwitchKind::Preempted } else { SwitchKind::Voluntary })
    }
}

fn part(name: &str, file: Option<&str>) -> Part {
    // `foo.constprop.0` and the like are `foo`.
    let name = name.split('.').next().unwrap_or(name);
    let is = |whole: &[&str], begins: &[&str]| {
        whole.contains(&name) || begins.iter().any(|begin| name.starts_with(begin))
    };
    let source = file.is_some_and(|file| file.starts_with(SOURCES) && file != IDLE_SOURCE);
    if is(OUT, OUT_BEGINS) {
        Part::OutsideTakes
    } else if is(TAKES, TAKES_BEGINS) {
        Part::Takes
    } else if source || is(INSIDE, INSIDE_BEGINS) {
        Part::Inside
    } else {
        Part::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, FunctionIndex};

    /// Why the innermost of these functions, the last, was switched away from. A name may be followed by `!`
    /// for an interrupt, and by ` @file`.
    fn why(stack: &[&str]) -> (String, SwitchKind) {
        let symbol = |(i, text): (usize, &&str)| {
            let (name, file) = text.split_once(" @").map_or((*text, None), |(name, file)| (name, Some(file)));
            Symbol {
                function: FunctionIndex(i as u32),
                name: name.trim_end_matches('!').into(),
                address: Address(0),
                size: 0,
                file: file.map(str::to_owned),
                module: None,
            }
        };
        let symbols: Vec<Symbol> = stack.iter().enumerate().map(symbol).collect();
        let how = |text: &str| if text.contains('!') { How::Interrupt } else { How::Call };
        let frames = stack.iter().enumerate().rev().map(|(i, text)| (i as u32, how(text)));
        let (reason, kind) = Scheduler::new(&symbols).why(frames);
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
            assert_eq!(why(stack), ((*reason).to_owned(), *kind), "{stack:?}");
        }
    }
}
