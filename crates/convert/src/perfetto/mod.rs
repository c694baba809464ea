//! [Perfetto](https://ui.perfetto.dev)'s trace in protocol buffers: calls as slices on the threads' tracks, CPU occupancy,
//! regions.
//!
//! It is written as a stream; memory does not grow with the trace. A slice on a thread's track
//! lasts from a call's beginning to its end, whatever came between: interrupts are nested where
//! they hit, as slices of the category `interrupt`, and threads that do not run keep their open
//! calls. The CPUs' tracks show whose time it was, and when a CPU was halted. Perfetto only knows
//! nanoseconds, so the name of the group of tracks says that one is an instruction.

mod paths;
mod proto;
mod writer;

pub use paths::of_paths;

use crate::stacks::{function_name, lane_name};
use crate::uftrace;
use kerntune_analyze::timeline::{CpuActivity, CpuSlice, HolderSlice, TimelineLane, TimelineSink};
use kerntune_profile::{thread_name, FunctionIndex, Tables};
use kerntune_trace::{EnterKind, Recording};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use writer::PacketWriter;

/// Categories of slices.
const CATEGORIES: [&str; 8] =
    ["call", "jump", "interrupt", "exception", "syscall", "region", "kernel", "user"];

/// Writer of a trace's timeline.
pub struct PerfettoTimeline<'a, W: Write> {
    out: PacketWriter<W>,
    tables: &'a Tables,
    recording: &'a Recording,
    /// Numbers of names that are no functions.
    words: HashMap<String, u64>,
    /// Threads whose track was named.
    named: Vec<bool>,
    tasks: Vec<uftrace::UftraceTask>,
    processes: BTreeSet<u32>,
    machine: u64,
    regions: Vec<u32>,
    /// Number of slices of functions.
    pub calls: u64,
}

/// Numbers of tracks; threads come after these.
const MACHINE: u64 = 1;
const REGIONS: u64 = 2;
const CUT: u64 = 3;
const FIRST_CPU: u64 = 16;
const FIRST_THREAD: u64 = 1 << 16;
const FIRST_PROCESS: u64 = 1 << 40;
/// Numbers of names; functions come after these.
const FIRST_FUNCTION: u64 = 1 << 20;

impl<'a, W: Write> PerfettoTimeline<'a, W> {
    /// Creates an empty timeline; `title` is the name of the group of tracks.
    pub fn new(out: W, title: &str, tables: &'a Tables, recording: &'a Recording) -> Self {
        let mut out = PacketWriter::new(out, &CATEGORIES);
        out.track(MACHINE, None, title);
        out.track(REGIONS, Some(MACHINE), "regions");
        for cpu in 0..u64::from(recording.cpus.max(1)) {
            out.track(FIRST_CPU + cpu, Some(MACHINE), &format!("CPU {cpu}"));
        }
        Self {
            out,
            tables,
            recording,
            words: HashMap::new(),
            named: vec![false; recording.threads.len() + 2],
            tasks: uftrace::tasks(&recording.threads),
            processes: BTreeSet::new(),
            machine: MACHINE,
            regions: Vec::new(),
            calls: 0,
        }
    }

    /// Marks that the trace is cut at this time, with the reason as the name of a track. The name
    /// of the group was written before this was known.
    pub fn cut(&mut self, at: u64, why: &str) {
        self.out.track(CUT, None, why);
        let name = self.word("[cut here]");
        if !self.out.knows(name) {
            self.out.name(name, "[cut here]");
        }
        self.out.begin(at, CUT, name, 5);
        self.out.end(at + 1, CUT);
    }

    /// Writes the rest. Returns the number of packets.
    ///
    /// # Errors
    /// The first error of writing, now or before.
    pub fn finish(self) -> io::Result<u64> {
        self.out.finish()
    }

    /// Returns the track of a thread, and names it at first use.
    fn thread(&mut self, thread: u32) -> u64 {
        let at = thread as usize;
        let uuid = FIRST_THREAD + u64::from(thread);
        let is_named = self.named.get_mut(at).is_none_or(|named| std::mem::replace(named, true));
        if is_named {
            return uuid;
        }
        let (Some(known), Some(task)) = (self.recording.threads.get(at), self.tasks.get(at)) else {
            self.out.track(uuid, Some(self.machine), "[thread not known]");
            return uuid;
        };
        // Perfetto takes process 0 for no process, so the idle tasks are a group of their own.
        let process = known.tgid;
        if process != 0 && self.processes.insert(process) {
            let leader = self.recording.threads.iter().find(|thread| thread.pid == process);
            let name = thread_name(&leader.unwrap_or(known).comm);
            self.out.process(FIRST_PROCESS + u64::from(process), process, &name);
        }
        match process {
            0 => self.out.track(uuid, Some(self.machine), &format!("{} (idle task)", known.comm)),
            process => self.out.thread(uuid, process, task.tid, &thread_name(&known.comm)),
        }
        uuid
    }

    fn word(&mut self, word: &str) -> u64 {
        let next = self.words.len() as u64 + 1;
        *self.words.entry(word.to_owned()).or_insert(next)
    }
}

impl<W: Write> TimelineSink for PerfettoTimeline<'_, W> {
    fn is_full(&self) -> bool {
        self.out.has_failed()
    }

    fn enter(&mut self, at: u64, thread: u32, function: u32, how: EnterKind) {
        let track = self.thread(thread);
        let name = FIRST_FUNCTION + u64::from(function);
        if !self.out.knows(name) {
            let text = function_name(self.tables, FunctionIndex(function));
            self.out.name(name, &text);
        }
        let category = match how {
            EnterKind::Call => 0,
            EnterKind::Jump => 1,
            EnterKind::Interrupt => 2,
            EnterKind::Exception => 3,
            EnterKind::Syscall => 4,
        };
        self.calls += 1;
        self.out.begin(at, track, name, category);
    }

    fn exit(&mut self, at: u64, thread: u32) {
        let track = self.thread(thread);
        self.out.end(at, track);
    }

    fn ran(&mut self, _: HolderSlice, _: u32) {}

    fn cpu(&mut self, cpu: u32, slice: CpuSlice) {
        let user = slice.state.holder.user;
        let text = match (slice.state.doing, slice.state.holder.lane) {
            (CpuActivity::Halted, _) | (_, TimelineLane::Idle) => "[halted]".into(),
            (CpuActivity::Waits, _) => "[another CPU's turn]".into(),
            (_, lane) => lane_name(self.recording, lane),
        };
        let name = self.word(&text);
        if !self.out.knows(name) {
            self.out.name(name, &text);
        }
        let track = FIRST_CPU + u64::from(cpu);
        self.out.begin(slice.begin, track, name, if user { 7 } else { 6 });
        self.out.end(slice.end, track);
    }

    fn region_begun(&mut self, at: u64, region: u32) {
        let recording = self.recording;
        let text = recording.regions.get(region as usize).map_or("", |region| region.name.as_str());
        let name = self.word(text);
        if !self.out.knows(name) {
            self.out.name(name, text);
        }
        self.regions.push(region);
        self.out.begin(at, REGIONS, name, 5);
    }

    fn region_ended(&mut self, at: u64, _: u32) {
        if self.regions.pop().is_some() {
            self.out.end(at, REGIONS);
        }
    }
}

#[cfg(test)]
mod tests;
