//! Conversion of records to events, by the rules of McRae's analysis software.
//!
//! - The counter is an interval timer: the time between two records is its advance modulo its
//!   width. A pause of a whole round (16.8 s of 24 bits and 1 µs) cannot be seen.
//! - An exit ends the function of that name and everything open above it. If the function is not
//!   open and nothing else is, it was open when the capture began. Otherwise the exit is counted as
//!   unmatched.
//! - At the entry of a context switch (`!`) the process's stack is put aside. Until the switch is
//!   exited, the processor is idle, except in functions that are entered: these are interrupts. The
//!   process that resumes is found by the functions that are exited ([`super::processes`]).
//! - Self time of a function that waits for work (`~`) is idle.
//! - Time without an open function is unattributed: it may be user code or kernel code without
//!   triggers.
//!
//! Records are read twice: the functions open at the beginning are known only after all records
//! were seen, and come first in the trace. Only the records of a lookahead are in memory.

use super::ahead::Lookahead;
use super::dump::{DumpRecord, TagDump};
use super::names::{TagKind, TagNames, TagRole};
use super::processes::{ProcessTable, ReplayedProcess, ResumedProcess, UpcomingExits, IDLE};
use super::write::{DiscardSink, ReplayStep, StepSink, TraceSink};
use kerntune_profile::Anomaly;
use kerntune_trace::{EnterKind, Event, RecordedThread, Recording, RecordingHealth, TagLayout};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Name of the only region.
const REGION: &str = "capture";
/// Longest capture in ns: 104 days.
const MAX_SPAN_NS: u64 = 1 << 53;
/// Limit of open functions; no stack is deeper.
const DEPTH_LIMIT: usize = 10_000;

/// Failure to convert a dump.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum ReplayError {
    #[error("none of its {records} records has a tag that the names files have (the first has {first}): they are of another kernel, the bytes of the dump are in the other order, or its records have other widths (--tag-bits, --clock-bits)")]
    Foreign { records: usize, first: u64 },
    #[error("record {record}: {DEPTH_LIMIT} functions are open at once, the last of them {name}: the dump and the names files are not of one kernel, or exit triggers are missing")]
    Depth { record: usize, name: String },
    #[error("cannot read the records or write the trace: {0}")]
    Write(#[from] io::Error),
    #[error("record {record}: more than 104 days passed since the first one: the clock has another width (--clock-bits), or its ticks are shorter (--tick-ns)")]
    Span { record: usize },
    #[error("there is no record in it")]
    Empty,
}

/// Anomalies and other counts of a conversion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayAnomalies {
    /// Number of records of each tag that no names file has.
    pub unknown_tags: BTreeMap<u64, u64>,
    /// Exits of functions that were not open; ignored.
    pub unmatched_exits: u64,
    /// Calls without an exit, ended by the exit of a function below.
    pub unwound_calls: u64,
    /// Functions open at the beginning of the capture.
    pub open_at_begin: u64,
    /// Functions open at the end of the capture, in waiting processes too.
    pub open_at_end: u64,
    /// Context switches that ended.
    pub switches: u64,
    /// Context switches after which the resumed process is uncertain.
    pub uncertain_switches: u64,
    /// Entries of a context switch within another one; ignored.
    pub repeated_switches: u64,
    /// Wraps of the counter.
    pub timer_wraps: u64,
    /// Longest time between two records, in ns.
    pub longest_gap_ns: u64,
}

impl ReplayAnomalies {
    /// Returns the counts for a profile's manifest, without those that [`RecordingHealth`] has.
    pub fn health(&self) -> BTreeMap<String, u64> {
        [
            (Anomaly::UnknownTags, self.unknown_tags.values().sum()),
            (Anomaly::OpenAtBegin, self.open_at_begin),
            (Anomaly::OpenAtEnd, self.open_at_end),
            (Anomaly::UncertainSwitches, self.uncertain_switches),
            (Anomaly::RepeatedSwitches, self.repeated_switches),
            (Anomaly::TimerWraps, self.timer_wraps),
        ]
        .map(|(anomaly, count)| (anomaly.name().to_owned(), count))
        .into()
    }
}

