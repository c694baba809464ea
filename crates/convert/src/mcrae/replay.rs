//! From records to events, by the rules of McRae's analysis software.
//!
//! - The counter is an interval timer: from one record to the next passes what it has advanced modulo
//!   2^24 µs. A pause of a whole round (16.8 s) cannot be seen.
//! - An exit ends the function of that name and whatever is open above it. One of a function that is
//!   not open says that it was open when the capture began, if nothing else is open, and is counted
//!   as unmatched otherwise.
//! - At the entry of a context switch (`!`) the process's path is put aside. Until the switch is
//!   exited the processor is idle, but for the functions that are entered: these are interrupts. Who
//!   goes on then is found by what is exited ([`super::processes`]).
//! - Time of a function that waits for work (`~`) itself is idle.
//! - Time with no function open is nobody's: it may be user code or kernel code without triggers.
//!
//! Records are read twice: what was open at the beginning is only known when all was seen, and stands at the beginning of
//! the trace. In memory are those that a context switch has to look ahead at, and no others.

use super::ahead::Ahead;
use super::dump::{Dump, Record};
use super::names::{Kind, Names, Role};
use super::processes::{Evidence, Found, Process, Processes, IDLE};
use super::write::{Nowhere, Sink, Step, TraceOut};
use kerntune_trace::{Event, Health, How, Recording, Thread};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The name of the one region.
const REGION: &str = "capture";
const ROUND: u32 = 1 << 24;
/// More open functions than any stack has.
const DEPTH_LIMIT: usize = 10_000;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// No tag of the dump is in the names files.
    #[error("none of its {records} records has a tag that the names files have (the first has {first}): they are of another kernel, or the bytes of the dump are in the other order")]
    Foreign {
        /// Number of records.
        records: usize,
        /// The first one's tag.
        first: u16,
    },
    /// Functions begin and never end.
    #[error("record {record}: {DEPTH_LIMIT} functions are open at once, the last of them {name}: the dump and the names files are not of one kernel, or exit triggers are missing")]
    Depth {
        /// Number of the record, from 0.
        record: usize,
        /// The function.
        name: String,
    },
    /// The records could not be read, or the trace not written.
    #[error("cannot read the records or write the trace: {0}")]
    Write(#[from] io::Error),
    /// Nothing was recorded.
    #[error("there is no record in it")]
    Empty,
}

/// Anomalies, and what else is good to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Records of tags that no names file has, by tag.
    pub unknown_tags: BTreeMap<u16, u64>,
    /// Exits of functions that were not open; passed over.
    pub unmatched_exits: u64,
    /// Calls whose exit is missing, ended by that of a function below.
    pub unwound_calls: u64,
    /// Functions that were open when the capture began.
    pub open_at_begin: u64,
    /// Functions that were open when it ended, those of waiting processes included.
    pub open_at_end: u64,
    /// Context switches that ended.
    pub switches: u64,
    /// Those of which it is not sure who went on.
    pub uncertain_switches: u64,
    /// Entries of a context switch within another one; passed over.
    pub repeated_switches: u64,
    /// Times that the counter began again.
    pub timer_wraps: u64,
    /// The longest time between two records, µs.
    pub longest_gap_us: u32,
}

