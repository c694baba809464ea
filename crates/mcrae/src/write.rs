//! Sinks for the events of a conversion, one of which writes a trace file.

use super::processes::{ReplayedProcess, IDLE};
use kerntune_trace::{
    encode, ChunkHeader, ChunkIndex, ChunkState, EnterKind, Event, OpenStack, TraceFileWriter, TraceHeader,
};
use std::io::{self, Write};

/// Steps in a chunk.
const CHUNK: usize = 1 << 16;

/// Event of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayStep {
    /// Time in ns since the step before.
    pub gap: u64,
    /// The processor was idle in this time.
    pub idle: bool,
    /// Event at the end of this time.
    pub event: Event,
}

/// Receiver of a conversion's steps, in order.
pub(super) trait StepSink {
    /// Takes the next step.
    fn take(&mut self, step: ReplayStep) -> io::Result<()>;
}

/// Sink for a first pass, which only counts.
pub(super) struct DiscardSink;

impl StepSink for DiscardSink {
    fn take(&mut self, _: ReplayStep) -> io::Result<()> {
        Ok(())
    }
}

/// Open functions and regions, as a reader of the trace sees them.
struct OpenState {
    stacks: Vec<Vec<(u32, EnterKind)>>,
    running: usize,
    open: bool,
}

impl OpenState {
    fn follow(&mut self, event: Event) {
        let stack = &mut self.stacks[self.running];
        match event {
            Event::Enter { function, how } => stack.push((function, how)),
            Event::Exit => drop(stack.pop()),
            Event::Unwind { frames } => stack.truncate(stack.len().saturating_sub(frames as usize)),
            Event::Switch { thread } => self.running = thread as usize,
            Event::RegionBegin { .. } => self.open = true,
            Event::RegionEnd { .. } => self.open = false,
            _ => {}
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let stacks = self.stacks.iter().enumerate();
        let told = stacks.filter(|(number, frames)| *number == self.running || !frames.is_empty());
        let stacks = told.map(|(number, frames)| OpenStack {
            thread: number as u32,
            running: number == self.running,
            frames: frames.clone(),
        });
        let regions = if self.open { vec![0] } else { Vec::new() };
        let mut out = Vec::new();
        ChunkState { user: false, regions, stacks: stacks.collect(), ..ChunkState::default() }
            .write(&mut out);
        out
    }
}

/// Writer of a trace, one chunk at a time.
pub(super) struct TraceSink<W: Write> {
    writer: TraceFileWriter<W>,
    state: OpenState,
    /// The first step selects the process. It is no event, but part of the first chunk's state.
    first: bool,
    /// State and events of the current chunk.
    raw: Vec<u8>,
    state_bytes: usize,
    /// Steps in the chunk.
    steps: usize,
    /// Events in the chunk, idle time included.
    events: u32,
    began: u64,
    sequence: u32,
    /// Time in ns.
    now: u64,
    total: u64,
}

impl<W: Write> TraceSink<W> {
    /// Creates a trace that begins at `begin` ns, with the functions that were open then.
    pub fn new(out: W, begin: u64, processes: &[ReplayedProcess]) -> io::Result<Self> {
        let frames = |(number, process): (usize, &ReplayedProcess)| {
            let open = process.bottom.iter().rev().enumerate();
            let how =
                |depth| if number == IDLE && depth == 0 { EnterKind::Interrupt } else { EnterKind::Call };
            open.map(|(depth, &function)| (function, how(depth))).collect()
        };
        let stacks = processes.iter().enumerate().map(frames).collect();
        let writer = TraceFileWriter::new(out, TraceHeader { wide: false })?;
        let state = OpenState { stacks, running: IDLE, open: false };
        let now = begin;
        Ok(Self {
            writer,
            state,
            first: true,
            raw: Vec::new(),
            state_bytes: 0,
            steps: 0,
            events: 0,
            began: now,
            sequence: 0,
            now,
            total: 0,
        })
    }

    fn end_chunk(&mut self) -> io::Result<()> {
        let header = ChunkHeader {
            vcpu: 0,
            sequence: self.sequence,
            events: self.events,
            begin: self.began,
            end: self.now,
            state: self.state_bytes as u32,
            payload: (self.raw.len() - self.state_bytes) as u32,
            compressed: 0,
        };
        self.writer.chunk(header, &self.raw)?;
        self.total += u64::from(self.events);
        self.sequence += 1;
        (self.steps, self.events) = (0, 0);
        Ok(())
    }

    /// Ends the trace. Returns the sink, the chunks and the number of events.
    pub fn finish(mut self) -> io::Result<(W, Vec<ChunkIndex>, u64)> {
        if self.steps > 0 {
            self.end_chunk()?;
        }
        let (out, chunks) = self.writer.finish()?;
        Ok((out, chunks, self.total))
    }
}

impl<W: Write> StepSink for TraceSink<W> {
    fn take(&mut self, step: ReplayStep) -> io::Result<()> {
        if std::mem::take(&mut self.first) {
            self.state.follow(step.event);
            return Ok(());
        }
        if self.steps == 0 {
            self.raw = self.state.bytes();
            self.state_bytes = self.raw.len();
            self.began = self.now;
        }
        let mut gap = step.gap;
        self.now += gap;
        if step.idle && gap > 0 {
            encode::event(&mut self.raw, 0, Event::Idle { ns: gap });
            self.events += 1;
            gap = 0;
        }
        encode::event(&mut self.raw, gap, step.event);
        self.events += 1;
        self.state.follow(step.event);
        self.steps += 1;
        if self.steps == CHUNK {
            self.end_chunk()?;
        }
        Ok(())
    }
}
