//! Writes a trace event by event, and keeps the expected results: the running thread and the open
//! frames in every interval of time.

use kerntune_analyze::path::{collect, CodePath, PathError, PathSelection};
use kerntune_analyze::TraceFile;
use kerntune_trace::{
    encode, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, ModeCounters, OpenStack, RecordedRegion,
    RecordedThread, Recording, RecordingHealth, TraceFileWriter, TraceHeader, VERSION,
};

/// Functions below this number are the kernel's.
pub const KERNEL: u32 = 100;
/// Rows of the table of symbols.
pub const FUNCTIONS: usize = 120;

/// Entry and exit of a frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameLife {
    pub thread: usize,
    pub function: u32,
    pub how: EnterKind,
    pub begin: u64,
    pub end: Option<u64>,
}

/// Open frames of the running thread during an interval.
#[derive(Debug, Clone)]
pub struct RunInterval {
    pub from: u64,
    pub to: u64,
    pub idle: bool,
    /// Indices into the simulation's list of frames.
    pub stack: Vec<usize>,
}

pub struct TraceSim {
    pub now: u64,
    pub running: usize,
    pub user: bool,
    pub stacks: Vec<Vec<usize>>,
    pub lives: Vec<FrameLife>,
    pub intervals: Vec<RunInterval>,
    /// Times at which each thread got the CPU.
    pub runs: Vec<(u64, usize)>,
    pub regions: Vec<RecordedRegion>,
    open: Vec<u32>,
    chunks: Vec<(ChunkState, u64, u64, u32, Vec<u8>)>,
}

impl TraceSim {
    /// Thread 0 is the idle task; thread 1 runs, in user mode, in region `r`, from 1,000 ns on.
    pub fn new(threads: usize) -> Self {
        let mut sim = Self::silent(threads);
        sim.begin("r");
        sim
    }