impl Troubles {
    /// The counts for a profile's manifest. Those that [`Health`] has are left out.
    pub fn health(&self) -> BTreeMap<String, u64> {
        [
            ("unknown_tags", self.unknown_tags.values().sum()),
            ("open_at_begin", self.open_at_begin),
            ("open_at_end", self.open_at_end),
            ("uncertain_switches", self.uncertain_switches),
            ("repeated_switches", self.repeated_switches),
            ("timer_wraps", self.timer_wraps),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into()
    }
}

/// A dump as a recording.
#[derive(Debug)]
pub struct Imported<W> {
    /// The sink that the trace was written to.
    pub trace: W,
    /// What a recorder would say of the run.
    pub recording: Recording,
    /// The functions by number; [`kerntune_trace::Recording::kernel_functions`] of them.
    pub functions: Vec<(String, u16)>,
    /// The inline points by number.
    pub points: Vec<String>,
    /// The function that each of them is in: the one that was open last whenever it was passed.
    pub functions_of_points: Vec<Option<u32>>,
    /// Anomalies.
    pub troubles: Troubles,
    /// How many records there were.
    pub records: u64,
}

/// Turns a dump into a trace, which is written to `out`, and the recording that describes it.
///
/// # Errors
/// [`ReplayError`]: dump and names have nothing to do with each other, or `out` fails.
pub fn replay<W: Write>(names: &Names, dump: &Dump, out: W) -> Result<Imported<W>, ReplayError> {
    replay_records(names, || Ok(dump.records.iter().copied().map(Ok)), out)
}

/// The same of records that are read as they are needed; `open` begins with the first, and is called twice.
///
/// # Errors
/// As [`replay`]; [`ReplayError::Empty`] without records, and [`ReplayError::Write`] with what reading them failed with.
pub fn replay_records<W: Write, I: Iterator<Item = io::Result<Record>>>(
    names: &Names,
    mut open: impl FnMut() -> io::Result<I>,
    out: W,
) -> Result<Imported<W>, ReplayError> {
    let mut dry = Machine::new(names, open()?, Nowhere);
    dry.run()?;
    let Some(first) = dry.first else { return Err(ReplayError::Empty) };
    if dry.troubles.unknown_tags.values().sum::<u64>() == dry.records {
        return Err(ReplayError::Foreign { records: dry.records as usize, first: first.tag });
    }
    let processes: Vec<Process> = dry.processes.into_all();
    let begin = u64::from(first.time);
    let mut machine = Machine::new(names, open()?, TraceOut::new(out, begin, &processes)?);
    machine.run()?;
    let Machine { sink, mut troubles, now, within, idle_ns, records, .. } = machine;
    troubles.open_at_begin = processes.iter().map(|process| process.bottom.len() as u64).sum();
    let (trace, chunks, events) = sink.finish()?;
    let kinds = Kinds::of(names);
    let health = Health {
        unmatched_returns: troubles.unmatched_exits,
        unwound_frames: troubles.unwound_calls,
        ..Health::default()
    };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: kerntune_trace::VERSION,
        capture: kerntune_trace::Capture { functions: true, edges: false, weights: false },
        kernel_functions: kinds.functions.len() as u32,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![kerntune_trace::Region {
            name: REGION.into(),
            begin_ns: begin * 1000,
            elapsed_ns: now * 1000,
            idle_ns,
            operations: 0,
            depth: 0,
            closed: true,
            kernel: Default::default(),
            user: Default::default(),
            model_events: Vec::new(),
            cpus: Vec::new(),
        }],
        threads: (0..processes.len()).map(thread).collect(),
        chunks,
        events,
        health,
        notes: Vec::new(),
    };
    let name = |&number: &usize| (names.all()[number].name.clone(), names.all()[number].tag);
    Ok(Imported {
        trace,
        recording,
        functions: kinds.functions.iter().map(name).collect(),
        points: kinds.points.iter().map(|number| name(number).0).collect(),
        functions_of_points: within.into_iter().map(Option::flatten).collect(),
        troubles,
        records,
    })
}

/// A made-up thread: process 0 is the idle loop.
fn thread(number: usize) -> Thread {
    let pid = number as u32;
    let comm = if number == IDLE { "idle".into() } else { format!("process {number}") };
    // An address that is none says that it is a thread at all.
    Thread { task: number as u64 + 1, pid, tgid: pid, comm }
}

/// Names apart by what they stand for, and the number of each among its like.
struct Kinds {
    functions: Vec<usize>,
    points: Vec<usize>,
    number: Vec<u32>,
    switch: Vec<bool>,
    idle: Vec<bool>,
}

impl Kinds {
    fn of(names: &Names) -> Self {
        let (mut functions, mut points, mut number) = (Vec::new(), Vec::new(), Vec::new());
        for (at, name) in names.all().iter().enumerate() {
            let list = if name.kind == Kind::Inline { &mut points } else { &mut functions };
            number.push(list.len() as u32);
            list.push(at);
        }
        let are = |kind| functions.iter().map(|&at| names.all()[at].kind == kind).collect();
        Self { switch: are(Kind::ContextSwitch), idle: are(Kind::Idle), functions, points, number }
    }
}

impl Kinds {
    /// The role of a tag, with numbers of functions and of points.
    fn role(&self, names: &Names, tag: u16) -> Option<Role> {
        let number = |at: usize| self.number[at] as usize;
        Some(match names.role(tag)? {
            Role::Entry(at) => Role::Entry(number(at)),
            Role::Exit(at) => Role::Exit(number(at)),
            Role::Point(at) => Role::Point(number(at)),
        })
    }

