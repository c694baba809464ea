//! Writes traces like the recorder: stacks are always tracked, events are written while a region is
//! open, each chunk begins with the current state.
#![allow(dead_code)]

pub mod lanes;
pub mod plans;

use kerntune_profile::{Address, FunctionIndex, Symbol};
use kerntune_trace::{
    encode, CaptureSpec, ChunkHeader, ChunkState, CpuCounters, EnterKind, Event, EventWeights, ModeCounters,
    OpenStack, RecordedRegion, RecordedThread, Recording, RecordingHealth, TraceFileWriter, TraceHeader,
    WaitingCpu, VERSION,
};
use std::io::Write;

/// A step of the trace, for other implementations of the replay.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceStep {
    /// The first chunk, or one after a gap, begins: time, executing CPU, thread and mode of each
    /// CPU, frames of each thread.
    Start {
        now: u64,
        cpu: usize,
        cpus: Vec<(usize, bool)>,
        stacks: Vec<Vec<(u32, EnterKind)>>,
    },
    Event(u64, EventWeights, Event),
}

/// Functions above this number are user code's.
pub const KERNEL_FUNCTIONS: u32 = 32;

pub struct TestTraceWriter<W: Write = Vec<u8>> {
    pub stacks: Vec<Vec<(u32, EnterKind)>>,
    pub running: usize,
    /// The CPU that executes.
    cpu: usize,
    /// Thread and mode of each CPU; stale for the one that executes.
    cpus: Vec<(usize, bool)>,
    /// Instructions of each CPU since the outermost region began.
    executed: Vec<u64>,
    /// True for CPUs that are halted while another one executes.
    halted: Vec<bool>,
    /// Halted time of each CPU since the outermost region began.
    halted_ns: Vec<u64>,
    pub steps: Vec<TraceStep>,
    pub recording: Recording,
    pub user: bool,
    /// Weights of the next event of a wide trace.
    pub weights: EventWeights,
    /// True to keep `steps`.
    pub keep: bool,
    open: Vec<(usize, u64, u64)>,
    now: u64,
    idle: u64,
    wide: bool,
    file: Option<TraceFileWriter<W>>,
    raw: Vec<u8>,
    state: usize,
    chunks: u32,
    events: u32,
    begin: u64,
    begin_cpu: u32,
}

impl TestTraceWriter {
    pub fn new(threads: usize) -> Self {
        Self::into(Vec::new(), threads, false)
    }

    /// A writer of a trace whose events carry weights.
    pub fn wide(threads: usize) -> Self {
        Self::into(Vec::new(), threads, true)
    }
}

impl<W: Write> TestTraceWriter<W> {
    /// Thread 0 is the idle task; thread 1 runs, in user mode.
    pub fn into(sink: W, threads: usize, wide: bool) -> Self {
        let thread =
            |i| RecordedThread { task: 0x1000 + i, pid: i as u32, tgid: i as u32, comm: format!("t{i}") };
        Self {
            stacks: vec![Vec::new(); threads],
            running: 1,
            cpu: 0,
            cpus: vec![(1, true)],
            executed: vec![0],
            halted: vec![false],
            halted_ns: vec![0],
            steps: Vec::new(),
            recording: Recording {
                ran: Vec::new(),
                ran_since_boot: Vec::new(),
                version: VERSION,
                capture: CaptureSpec { functions: true, edges: false, weights: wide },
                kernel_functions: KERNEL_FUNCTIONS,
                first_loaded: None,
                cpus: 1,
                per_cpu: Vec::new(),
                regions: Vec::new(),
                threads: (0..threads as u64).map(thread).collect(),
                chunks: Vec::new(),
                events: 0,
                health: RecordingHealth::default(),
                notes: Vec::new(),
            },
            user: true,
            weights: EventWeights::NONE,
            keep: true,
            open: Vec::new(),
            now: 1_000_000,
            idle: 0,
            wide,
            file: Some(TraceFileWriter::new(sink, TraceHeader { wide }).unwrap()),
            raw: Vec::new(),
            state: 0,
            chunks: 0,
            events: 0,
            begin: 0,
            begin_cpu: 0,
        }
    }

