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
        ChunkState { user: false, regions, stacks: stacks.collect() }.write(&mut out);
        out
    }
}

/// Writes the trace that begins at `begin` µs; its sink, its chunks and the number of events.
///
/// The first step says who runs; it is not an event but part of the first chunk's state.
pub(super) fn write<W: Write>(
    out: W,
    begin: u64,
    processes: &[Process],
    steps: &[Step],
) -> io::Result<(W, Vec<ChunkIndex>, u64)> {
    let frames = |(number, process): (usize, &Process)| {
        let open = process.bottom.iter().rev().enumerate();
        let how = |depth| if number == IDLE && depth == 0 { How::Interrupt } else { How::Call };
        open.map(|(depth, &function)| (function, how(depth))).collect()
    };
    let stacks = processes.iter().enumerate().map(frames).collect();
    let mut state = State { stacks, running: IDLE, open: false };
    let (first, steps) = steps.split_first().map_or((None, steps), |(first, rest)| (Some(first), rest));
    if let Some(first) = first {
        state.follow(first.event);
    }
    let mut writer = TraceFileWriter::new(out, TraceHeader { wide: false })?;
    let mut now = begin * 1000;
    let mut total = 0;
    for (sequence, steps) in (0u32..).zip(steps.chunks(CHUNK)) {
        let mut raw = state.bytes();
        let size = raw.len();
        let (began, mut events) = (now, 0);
        for step in steps {
            let mut gap = step.gap * 1000;
            now += gap;
            if step.idle && gap > 0 {
                encode::event(&mut raw, 0, Event::Idle { ns: gap });
                events += 1;
                gap = 0;
            }
            encode::event(&mut raw, gap, step.event);
            events += 1;
            state.follow(step.event);
        }
        let header = ChunkHeader {
            vcpu: 0,
            sequence,
            events,
            begin: began,
            end: now,
            state: size as u32,
            payload: (raw.len() - size) as u32,
            compressed: 0,
        };
        writer.chunk(header, &raw)?;
        total += u64::from(events);
    }
    let (out, chunks) = writer.finish()?;
    Ok((out, chunks, total))
}