    /// Whether a tag is said at the beginning or end of a context switch.
    fn is_at_switch(&self, names: &Names, tag: u16) -> bool {
        matches!(self.role(names, tag), Some(Role::Entry(f) | Role::Exit(f)) if self.switch[f])
    }
}

/// The state while records are replayed.
struct Machine<'a, I, S> {
    names: &'a Names,
    kinds: Kinds,
    ahead: Ahead<I>,
    sink: S,
    /// The first record.
    first: Option<Record>,
    /// Replayed so far.
    records: u64,
    processes: Processes,
    running: usize,
    /// µs since the first record.
    now: u64,
    /// Of the last step.
    told: u64,
    idle_ns: u64,
    troubles: Troubles,
    /// For each point that was passed the function around it, if that was always the same.
    within: Vec<Option<Option<u32>>>,
}

impl<'a, I: Iterator<Item = io::Result<Record>>, S: Sink> Machine<'a, I, S> {
    fn new(names: &'a Names, records: I, sink: S) -> Self {
        let kinds = Kinds::of(names);
        Self {
            within: vec![None; kinds.points.len()],
            kinds,
            names,
            ahead: Ahead::new(records),
            sink,
            first: None,
            records: 0,
            processes: Processes::new(),
            running: IDLE,
            now: 0,
            told: 0,
            idle_ns: 0,
            troubles: Troubles::default(),
        }
    }

    fn role(&self, tag: u16) -> Option<Role> {
        self.kinds.role(self.names, tag)
    }

    fn is_switch(&self, function: usize) -> bool {
        self.kinds.switch[function]
    }

    fn run(&mut self) -> Result<(), ReplayError> {
        if self.begins_in_switch()? {
            // And perhaps in an interrupt there.
            let open = self.evidence()?.into_exits();
            let idle = self.processes.get(IDLE);
            idle.stack = open.iter().rev().copied().collect();
            idle.bottom = open;
        } else {
            self.running = self.processes.add();
        }
        let running = self.running as u32;
        self.step(Event::Switch { thread: running })?;
        self.step(Event::RegionBegin { region: 0 })?;
        let mut last = None;
        while let Some((at, record)) = self.ahead.next()? {
            self.first.get_or_insert(record);
            self.records += 1;
            self.pass(last.unwrap_or(record.time), record.time);
            last = Some(record.time);
            match self.role(record.tag) {
                None => *self.troubles.unknown_tags.entry(record.tag).or_default() += 1,
                Some(Role::Point(point)) => self.pass_point(point)?,
                Some(Role::Entry(function)) if self.is_switch(function) => self.leave(at, function)?,
                Some(Role::Exit(function)) if self.is_switch(function) => self.go_on(function)?,
                Some(Role::Entry(function)) => self.enter(at, function)?,
                Some(Role::Exit(function)) => self.exit(function)?,
            }
        }
        self.step(Event::RegionEnd { region: 0 })?;
        for process in 0..self.processes.count() {
            self.troubles.open_at_end += self.processes.get(process).stack.len() as u64;
        }
        Ok(())
    }

    /// Whether a context switch ends before one begins.
    fn begins_in_switch(&mut self) -> io::Result<bool> {
        let Self { ahead, names, kinds, .. } = self;
        let last = ahead.look(|record| kinds.is_at_switch(names, record.tag))?.last();
        let role = last.and_then(|record| kinds.role(names, record.tag));
        Ok(matches!(role, Some(Role::Exit(function)) if kinds.switch[function]))
    }

    /// What is exited from the next record on.
    fn evidence(&mut self) -> io::Result<Evidence> {
        let Self { ahead, names, kinds, .. } = self;
        let records = ahead.look(|record| kinds.is_at_switch(names, record.tag))?;
        let roles = records.iter().map(|record| kinds.role(names, record.tag));
        Ok(Evidence::ahead(roles, |function| kinds.switch[function]))
    }

    fn pass(&mut self, from: u32, to: u32) {
        // Both are below the limit; a counter that shows less has begun again.
        let gap = (to + ROUND - from) % ROUND;
        self.troubles.timer_wraps += u64::from(to < from);
        self.troubles.longest_gap_us = self.troubles.longest_gap_us.max(gap);
        self.now += u64::from(gap);
    }

    /// The processor does nothing.
    fn is_idle(&mut self) -> bool {
        let (switch, idle) = (&self.kinds.switch, &self.kinds.idle);
        let top = self.processes.get(self.running).stack.last().copied();
        top.is_some_and(|top| idle[top as usize])
            || self.running == IDLE && top.is_none_or(|top| switch[top as usize])
    }