/// Dump converted to a recording.
#[derive(Debug)]
pub struct ImportedDump<W> {
    /// Sink that the trace was written to.
    pub trace: W,
    /// Description of the run, as a recorder would write it.
    pub recording: Recording,
    /// Names and tags of the functions, by number; there are
    /// [`kerntune_trace::Recording::kernel_functions`].
    pub functions: Vec<(String, u64)>,
    /// Names of the inline points, by number.
    pub points: Vec<String>,
    /// Function around each point, if it was the innermost open one whenever the point was passed.
    pub functions_of_points: Vec<Option<u32>>,
    /// Anomalies of the conversion.
    pub troubles: ReplayAnomalies,
    /// Number of records.
    pub records: u64,
}

/// Converts a dump to a trace, which is written to `out`, and the recording that describes it.
///
/// # Errors
/// [`ReplayError`]: dump and names do not match, or `out` fails.
pub fn replay<W: Write>(names: &TagNames, dump: &TagDump, out: W) -> Result<ImportedDump<W>, ReplayError> {
    replay_records(names, dump.layout, || Ok(dump.records.iter().copied().map(Ok)), out)
}

/// Converts records that are read on demand. `open` returns an iterator from the first record; it
/// is called twice.
///
/// # Errors
/// Those of [`replay`]; [`ReplayError::Empty`] without records, and [`ReplayError::Write`] if
/// reading fails.
pub fn replay_records<W: Write, I: Iterator<Item = io::Result<DumpRecord>>>(
    names: &TagNames,
    layout: TagLayout,
    mut open: impl FnMut() -> io::Result<I>,
    out: W,
) -> Result<ImportedDump<W>, ReplayError> {
    let mut dry = DumpReplay::new(names, layout, open()?, DiscardSink);
    dry.run()?;
    let Some(first) = dry.first else { return Err(ReplayError::Empty) };
    if dry.troubles.unknown_tags.values().sum::<u64>() == dry.records {
        return Err(ReplayError::Foreign { records: dry.records as usize, first: first.tag });
    }
    let processes: Vec<ReplayedProcess> = dry.processes.into_all();
    // A counter of 64 bits may stand anywhere.
    let begin = layout.ns(first.time.into()).filter(|ns| *ns < MAX_SPAN_NS).unwrap_or(0);
    let mut machine = DumpReplay::new(names, layout, open()?, TraceSink::new(out, begin, &processes)?);
    machine.run()?;
    let DumpReplay { sink, mut troubles, now, within, idle_ns, records, .. } = machine;
    troubles.open_at_begin = processes.iter().map(|process| process.bottom.len() as u64).sum();
    let (trace, chunks, events) = sink.finish()?;
    let kinds = NumberedNames::of(names);
    let health = RecordingHealth {
        unmatched_returns: troubles.unmatched_exits,
        unwound_frames: troubles.unwound_calls,
        ..RecordingHealth::default()
    };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: kerntune_trace::VERSION,
        capture: kerntune_trace::CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: kinds.functions.len() as u32,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![kerntune_trace::RecordedRegion {
            name: REGION.into(),
            begin_ns: begin,
            elapsed_ns: now,
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
    Ok(ImportedDump {
        trace,
        recording,
        functions: kinds.functions.iter().map(name).collect(),
        points: kinds.points.iter().map(|number| name(number).0).collect(),
        functions_of_points: within.into_iter().map(Option::flatten).collect(),
        troubles,
        records,
    })
}

/// Makes up a thread; process 0 is the idle loop.
fn thread(number: usize) -> RecordedThread {
    let pid = number as u32;
    let comm = if number == IDLE { "idle".into() } else { format!("process {number}") };
    // The address is made up; a nonzero one marks a thread.
    RecordedThread { task: number as u64 + 1, pid, tgid: pid, comm }
}

/// Names divided into functions and points, each numbered from 0.
struct NumberedNames {
    functions: Vec<usize>,
    points: Vec<usize>,
    number: Vec<u32>,
    switch: Vec<bool>,
    idle: Vec<bool>,
}

impl NumberedNames {
    fn of(names: &TagNames) -> Self {
        let (mut functions, mut points, mut number) = (Vec::new(), Vec::new(), Vec::new());
        for (at, name) in names.all().iter().enumerate() {
            let list = if name.kind == TagKind::Inline { &mut points } else { &mut functions };
            number.push(list.len() as u32);
            list.push(at);
        }
        let are = |kind| functions.iter().map(|&at| names.all()[at].kind == kind).collect();
        Self { switch: are(TagKind::ContextSwitch), idle: are(TagKind::Idle), functions, points, number }
    }
}

impl NumberedNames {
    /// Returns the role of a tag, with the numbers of functions and points.
    fn role(&self, names: &TagNames, tag: u64) -> Option<TagRole> {
        let number = |at: usize| self.number[at] as usize;
        Some(match names.role(tag)? {
            TagRole::Entry(at) => TagRole::Entry(number(at)),
            TagRole::Exit(at) => TagRole::Exit(number(at)),
            TagRole::Point(at) => TagRole::Point(number(at)),
        })
    }

    /// Checks whether a tag is the entry or exit of a context switch.
    fn is_at_switch(&self, names: &TagNames, tag: u64) -> bool {
        matches!(self.role(names, tag), Some(TagRole::Entry(f) | TagRole::Exit(f)) if self.switch[f])
    }
}

/// State of the conversion.
struct DumpReplay<'a, I, S> {
    names: &'a TagNames,
    layout: TagLayout,
    kinds: NumberedNames,
    ahead: Lookahead<I>,
    sink: S,
    /// First record.
    first: Option<DumpRecord>,
    /// Number of records processed.
    records: u64,
    processes: ProcessTable,
    running: usize,
    /// Ticks since the first record.
    ticks: u128,
    /// Time in ns since the first record.
    now: u64,
    /// Time of the last step.
    last_step: u64,
    idle_ns: u64,
    troubles: ReplayAnomalies,
    /// Function around each point that was passed, if it was always the same.
    within: Vec<Option<Option<u32>>>,
}

impl<'a, I: Iterator<Item = io::Result<DumpRecord>>, S: StepSink> DumpReplay<'a, I, S> {
    fn new(names: &'a TagNames, layout: TagLayout, records: I, sink: S) -> Self {
        let kinds = NumberedNames::of(names);
        Self {
            within: vec![None; kinds.points.len()],
            kinds,
            names,
            layout,
            ahead: Lookahead::new(records),
            sink,
            first: None,
            records: 0,
            processes: ProcessTable::new(),
            running: IDLE,
            ticks: 0,
            now: 0,
            last_step: 0,
            idle_ns: 0,
            troubles: ReplayAnomalies::default(),
        }
    }

    fn role(&self, tag: u64) -> Option<TagRole> {
        self.kinds.role(self.names, tag)
    }

    fn is_switch(&self, function: usize) -> bool {
        self.kinds.switch[function]
    }

    fn run(&mut self) -> Result<(), ReplayError> {
        if self.begins_in_switch()? {
            // Perhaps inside an interrupt there.
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
            self.pass(at, last.unwrap_or(record.time), record.time)?;
            last = Some(record.time);
            match self.role(record.tag) {
                None => *self.troubles.unknown_tags.entry(record.tag).or_default() += 1,
                Some(TagRole::Point(point)) => self.pass_point(point)?,
                Some(TagRole::Entry(function)) if self.is_switch(function) => self.leave(at, function)?,
                Some(TagRole::Exit(function)) if self.is_switch(function) => self.resume(function)?,
                Some(TagRole::Entry(function)) => self.enter(at, function)?,
                Some(TagRole::Exit(function)) => self.exit(function)?,
            }
        }
        self.step(Event::RegionEnd { region: 0 })?;
        for process in 0..self.processes.count() {
            self.troubles.open_at_end += self.processes.get(process).stack.len() as u64;
        }
        Ok(())
    }

    /// Checks whether a context switch ends before one begins.
    fn begins_in_switch(&mut self) -> io::Result<bool> {
        let Self { ahead, names, kinds, .. } = self;
        let last = ahead.look(|record| kinds.is_at_switch(names, record.tag))?.last();
        let role = last.and_then(|record| kinds.role(names, record.tag));
        Ok(matches!(role, Some(TagRole::Exit(function)) if kinds.switch[function]))
    }

    /// Returns the exits from the next record on.
    fn evidence(&mut self) -> io::Result<UpcomingExits> {
        let Self { ahead, names, kinds, .. } = self;
        let records = ahead.look(|record| kinds.is_at_switch(names, record.tag))?;
        let roles = records.iter().map(|record| kinds.role(names, record.tag));
        Ok(UpcomingExits::ahead(roles, |function| kinds.switch[function]))
    }

    fn pass(&mut self, at: usize, from: u64, to: u64) -> Result<(), ReplayError> {
        // A smaller time means that the counter wrapped.
        self.ticks += u128::from(to.wrapping_sub(from) & self.layout.max_time());
        self.troubles.timer_wraps += u64::from(to < from);
        let now = self.layout.ns(self.ticks).filter(|ns| *ns < MAX_SPAN_NS);
        let now = now.ok_or(ReplayError::Span { record: at })?;
        self.troubles.longest_gap_ns = self.troubles.longest_gap_ns.max(now - self.now);
        self.now = now;
        Ok(())
    }

    /// Checks whether the processor is idle.
    fn is_idle(&mut self) -> bool {
        let (switch, idle) = (&self.kinds.switch, &self.kinds.idle);
        let top = self.processes.get(self.running).stack.last().copied();
        top.is_some_and(|top| idle[top as usize])
            || self.running == IDLE && top.is_none_or(|top| switch[top as usize])
    }

    /// Emits an event now. Must be called before the stacks change, because they decide whose time
    /// has passed.
    fn step(&mut self, event: Event) -> io::Result<()> {
        let idle = self.is_idle();
        self.step_of(idle, event)
    }

    fn step_of(&mut self, idle: bool, event: Event) -> io::Result<()> {
        let gap = self.now - self.last_step;
        self.idle_ns += if idle { gap } else { 0 };
        self.last_step = self.now;
        self.sink.take(ReplayStep { gap, idle, event })
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
        // Only an interrupt makes the idle processor run.
        let how = if self.is_idle() { EnterKind::Interrupt } else { EnterKind::Call };
        self.step(Event::Enter { function: function as u32, how })?;
        self.push(at, function)
    }

    /// Returns the first stack index that may end now: nothing extends across a context switch.
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
            // The idle loop has no callers.
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

    /// Enters a context switch.
    fn leave(&mut self, at: usize, switch: usize) -> Result<(), ReplayError> {
        if self.is_idle() {
            self.troubles.repeated_switches += 1;
            return Ok(());
        }
        self.step(Event::Enter { function: switch as u32, how: EnterKind::Call })?;
        self.push(at, switch)?;
        self.processes.park(self.running);
        if self.running != IDLE {
            self.step_of(false, Event::Switch { thread: IDLE as u32 })?;
            self.running = IDLE;
        }
        Ok(())
    }

    /// Exits a context switch and resumes a process.
    fn resume(&mut self, switch: usize) -> io::Result<()> {
        if self.running != IDLE {
            self.troubles.unmatched_exits += 1;
            return Ok(());
        }
        let floor = self.floor();
        let above = self.processes.get(IDLE).stack.len() - floor;
        self.unwind(above)?;
        let evidence = self.evidence()?;
        let ResumedProcess { process, new, uncertain } = self.processes.resume(switch as u32, &evidence);
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