    /// Adds a CPU, on which the idle task runs.
    pub fn another_cpu(&mut self) -> &mut Self {
        self.cpus.push((0, false));
        self.executed.push(0);
        self.halted.push(false);
        self.halted_ns.push(0);
        self.recording.cpus += 1;
        self
    }

    /// `delta` instructions pass, then `event` happens.
    pub fn at(&mut self, delta: u64, event: Event) -> &mut Self {
        self.pass(delta);
        self.follow(event);
        if !self.open.is_empty() {
            self.write(delta, event);
        }
        self
    }

    pub fn enter(&mut self, delta: u64, function: u32, how: EnterKind) -> &mut Self {
        self.at(delta, Event::Enter { function, how })
    }

    pub fn call(&mut self, delta: u64, function: u32) -> &mut Self {
        self.enter(delta, function, EnterKind::Call)
    }

    pub fn exit(&mut self, delta: u64) -> &mut Self {
        self.at(delta, Event::Exit)
    }

    pub fn begin(&mut self, delta: u64, name: &str) -> &mut Self {
        self.pass(delta);
        let first = self.open.is_empty();
        if first {
            // A mark is user code.
            self.user = true;
            self.executed.fill(0);
            self.halted_ns.fill(0);
            self.begin_chunk();
            self.cpus[self.cpu] = (self.running, true);
            self.steps.push(TraceStep::Start {
                now: self.now,
                cpu: self.cpu,
                cpus: self.cpus.clone(),
                stacks: self.stacks.clone(),
            });
        }
        let region = self.recording.regions.len();
        self.recording.regions.push(RecordedRegion {
            name: name.into(),
            begin_ns: self.now,
            elapsed_ns: 0,
            idle_ns: 0,
            operations: 0,
            depth: self.open.len() as u32,
            closed: false,
            kernel: ModeCounters::default(),
            user: ModeCounters::default(),
            model_events: Vec::new(),
            cpus: Vec::new(),
        });
        self.open.push((region, self.now, self.idle));
        self.write(if first { 0 } else { delta }, Event::RegionBegin { region: region as u32 });
        self
    }

    /// Ends the innermost region.
    pub fn end(&mut self, delta: u64) -> &mut Self {
        self.pass(delta);
        let (region, begin, idle) = self.open.pop().unwrap();
        let row = &mut self.recording.regions[region];
        (row.elapsed_ns, row.idle_ns, row.closed) = (self.now - begin, self.idle - idle, true);
        if self.open.is_empty() && self.cpus.len() > 1 {
            let counters = |(&kernel, &halted_ns): (&u64, &u64)| CpuCounters {
                kernel,
                halted_ns,
                ..CpuCounters::default()
            };
            row.cpus = self.executed.iter().zip(&self.halted_ns).map(counters).collect();
        }
        self.write(delta, Event::RegionEnd { region: region as u32 });
        if self.open.is_empty() {
            self.close_chunk();
        }
        self
    }

    /// Begins a new chunk.
    pub fn cut(&mut self) -> &mut Self {
        if !self.open.is_empty() && self.events > 0 {
            self.close_chunk();
            self.begin_chunk();
        }
        self
    }

    pub fn open_regions(&self) -> usize {
        self.open.len()
    }

    pub fn payload_bytes(&self) -> usize {
        self.raw.len() - self.state
    }

    /// Virtual time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The trace file and its recording. Nothing can be written afterwards.
    pub fn finish(&mut self) -> (W, Recording) {
        if self.events > 0 {
            self.close_chunk();
        }
        let (sink, chunks) = self.file.take().unwrap().finish().unwrap();
        self.recording.chunks = chunks;
        (sink, self.recording.clone())
    }

    fn pass(&mut self, delta: u64) {
        self.now += delta;
        self.executed[self.cpu] += delta;
        for (ns, _) in self.halted_ns.iter_mut().zip(&self.halted).filter(|(_, halted)| **halted) {
            *ns += delta;
        }
    }

