//! Random traces, well-formed.

use super::{TestTraceWriter, KERNEL_FUNCTIONS};
use kerntune_trace::{EnterKind, Event, EventWeights, Waker};
use proptest::prelude::*;

/// Kernel functions that are called: those below this number.
pub const FUNCTIONS: u32 = 6;
/// User functions that are called: this many after [`KERNEL_FUNCTIONS`].
pub const USER_FUNCTIONS: u32 = 3;
/// Number of threads; the first is the idle task.
pub const THREADS: usize = 3;

pub fn is_user(function: u32) -> bool {
    function > KERNEL_FUNCTIONS
}

/// Makes a well-formed step of three random numbers.
fn step(w: &mut TestTraceWriter, delta: u64, choice: u8, argument: u32, cuts: bool) {
    let depth = w.stacks[w.running].len() as u32;
    let top = w.stacks[w.running].last().copied();
    let in_user = w.user && top.is_none_or(|(function, _)| is_user(function));
    let function = argument % FUNCTIONS;
    let entered =
        w.stacks[w.running].iter().any(|(_, h)| matches!(h, EnterKind::Interrupt | EnterKind::Exception));
    let enter = |how| Event::Enter { function, how };
    w.weights = EventWeights {
        taken_branches: u64::from(argument >> 8) % 5,
        l1i_misses: u64::from(argument >> 16) % 3,
        itlb_misses: u64::from(argument >> 24) % 2,
    };
    let event = match choice {
        0..=14 if in_user && w.running != 0 => {
            Event::Enter { function: KERNEL_FUNCTIONS + 1 + argument % USER_FUNCTIONS, how: EnterKind::Call }
        }
        0..=29 => enter(EnterKind::Call),
        30..=35 if depth > 0 => enter(EnterKind::Jump),
        36..=43 => enter(EnterKind::Interrupt),
        44..=47 => enter(EnterKind::Exception),
        48..=51 if depth == 0 || in_user => enter(EnterKind::Syscall),
        52..=79 if depth > 0 => Event::Exit,
        80..=85 if entered => Event::Resume,
        86..=88 => Event::Leave,
        89..=90 => Event::Unwind { frames: argument % (depth + 1) },
        91..=97 => Event::Switch { thread: argument % THREADS as u32 },
        98..=99 => Event::Idle { ns: u64::from(argument % 7) * u64::from(argument) },
        100..=104 if w.open_regions() < 3 => {
            w.begin(delta, ["a", "b"][argument as usize % 2]);
            return;
        }
        105..=108 if w.open_regions() > 0 => {
            w.end(delta);
            return;
        }
        109..=115 => {
            if cuts {
                w.cut();
            }
            return;
        }
        116..=117 if w.open_regions() > 0 => Event::Point { point: argument % 2 },
        120..=127 if w.recording.cpus > 1 => {
            Event::Cpu { cpu: argument % w.recording.cpus, halts: argument & 0x100 != 0 }
        }
        128..=129 if w.recording.cpus > 1 => {
            Event::Delay { waker: Waker::Thread(argument % THREADS as u32), ns: delta * 100 }
        }
        _ => Event::Operation,
    };
    w.at(delta, event);
}

/// Plan of a trace: its steps, whether it begins in a region, whether it is wide, number of CPUs.
pub type TracePlan = (Vec<(u64, u8, u32)>, bool, bool, u32);

pub fn write((steps, in_region, wide, cpus): &TracePlan, cuts: bool) -> TestTraceWriter {
    let mut w = if *wide { TestTraceWriter::wide(THREADS) } else { TestTraceWriter::new(THREADS) };
    (1..*cpus).for_each(|_| {
        w.another_cpu();
    });
    if *in_region {
        w.begin(3, "first");
    }
    for (delta, choice, argument) in steps {
        step(&mut w, *delta, *choice, *argument, cuts);
    }
    while w.open_regions() > 0 {
        w.end(1);
    }
    w
}

pub fn any_plan() -> impl Strategy<Value = TracePlan> {
    let steps = prop::collection::vec((0u64..40, 0u8..130, any::<u32>()), 0..400);
    (steps, any::<bool>(), any::<bool>(), 1u32..4)
}