    pub fn silent(threads: usize) -> Self {
        Self {
            now: 1_000,
            running: 1,
            user: true,
            stacks: vec![Vec::new(); threads],
            lives: Vec::new(),
            intervals: Vec::new(),
            runs: vec![(1_000, 1)],
            regions: Vec::new(),
            open: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// Begins a new chunk; without an open region, after a gap.
    pub fn cut(&mut self) -> &mut Self {
        let frames = |stack: &Vec<usize>| {
            stack.iter().map(|&life| (self.lives[life].function, self.lives[life].how)).collect::<Vec<_>>()
        };
        let stacks = (self.stacks.iter().enumerate())
            .filter(|(thread, stack)| !stack.is_empty() || *thread == self.running)
            .map(|(thread, stack)| OpenStack {
                thread: thread as u32,
                running: thread == self.running,
                frames: frames(stack),
            })
            .collect();
        let state =
            ChunkState { user: self.user, regions: self.open.clone(), stacks, ..ChunkState::default() };
        self.chunks.push((state, self.now, self.now, 0, Vec::new()));
        self
    }

    pub fn begin(&mut self, name: &str) -> &mut Self {
        if self.open.is_empty() {
            self.cut();
        }
        let region = self.regions.len() as u32;
        self.regions.push(RecordedRegion {
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
        self.open.push(region);
        self.at(0, Event::RegionBegin { region })
    }

    pub fn end(&mut self, delta: u64) -> &mut Self {
        let region = *self.open.last().unwrap();
        self.at(delta, Event::RegionEnd { region });
        self.open.pop();
        let row = &mut self.regions[region as usize];
        (row.elapsed_ns, row.closed) = (self.now - row.begin_ns, true);
        self
    }

    /// `delta` ns pass outside of every region.
    pub fn unseen(&mut self, delta: u64) -> &mut Self {
        self.now += delta;
        self
    }

    fn pass(&mut self, delta: u64, idle: bool) {
        let (from, to) = (self.now, self.now + delta);
        let stack = self.stacks[self.running].clone();
        self.intervals.push(RunInterval { from, to, idle, stack });
        self.now = to;
    }

    fn pop(&mut self) -> Option<EnterKind> {
        let life = self.stacks[self.running].pop()?;
        self.lives[life].end = Some(self.now);
        Some(self.lives[life].how)
    }

    pub fn how(&self, at: usize) -> EnterKind {
        self.lives[self.stacks[self.running][at]].how
    }

    pub fn at(&mut self, delta: u64, event: Event) -> &mut Self {
        self.pass(delta, false);
        let chunk = self.chunks.last_mut().unwrap();
        encode::event(&mut chunk.4, delta, event);
        chunk.3 += 1;
        match event {
            Event::Enter { function, how } => {
                self.user = function > KERNEL;
                self.stacks[self.running].push(self.lives.len());
                let life = FrameLife { thread: self.running, function, how, begin: self.now, end: None };
                self.lives.push(life);
            }
            Event::Exit => while self.pop() == Some(EnterKind::Jump) {},
            Event::Resume => {
                while !matches!(self.pop(), Some(EnterKind::Interrupt | EnterKind::Exception)) {}
            }
            Event::Leave => {
                while self.stacks[self.running].last().is_some_and(|&l| self.lives[l].function <= KERNEL) {
                    self.pop();
                }
                self.user = true;
            }
            Event::Unwind { frames } => {
                for _ in 0..frames {
                    self.pop();
                }
            }
            Event::Switch { thread } => {
                (self.running, self.user) = (thread as usize, false);
                self.runs.push((self.now, self.running));
            }
            Event::Idle { ns } => self.pass(ns, true),
            Event::Operation => self.regions[*self.open.last().unwrap() as usize].operations += 1,
            _ => {}
        }
        let now = self.now;
        self.chunks.last_mut().unwrap().2 = now;
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

    pub fn switch(&mut self, delta: u64, thread: u32) -> &mut Self {
        self.at(delta, Event::Switch { thread })
    }

    /// The trace file and its recording.
    pub fn trace(&self) -> (Vec<u8>, Recording) {
        let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide: false }).unwrap();
        for (sequence, (state, begin, end, events, payload)) in self.chunks.iter().enumerate() {
            let mut raw = Vec::new();
            state.write(&mut raw);
            let header = ChunkHeader {
                vcpu: 0,
                sequence: sequence as u32,
                events: *events,
                begin: *begin,
                end: *end,
                state: raw.len() as u32,
                payload: payload.len() as u32,
                compressed: 0,
            };
            raw.extend_from_slice(payload);
            writer.chunk(header, &raw).unwrap();
        }
        let (bytes, chunks) = writer.finish().unwrap();
        let thread =
            |i| RecordedThread { task: 0x1000 + i, pid: i as u32, tgid: i as u32, comm: format!("t{i}") };
        let recording = Recording {
            ran: Vec::new(),
            ran_since_boot: Vec::new(),
            version: VERSION,
            capture: CaptureSpec { functions: true, edges: false, weights: false },
            kernel_functions: KERNEL,
            first_loaded: None,
            cpus: 1,
            per_cpu: Vec::new(),
            regions: self.regions.clone(),
            threads: (0..self.stacks.len() as u64).map(thread).collect(),
            events: chunks.iter().map(|chunk| u64::from(chunk.events)).sum(),
            chunks,
            health: RecordingHealth::default(),
            notes: Vec::new(),
        };
        (bytes, recording)
    }

    pub fn path(&self, selection: &PathSelection) -> Result<CodePath, PathError> {
        let (bytes, recording) = self.trace();
        read(&bytes, &recording, selection)
    }
}

pub fn read(bytes: &[u8], recording: &Recording, selection: &PathSelection) -> Result<CodePath, PathError> {
    let trace = TraceFile::open(&bytes, recording).unwrap();
    collect(&trace, FUNCTIONS, selection)
}
