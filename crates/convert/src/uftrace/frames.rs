//! Events → entries and exits, thread by thread.

use super::{record, DEPTH_LIMIT};
use kerntune_analyze::events::{replay, Bounds, Frame, Machine, Opening, Visitor};
use kerntune_analyze::{Error, TraceFile};
use kerntune_trace::How;
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

struct Records<'a> {
    sink: &'a mut dyn FnMut(usize, &[u8]) -> std::io::Result<()>,
    /// By thread.
    buffers: Vec<Vec<u8>>,
    records: u64,
    /// What the sink said; nothing is handed over afterwards.
    outcome: std::io::Result<()>,
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
    let mut machine = Machine::new(Bounds::of(trace.recording));
    let buffers = vec![Vec::new(); trace.recording.threads.len()];
    let mut records = Records { sink, buffers, records: 0, outcome: Ok(()) };
    let mut reader = trace.reader()?;
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut records, &reader.read(number)?)?;
        std::mem::replace(&mut records.outcome, Ok(()))?;
        if progress(number as u64 + 1).is_break() {
            return Err(ExportError::Stopped);
        }
    }
    for thread in 0..records.buffers.len() {
        records.flush(thread);
    }
    records.outcome?;
    Ok(records.records)
}

impl Visitor for Records<'_> {
    type Frame = ();

    fn begin(&mut self, machine: &mut Machine<()>, opening: &Opening<'_>) {
        machine.go_on(self, opening);
    }

    fn is_done(&self) -> bool {
        self.outcome.is_err()
    }

    #[inline]
    fn enter(&mut self, machine: &mut Machine<()>, function: u32, _: How) {
        self.write(machine, false, function);
    }

    #[inline]
    fn ended(&mut self, machine: &mut Machine<()>, frame: Frame<()>) {
        self.write(machine, true, frame.function);
    }
}

impl Records<'_> {
    #[inline]
    fn write(&mut self, machine: &Machine<()>, exit: bool, function: u32) {
        let (thread, depth) = (machine.running(), machine.frames().len());
        let Some(buffer) = self.buffers.get_mut(thread) else { return };
        if depth >= DEPTH_LIMIT {
            return; // deeper than uftrace counts; its exit is not written either
        }
        self.records += 1;
        buffer.extend_from_slice(&record(machine.now(), exit, depth, function));
        if buffer.len() >= BATCH {
            self.flush(thread);
        }
    }

    fn flush(&mut self, thread: usize) {
        let buffer = &mut self.buffers[thread];
        if self.outcome.is_ok() && !buffer.is_empty() {
            self.outcome = (self.sink)(thread, buffer);
            buffer.clear();
        }
    }
}
