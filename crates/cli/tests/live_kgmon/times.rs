//! Exact times of functions, to compare with timer samples.
//!
//! In the emulator an instruction takes a nanosecond, so a function's self time is the number of
//! instructions between its events. The state of interrupts follows from the two instructions that
//! change it (`cli`, `sti`; the kernel uses no others), which the recorder reports as points, and
//! from the way in which the kernel was entered.

use crate::support::arcs;
use kerntune_analyze::events::{replay, ChunkOpening, EventVisitor, ReplayState, StackFrame, TraceBounds};
use kerntune_analyze::TraceFile;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_machine::{InlinePoint, RunOutcome};
use kerntune_trace::{EnterKind, Event, EventWeights};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Length of `sti` and of the instruction after it, before which no interrupt is accepted.
const SHADOW: u64 = 2;

/// Returns every `cli` and `sti` of the kernel, with name and address.
pub fn switches(kernel: &Kernel, symbols: &Symbols) -> Vec<InlinePoint> {
    let mut child = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-j", ".text"])
        .arg(kernel.vmlinux())
        .stdout(Stdio::piped())
        .spawn()
        .expect("objdump of binutils");
    let mut points = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((address, text)) = line.split_once(":\t") else { continue };
        let name = text.trim();
        if name != "cli" && name != "sti" {
            continue;
        }
        let address = u64::from_str_radix(address.trim(), 16).unwrap();
        if let Some(function) = symbols.lookup(address) {
            points.push(InlinePoint { name: name.into(), address, function: function as u32 });
        }
    }
    assert!(child.wait().unwrap().success());
    points
}

/// Time by state of interrupts, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterruptTime {
    /// Time with interrupts on, which samples can hit.
    pub on: u64,
    /// Time with interrupts off, which samples cannot hit.
    pub off: u64,
    /// Time with interrupts off, anywhere, before they were switched on here. Its samples are taken
    /// here, but several that became due count as one.
    pub charged: u64,
}

impl InterruptTime {
    /// Self time.
    pub fn own(&self) -> u64 {
        self.on + self.off
    }

    /// Time whose samples are attributed to the function.
    pub fn seen(&self) -> u64 {
        self.on + self.charged
    }
}

/// Number for user code.
pub const USER: u32 = u32::MAX;
/// Number for idle time: halted CPUs, and the idle task except soft interrupts.
pub const IDLE: u32 = u32::MAX - 1;

/// Times between two snapshots.
#[derive(Debug, Default)]
pub struct SelfTimes {
    /// Self times by function number, [`USER`] and [`IDLE`].
    pub own: BTreeMap<u32, InterruptTime>,
}

struct InterruptClock {
    /// By point: true if it switches interrupts on.
    comes_on: Vec<bool>,
    snapshot: u32,
    softirqs: u32,
    unknown: u32,
    idle_task: usize,
    period: u64,
    on: bool,
    /// Rest of the time of `sti` and the instruction after it.
    shadow: u64,
    /// Set after that time: interrupts are on from the next instruction.
    armed: bool,
    /// Time with interrupts off that is not yet charged.
    pending: u64,
    windows: Vec<SelfTimes>,
}

impl InterruptClock {
    fn now(&mut self) -> &mut SelfTimes {
        self.windows.last_mut().unwrap()
    }

    fn here(&self, machine: &ReplayState<bool>) -> u32 {
        let frames = machine.frames();
        let idles =
            machine.running() == self.idle_task && !frames.iter().any(|f| f.function == self.softirqs);
        frames.last().map_or(USER, |top| if idles { IDLE } else { top.function })
    }

    /// Charges the time with interrupts off to the function in which they are switched on.
    fn comes_on_in(&mut self, function: u32) {
        let pending = std::mem::take(&mut self.pending).min(self.period);
        self.now().own.entry(function).or_default().charged += pending;
        (self.on, self.armed, self.shadow) = (true, false, 0);
    }
}

impl EventVisitor for InterruptClock {
    /// State of interrupts at the entry of the frame.
    type PerFrame = bool;

    fn begin(&mut self, machine: &mut ReplayState<bool>, opening: &ChunkOpening<'_>) {
        if !machine.agrees_with(opening) {
            machine.adopt(opening);
        }
    }

    fn pass(&mut self, machine: &mut ReplayState<bool>, ns: u64, _: EventWeights, _: &Event) {
        let here = self.here(machine);
        if here == USER && !self.on {
            self.comes_on_in(USER);
        }
        let mut off = if self.on || self.armed { 0 } else { ns };
        if self.shadow > 0 {
            off = ns.min(self.shadow);
            self.shadow -= off;
            self.armed = self.shadow == 0;
        }
        self.pending += off;
        if self.armed && ns > off {
            self.comes_on_in(here);
        }
        let time = self.now().own.entry(here).or_default();
        time.off += off;
        time.on += ns - off;
    }

    fn idle(&mut self, _: &mut ReplayState<bool>, ns: u64) {
        self.now().own.entry(IDLE).or_default().on += ns;
    }

    fn enter(&mut self, machine: &mut ReplayState<bool>, function: u32, how: EnterKind) -> bool {
        if function == self.snapshot
            && machine.frames().last().is_some_and(|top| top.function == self.unknown)
        {
            self.windows.push(SelfTimes::default());
        }
        if self.armed && how == EnterKind::Interrupt {
            let here = self.here(machine);
            self.comes_on_in(here);
        }
        let before = self.on;
        if matches!(how, EnterKind::Interrupt | EnterKind::Exception | EnterKind::Syscall) {
            (self.on, self.armed, self.shadow) = (false, false, 0);
        }
        before
    }

    fn ended(&mut self, machine: &mut ReplayState<bool>, frame: StackFrame<bool>) {
        if matches!(frame.how, EnterKind::Interrupt | EnterKind::Exception) {
            let here = self.here(machine);
            if frame.data {
                self.comes_on_in(here);
            } else {
                (self.on, self.armed, self.shadow) = (false, false, 0);
            }
        }
    }

    fn point(&mut self, machine: &mut ReplayState<bool>, point: u32) {
        if self.comes_on[point as usize] {
            self.shadow = if self.on || self.armed { 0 } else { SHADOW };
        } else {
            if self.armed {
                let here = self.here(machine);
                self.comes_on_in(here);
            }
            (self.on, self.shadow) = (false, 0);
        }
    }
}

/// Returns the recorder's times between snapshots, in order, as in `truth.rs`; and the times that a
/// timer of this mean period (ns) should sample.
pub fn recorded(
    outcome: &RunOutcome,
    symbols: &Symbols,
    switches: &[InlinePoint],
    period: u64,
) -> Vec<SelfTimes> {
    let recording = outcome.recording.as_ref().unwrap();
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut clock = InterruptClock {
        comes_on: switches.iter().map(|point| point.name == "sti").collect(),
        snapshot: arcs::function(symbols, arcs::SNAPSHOT),
        softirqs: arcs::function(symbols, "handle_softirqs"),
        unknown: symbols.functions().len() as u32,
        idle_task: recording.threads.iter().position(|thread| thread.pid == 0).unwrap_or(usize::MAX),
        period,
        on: true,
        shadow: 0,
        armed: false,
        pending: 0,
        windows: vec![SelfTimes::default()],
    };
    let mut machine = ReplayState::new(TraceBounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut clock, &reader.read(number).unwrap()).unwrap();
    }
    clock.windows
}
