//! Where the time went, exactly: what a timer's samples are held against.
//!
//! In the emulator an instruction takes a nanosecond, so that a function's self time is the instructions between its
//! events. Whether interrupts were on is known from the two instructions that say so (`cli`, `sti`; the kernel has no
//! other way), which the recorder reports as points, and from how the kernel was entered.

use crate::support::arcs;
use kerntune_analyze::events::{replay, Bounds, Frame, Machine, Opening, Visitor};
use kerntune_analyze::TraceFile;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_machine::{Outcome, Point};
use kerntune_trace::{Event, How, Weights};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// `sti` itself and the instruction after it, before which no interrupt comes.
const SHADOW: u64 = 2;

/// Every `cli` and `sti` of the kernel, by name and place.
pub fn switches(kernel: &Kernel, symbols: &Symbols) -> Vec<Point> {
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
            points.push(Point { name: name.into(), address, function: function as u32 });
        }
    }
    assert!(child.wait().unwrap().success());
    points
}

/// Time, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Time {
    /// With interrupts on: samples find it.
    pub on: u64,
    /// With interrupts off: no sample finds it.
    pub off: u64,
    /// Time with interrupts off, anywhere, before they came on here: samples of that time are found here, but only one
    /// of several that came due meanwhile.
    pub charged: u64,
}

impl Time {
    /// Its own.
    pub fn own(&self) -> u64 {
        self.on + self.off
    }

    /// That of the samples that are found in it.
    pub fn seen(&self) -> u64 {
        self.on + self.charged
    }
}

/// User code.
pub const USER: u32 = u32::MAX;
/// A CPU that has nothing to do: halted, or in code of the idle task that is not a soft interrupt's.
pub const IDLE: u32 = u32::MAX - 1;

/// Everything between two moments.
#[derive(Debug, Default)]
pub struct Times {
    /// Self times of functions by number, of [`USER`] and [`IDLE`].
    pub own: BTreeMap<u32, Time>,
}

struct Clock {
    /// `true` where a point says that interrupts come on.
    comes_on: Vec<bool>,
    snapshot: u32,
    softirqs: u32,
    unknown: u32,
    idle_task: usize,
    period: u64,
    on: bool,
    /// What is left of `sti` and the instruction after it.
    shadow: u64,
    /// That is over: interrupts come on wherever it goes on now.
    armed: bool,
    /// Time with interrupts off that is not charged yet.
    pending: u64,
    windows: Vec<Times>,
}

impl Clock {
    fn now(&mut self) -> &mut Times {
        self.windows.last_mut().unwrap()
    }

    fn here(&self, machine: &Machine<bool>) -> u32 {
        let frames = machine.frames();
        let idles =
            machine.running() == self.idle_task && !frames.iter().any(|f| f.function == self.softirqs);
        frames.last().map_or(USER, |top| if idles { IDLE } else { top.function })
    }

    /// Samples of the time that has passed with interrupts off are taken here.
    fn comes_on_in(&mut self, function: u32) {
        let pending = std::mem::take(&mut self.pending).min(self.period);
        self.now().own.entry(function).or_default().charged += pending;
        (self.on, self.armed, self.shadow) = (true, false, 0);
    }
}

impl Visitor for Clock {
    /// Whether interrupts were on where the frame was entered.
    type Frame = bool;

    fn begin(&mut self, machine: &mut Machine<bool>, opening: &Opening<'_>) {
        if !machine.is_as(opening) {
            machine.take(opening);
        }
    }

    fn pass(&mut self, machine: &mut Machine<bool>, ns: u64, _: Weights, _: &Event) {
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

    fn idle(&mut self, _: &mut Machine<bool>, ns: u64) {
        self.now().own.entry(IDLE).or_default().on += ns;
    }

    fn enter(&mut self, machine: &mut Machine<bool>, function: u32, how: How) -> bool {
        if function == self.snapshot
            && machine.frames().last().is_some_and(|top| top.function == self.unknown)
        {
            self.windows.push(Times::default());
        }
        if self.armed && how == How::Interrupt {
            let here = self.here(machine);
            self.comes_on_in(here);
        }
        let before = self.on;
        if matches!(how, How::Interrupt | How::Exception | How::Syscall) {
            (self.on, self.armed, self.shadow) = (false, false, 0);
        }
        before
    }

    fn ended(&mut self, machine: &mut Machine<bool>, frame: Frame<bool>) {
        if matches!(frame.how, How::Interrupt | How::Exception) {
            let here = self.here(machine);
            if frame.data {
                self.comes_on_in(here);
            } else {
                (self.on, self.armed, self.shadow) = (false, false, 0);
            }
        }
    }

    fn point(&mut self, machine: &mut Machine<bool>, point: u32) {
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

/// What the recorder saw between each two snapshots, in order, as in `truth.rs`; and what a timer of this mean
/// period, ns, should see.
pub fn recorded(outcome: &Outcome, symbols: &Symbols, switches: &[Point], period: u64) -> Vec<Times> {
    let recording = outcome.recording.as_ref().unwrap();
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut clock = Clock {
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
        windows: vec![Times::default()],
    };
    let mut machine = Machine::new(Bounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut clock, &reader.read(number).unwrap()).unwrap();
    }
    clock.windows
}
