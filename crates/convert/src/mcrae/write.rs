//! Events to a trace file.

use super::processes::{Process, IDLE};
use kerntune_trace::{
    encode, ChunkHeader, ChunkIndex, ChunkState, Event, How, OpenStack, TraceFileWriter, TraceHeader,
};
use std::io::{self, Write};

/// Events in a chunk.
const CHUNK: usize = 1 << 16;

/// Something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// µs since the step before.
    pub gap: u64,
    /// The processor was idle meanwhile.
    pub idle: bool,
    /// What happens.
    pub event: Event,
}

/// What takes the steps of a replay, in order.
pub(super) trait Sink {
    /// The next step.
    fn take(&mut self, step: Step) -> io::Result<()>;
}

/// For who only asks what a dump comes to.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: Step) -> io::Result<()> {
        Ok(())
    }
}

/// What is open, as a reader of the trace sees it.
struct State {
    stacks: Vec<Vec<(u32, How)>>,
    running: usize,
    open: bool,
}

impl State {
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

/// Writes a trace, a chunk at a time.
pub(super) struct TraceOut<W: Write> {
    writer: TraceFileWriter<W>,
    state: State,
    /// The first step says who runs; it is not an event but part of the first chunk's state.
    first: bool,
    /// Of the chunk: its state and events so far.
    raw: Vec<u8>,
    state_bytes: usize,
    /// Steps in the chunk.
    steps: usize,
    /// Events in it, idle time included.
    events: u32,
    began: u64,
    sequence: u32,
    /// ns.
    now: u64,
    total: u64,
}

impl<W: Write> TraceOut<W> {
    /// A trace that begins at `begin` µs, with what was open then.
    pub fn new(out: W, begin: u64, processes: &[Process]) -> io::Result<Self> {
        let frames = |(number, process): (usize, &Process)| {
            let open = process.bottom.iter().rev().enumerate();
            let how = |depth| if number == IDLE && depth == 0 { How::Interrupt } else { How::Call };
            open.map(|(depth, &function)| (function, how(depth))).collect()
        };
        let stacks = processes.iter().enumerate().map(frames).collect();
        let writer = TraceFileWriter::new(out, TraceHeader { wide: false })?;
        let state = State { stacks, running: IDLE, open: false };
        let now = begin * 1000;
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

    /// The sink, the chunks and the number of events.
    pub fn finish(mut self) -> io::Result<(W, Vec<ChunkIndex>, u64)> {
        if self.steps > 0 {
            self.end_chunk()?;
        }
        let (out, chunks) = self.writer.finish()?;
        Ok((out, chunks, self.total))
    }
}

impl<W: Write> Sink for TraceOut<W> {
    fn take(&mut self, step: Step) -> io::Result<()> {
        if std::mem::take(&mut self.first) {
            self.state.follow(step.event);
            return Ok(());
        }
        if self.steps == 0 {
            self.raw = self.state.bytes();
            self.state_bytes = self.raw.len();
            self.began = self.now;
        }
        let mut gap = step.gap * 1000;
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
