//! Events → entries and exits, thread by thread.

use super::{record, DEPTH_LIMIT};
use kerntune_analyze::{Error, TraceFile};
use kerntune_trace::{Event, How};
use std::ops::ControlFlow;

/// Bytes of a thread that are collected before they are handed over.
const BATCH: usize = 1 << 16;

/// Why an export ended.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] Error),
    /// What takes the records failed.
    #[error(transparent)]
    Write(#[from] std::io::Error),
    /// The progress callback said so.
    #[error("the export was stopped")]
    Stopped,
}

type Frame = (u32, How);

struct Replay<'a> {
    sink: &'a mut dyn FnMut(usize, &[u8]) -> std::io::Result<()>,
    stacks: Vec<Vec<Frame>>,
    buffers: Vec<Vec<u8>>,
    running: usize,
    /// Functions above are user code's, see [`kerntune_trace::Recording::kernel_functions`].
    kernel: u32,
    now: u64,
    records: u64,
}

/// Writes the records of every thread: `sink` is given a thread's number and bytes to append to
/// its file; `progress` the number of chunks done. Returns the number of records.
///
/// Times are virtual nanoseconds. Frames that are open where recording begins, or begins again
/// after a gap, begin there; those that are open where it ends have no exit.
pub fn records(
    trace: &TraceFile,
    sink: &mut dyn FnMut(usize, &[u8]) -> std::io::Result<()>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<u64, ExportError> {
    let threads = trace.recording.threads.len();
    let mut replay = Replay {
        sink,
        stacks: vec![Vec::new(); threads],
        buffers: vec![Vec::new(); threads],
        running: 0,
        kernel: trace.recording.kernel_functions,
        now: 0,
        records: 0,
    };
    let mut reader = trace.reader()?;
    for number in 0..trace.chunks() {
        let chunk = reader.read(number)?;
        replay.now = chunk.header.begin;
        let mut said: Vec<&[Frame]> = vec![&[]; threads];
        for stack in &chunk.state.stacks {
            let thread = stack.thread as usize;
            let unknown =
                Error::Unknown { chunk: number, what: "thread", number: stack.thread, known: threads };
            *said.get_mut(thread).ok_or(unknown)? = &stack.frames;
            if stack.running {
                replay.running = thread;
            }
        }
        for (thread, frames) in said.into_iter().enumerate() {
            replay.adopt(thread, frames)?;
        }
        let mut decoder = chunk.decoder();
        while let Some((delta, event)) =
            decoder.next().map_err(|source| Error::Format { chunk: number, source })?
        {
            replay.now = replay.now.saturating_add(delta);
            replay.event(number, event)?;
        }
        if progress(number as u64 + 1).is_break() {
            return Err(ExportError::Stopped);
        }
    }
    for thread in 0..threads {
        replay.flush(thread)?;
    }
    Ok(replay.records)
}

impl Replay<'_> {
    /// Makes a thread's stack what a chunk says it is.
    fn adopt(&mut self, thread: usize, said: &[Frame]) -> Result<(), ExportError> {
        let kept = self.stacks[thread].iter().zip(said).take_while(|(a, b)| a == b).count();
        self.end_down_to(thread, kept)?;
        for &frame in &said[kept..] {
            self.enter(thread, frame)?;
        }
        Ok(())
    }

    fn event(&mut self, chunk: usize, event: Event) -> Result<(), ExportError> {
        let thread = self.running;
        let Some(stack) = self.stacks.get(thread) else { return Ok(()) };
        let length = stack.len();
        let after = |at: Option<usize>| at.map_or(0, |at| at + 1);
        match event {
            Event::Enter { function, how } => self.enter(thread, (function, how))?,
            Event::Exit => {
                let base = stack.iter().rposition(|(_, how)| *how != How::Jump).unwrap_or(0);
                self.end_down_to(thread, base)?;
            }
            Event::Resume => {
                let entry = |(_, how): &Frame| matches!(how, How::Interrupt | How::Exception);
                let at = stack.iter().rposition(entry).unwrap_or(length);
                self.end_down_to(thread, at)?;
            }
            Event::Leave => {
                let kernel = self.kernel;
                let user = stack.iter().rposition(|(function, _)| *function > kernel);
                self.end_down_to(thread, after(user))?;
            }
            Event::Unwind { frames } => {
                self.end_down_to(thread, length.saturating_sub(frames as usize))?;
            }
            Event::Switch { thread } => {
                let known = self.stacks.len();
                if thread as usize >= known {
                    return Err(Error::Unknown { chunk, what: "thread", number: thread, known }.into());
                }
                self.running = thread as usize;
            }
            Event::Idle { ns } => self.now = self.now.saturating_add(ns),
            Event::RegionBegin { .. } | Event::RegionEnd { .. } | Event::Operation | Event::Point { .. } => {}
        }
        Ok(())
    }

    #[inline]
    fn enter(&mut self, thread: usize, frame: Frame) -> Result<(), ExportError> {
        let depth = self.stacks[thread].len();
        self.stacks[thread].push(frame);
        self.write(thread, false, depth, frame.0)
    }

    fn end_down_to(&mut self, thread: usize, length: usize) -> Result<(), ExportError> {
        while self.stacks[thread].len() > length {
            let Some((function, _)) = self.stacks[thread].pop() else { break };
            let depth = self.stacks[thread].len();
            self.write(thread, true, depth, function)?;
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, thread: usize, exit: bool, depth: usize, function: u32) -> Result<(), ExportError> {
        if depth >= DEPTH_LIMIT {
            return Ok(()); // deeper than uftrace counts; its exit is not written either
        }
        self.records += 1;
        let buffer = &mut self.buffers[thread];
        buffer.extend_from_slice(&record(self.now, exit, depth, function));
        if buffer.len() >= BATCH {
            self.flush(thread)?;
        }
        Ok(())
    }

    fn flush(&mut self, thread: usize) -> Result<(), ExportError> {
        let buffer = &mut self.buffers[thread];
        if !buffer.is_empty() {
            (self.sink)(thread, buffer)?;
            buffer.clear();
        }
        Ok(())
    }
}
