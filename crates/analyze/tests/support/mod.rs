//! Writes traces as the recorder does: stacks are followed always, events are written while a
//! region is open, each chunk begins with the stacks that are open.
#![allow(dead_code)]

use kerntune_profile::{Address, FunctionIndex, Symbol};
use kerntune_trace::{
    encode, Capture, ChunkHeader, ChunkIndex, Event, Health, How, ModeCounters, OpenStack, Recording, Region,
    Thread, TraceHeader, VERSION,
};

/// What happened, for those who replay it in another way.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A chunk begins after a gap, or the first: the running thread and everyone's frames.
    Start {
        running: usize,
        stacks: Vec<Vec<(u32, How)>>,
    },
    Event(u64, Event),
}

pub struct Writer {
    pub stacks: Vec<Vec<(u32, How)>>,
    pub running: usize,
    pub steps: Vec<Step>,
    pub recording: Recording,
    open: Vec<(usize, u64, u64)>,
    now: u64,
    idle: u64,
    bytes: Vec<u8>,
    payload: Vec<u8>,
    header_stacks: Vec<u8>,
    events: u32,
    begin: u64,
}

impl Writer {
    /// Thread 0 is the idle task; thread 1 runs, in user mode.
    pub fn new(threads: usize) -> Self {
        let thread = |i| Thread { task: 0x1000 + i, pid: i as u32, tgid: i as u32, comm: format!("t{i}") };
        Self {
            stacks: vec![Vec::new(); threads],
            running: 1,
            steps: Vec::new(),
            recording: Recording {
                version: VERSION,
                capture: Capture { functions: true, edges: false },
                regions: Vec::new(),
                threads: (0..threads as u64).map(thread).collect(),
                chunks: Vec::new(),
                events: 0,
                health: Health::default(),
                notes: Vec::new(),
            },
            open: Vec::new(),
            now: 1_000_000,
            idle: 0,
            bytes: TraceHeader.to_bytes().to_vec(),
            payload: Vec::new(),
            header_stacks: Vec::new(),
            events: 0,
            begin: 0,
        }
    }

    /// `delta` instructions pass, then something happens.
    pub fn at(&mut self, delta: u64, event: Event) -> &mut Self {
        self.now += delta;
        self.follow(event);
        if !self.open.is_empty() {
            self.write(delta, event);
        }
        self
    }

    pub fn enter(&mut self, delta: u64, function: u32, how: How) -> &mut Self {
        self.at(delta, Event::Enter { function, how })
    }

    pub fn call(&mut self, delta: u64, function: u32) -> &mut Self {
        self.enter(delta, function, How::Call)
    }

    pub fn exit(&mut self, delta: u64) -> &mut Self {
        self.at(delta, Event::Exit)
    }

    pub fn begin(&mut self, delta: u64, name: &str) -> &mut Self {
        self.now += delta;
        let first = self.open.is_empty();
        if first {
            self.begin_chunk();
            self.steps.push(Step::Start { running: self.running, stacks: self.stacks.clone() });
        }
        let region = self.recording.regions.len();
        self.recording.regions.push(Region {
            name: name.into(),
            begin_ns: self.now,
            elapsed_ns: 0,
            idle_ns: 0,
            operations: 0,
            depth: self.open.len() as u32,
            closed: false,
            kernel: ModeCounters::default(),
            user: ModeCounters::default(),
        });
        self.open.push((region, self.now, self.idle));
        self.write(if first { 0 } else { delta }, Event::RegionBegin { region: region as u32 });
        self
    }

    /// Ends the innermost region.
    pub fn end(&mut self, delta: u64) -> &mut Self {
        self.now += delta;
        let (region, begin, idle) = self.open.pop().unwrap();
        let row = &mut self.recording.regions[region];
        (row.elapsed_ns, row.idle_ns, row.closed) = (self.now - begin, self.idle - idle, true);
        self.write(delta, Event::RegionEnd { region: region as u32 });
        if self.open.is_empty() {
            self.close_chunk();
        }
        self
    }

    /// Goes on in a new chunk.
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
        self.payload.len()
    }

    /// The trace file and what the recorder says of it.
    pub fn finish(&mut self) -> (Vec<u8>, Recording) {
        if self.events > 0 {
            self.close_chunk();
        }
        (self.bytes.clone(), self.recording.clone())
    }

    fn follow(&mut self, event: Event) {
        let stack = &mut self.stacks[self.running];
        match event {
            Event::Enter { function, how } => stack.push((function, how)),
            Event::Exit => while matches!(stack.pop(), Some((_, How::Jump))) {},
            Event::Resume => {
                let entry = |&(_, how): &(u32, How)| matches!(how, How::Interrupt | How::Exception);
                let at = stack.iter().rposition(entry).expect("well-formed");
                stack.truncate(at);
            }
            Event::Leave => stack.clear(),
            Event::Unwind { frames } => stack.truncate(stack.len() - frames as usize),
            Event::Switch { thread } => self.running = thread as usize,
            Event::Idle { ns } => {
                self.now += ns;
                self.idle += ns;
            }
            _ => {}
        }
    }

    fn write(&mut self, delta: u64, event: Event) {
        encode::event(&mut self.payload, delta, event);
        self.steps.push(Step::Event(delta, event));
        self.events += 1;
        self.recording.events += 1;
    }

    fn begin_chunk(&mut self) {
        self.begin = self.now;
        self.header_stacks.clear();
        for (i, frames) in self.stacks.iter().enumerate() {
            if !frames.is_empty() || i == self.running {
                OpenStack::write(i as u32, i == self.running, frames, &mut self.header_stacks);
            }
        }
    }

    fn close_chunk(&mut self) {
        let mut raw = self.header_stacks.clone();
        raw.extend_from_slice(&self.payload);
        let body = zstd::bulk::compress(&raw, 1).unwrap();
        let header = ChunkHeader {
            vcpu: 0,
            sequence: self.recording.chunks.len() as u32,
            events: self.events,
            begin: self.begin,
            end: self.now,
            stacks: self.header_stacks.len() as u32,
            payload: self.payload.len() as u32,
            compressed: body.len() as u32,
        };
        self.recording.chunks.push(ChunkIndex {
            offset: self.bytes.len() as u64,
            begin_ns: self.begin,
            end_ns: self.now,
            events: self.events,
        });
        self.bytes.extend_from_slice(&header.to_bytes());
        self.bytes.extend_from_slice(&body);
        self.payload.clear();
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
    };
    (0..count).map(symbol).collect()
}