    /// What happens now. Has to be called before the stacks change: it decides whose time has passed.
    fn step(&mut self, event: Event) -> io::Result<()> {
        let idle = self.is_idle();
        self.step_of(idle, event)
    }

    fn step_of(&mut self, idle: bool, event: Event) -> io::Result<()> {
        let gap = self.now - self.told;
        self.idle_ns += if idle { gap * 1000 } else { 0 };
        self.told = self.now;
        self.sink.take(Step { gap, idle, event })
    }

    fn push(&mut self, at: usize, function: usize) -> Result<(), ReplayError> {
        let stack = &mut self.processes.get(self.running).stack;
        if stack.len() >= DEPTH_LIMIT {
            let name = self.names.all()[self.kinds.functions[function]].name.clone();
            return Err(ReplayError::Depth { record: at, name });
        }
        stack.push(function as u32);
        Ok(())
    }

    fn pass_point(&mut self, point: usize) -> io::Result<()> {
        self.step(Event::Point { point: point as u32 })?;
        let around = self.processes.get(self.running).stack.last().copied();
        match &mut self.within[point] {
            unknown @ None => *unknown = Some(around),
            Some(before) if *before != around => *before = None,
            Some(_) => {}
        }
        Ok(())
    }

    fn enter(&mut self, at: usize, function: usize) -> Result<(), ReplayError> {
        // Nothing but a device makes the idle processor run.
        let how = if self.is_idle() { How::Interrupt } else { How::Call };
        self.step(Event::Enter { function: function as u32, how })?;
        self.push(at, function)
    }

    /// Where the functions begin that may end now: nothing reaches across a context switch.
    fn floor(&mut self) -> usize {
        let switch = &self.kinds.switch;
        let stack = &self.processes.get(self.running).stack;
        stack.iter().rposition(|&f| switch[f as usize]).map_or(0, |at| at + 1)
    }

    fn exit(&mut self, function: usize) -> io::Result<()> {
        let floor = self.floor();
        let function = function as u32;
        let stack = &mut self.processes.get(self.running).stack;
        match stack[floor..].iter().rposition(|&open| open == function) {
            Some(at) => {
                let above = stack.len() - (floor + at) - 1;
                self.unwind(above)?;
                self.step(Event::Exit)?;
                self.processes.get(self.running).stack.pop();
            }
            // Below the idle loop there is nothing.
            None if stack.is_empty() && self.running != IDLE => {
                self.step(Event::Exit)?;
                self.processes.get(self.running).bottom.push(function);
            }
            None => self.troubles.unmatched_exits += 1,
        }
        Ok(())
    }

    /// Ends calls whose exit is missing.
    fn unwind(&mut self, calls: usize) -> io::Result<()> {
        if calls > 0 {
            self.step(Event::Unwind { frames: calls as u32 })?;
            self.troubles.unwound_calls += calls as u64;
            let stack = &mut self.processes.get(self.running).stack;
            stack.truncate(stack.len() - calls);
        }
        Ok(())
    }

    /// A context switch is entered.
    fn leave(&mut self, at: usize, switch: usize) -> Result<(), ReplayError> {
        if self.is_idle() {
            self.troubles.repeated_switches += 1;
            return Ok(());
        }
        self.step(Event::Enter { function: switch as u32, how: How::Call })?;
        self.push(at, switch)?;
        self.processes.park(self.running);
        if self.running != IDLE {
            self.step_of(false, Event::Switch { thread: IDLE as u32 })?;
            self.running = IDLE;
        }
        Ok(())
    }

    /// A context switch is exited: somebody goes on.
    fn go_on(&mut self, switch: usize) -> io::Result<()> {
        if self.running != IDLE {
            self.troubles.unmatched_exits += 1;
            return Ok(());
        }
        let floor = self.floor();
        let above = self.processes.get(IDLE).stack.len() - floor;
        self.unwind(above)?;
        let evidence = self.evidence()?;
        let Found { process, new, uncertain } = self.processes.resume(switch as u32, &evidence);
        self.troubles.switches += 1;
        self.troubles.uncertain_switches += u64::from(uncertain);
        if process != IDLE {
            self.step(Event::Switch { thread: process as u32 })?;
        }
        self.step_of(true, Event::Exit)?;
        self.running = process;
        let process = self.processes.get(process);
        if new {
            process.bottom.push(switch as u32);
        } else {
            process.stack.pop();
        }
        Ok(())
    }
}