    fn follow(&mut self, event: Event) {
        let stack = &mut self.stacks[self.running];
        match event {
            Event::Enter { function, how } => stack.push((function, how)),
            Event::Exit => while matches!(stack.pop(), Some((_, EnterKind::Jump))) {},
            Event::Resume => {
                let entry =
                    |&(_, how): &(u32, EnterKind)| matches!(how, EnterKind::Interrupt | EnterKind::Exception);
                let at = stack.iter().rposition(entry).expect("well-formed");
                stack.truncate(at);
            }
            Event::Leave => {
                let user = stack.iter().rposition(|&(function, _)| function > KERNEL_FUNCTIONS);
                stack.truncate(user.map_or(0, |at| at + 1));
            }
            Event::Unwind { frames } => stack.truncate(stack.len() - frames as usize),
            Event::Switch { thread } => self.running = thread as usize,
            Event::Cpu { cpu, halts } => {
                self.cpus[self.cpu] = (self.running, self.user);
                self.halted[self.cpu] = halts;
                self.cpu = cpu as usize;
                self.halted[self.cpu] = false;
                (self.running, self.user) = self.cpus[self.cpu];
            }
            Event::Idle { ns } => {
                self.now += ns;
                self.idle += ns;
                self.halted_ns.iter_mut().for_each(|halted| *halted += ns);
            }
            _ => {}
        }
    }

    fn write(&mut self, delta: u64, event: Event) {
        let weights = std::mem::replace(&mut self.weights, EventWeights::NONE);
        match self.wide {
            true => encode::wide_event(&mut self.raw, delta, weights, event),
            false => encode::event(&mut self.raw, delta, event),
        }
        match event {
            Event::Enter { function, .. } => self.user = function > KERNEL_FUNCTIONS,
            Event::Switch { .. } => self.user = false,
            Event::Leave => self.user = true,
            _ => {}
        }
        if self.keep {
            self.steps.push(TraceStep::Event(delta, weights, event));
        }
        self.events += 1;
        self.recording.events += 1;
    }

    fn begin_chunk(&mut self) {
        (self.begin, self.begin_cpu) = (self.now, self.cpu as u32);
        let stack = |(i, frames): (usize, &Vec<(u32, EnterKind)>)| OpenStack {
            thread: i as u32,
            running: i == self.running,
            frames: frames.clone(),
        };
        let stacks = self.stacks.iter().enumerate().map(stack);
        let state = ChunkState {
            user: self.user,
            regions: self.open.iter().map(|(region, ..)| *region as u32).collect(),
            stacks: stacks.filter(|stack| stack.running || !stack.frames.is_empty()).collect(),
            waiting: (0..)
                .zip(&self.cpus)
                .filter(|(cpu, _)| *cpu as usize != self.cpu)
                .map(|(cpu, &(thread, user))| {
                    let halted = self.halted[cpu as usize];
                    WaitingCpu { cpu, thread: thread as u32, user, halted }
                })
                .collect(),
        };
        self.raw.clear();
        state.write(&mut self.raw);
        self.state = self.raw.len();
    }

    fn close_chunk(&mut self) {
        let header = ChunkHeader {
            vcpu: self.begin_cpu,
            sequence: self.chunks,
            events: self.events,
            begin: self.begin,
            end: self.now,
            state: self.state as u32,
            payload: self.payload_bytes() as u32,
            compressed: 0,
        };
        self.file.as_mut().unwrap().chunk(header, &self.raw).unwrap();
        self.chunks += 1;
        self.events = 0;
    }
}

/// Symbols `f0`, `f1` …
pub fn symbols(count: u32) -> Vec<Symbol> {
    let symbol = |i| Symbol {
        function: FunctionIndex(i),
        name: format!("f{i}"),
        address: Address(0xffff_ffff_8100_0000 + 16 * u64::from(i)),
        size: 16,
        file: None,
        module: None,
    };
    (0..count).map(symbol).collect()
}
