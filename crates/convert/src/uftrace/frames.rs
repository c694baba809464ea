//! Conversion of events to entries and exits, thread by thread.

use super::{record, DEPTH_LIMIT};
use kerntune_analyze::events::{replay, ChunkOpening, EventVisitor, ReplayState, StackFrame, TraceBounds};
use kerntune_analyze::{Error, TraceFile};
use kerntune_trace::EnterKind;
use std::ops::ControlFlow;

/// Bytes of a thread that are collected before the sink gets them.
const BATCH: usize = 1 << 16;

/// Reason why an export ended early.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum ExportError {
    #[error(transparent)]
    Trace(#[from] Error),
    #[error(transparent)]
    Write(#[from] std::io::Error),
    #[error("the export was stopped")]
    Stopped,
}

struct RecordWriter<'a> {
    sink: &'a mut dyn FnMut(usize, &[u8]) -> std::io::Result<()>,
    /// Buffered bytes of each thread.
    buffers: Vec<Vec<u8>>,
    records: u64,
    /// Result of the sink; after an error it is not called again.
    outcome: std::io::Result<()>,
}

/// Writes the records of every thread. `sink` gets a thread's number and bytes to append to its
/// file; `progress` gets the number of chunks done. Returns the number of records.
///
/// Times are virtual nanoseconds. Frames that are open when recording begins, or begins again after
/// a gap, begin there; frames open at the end have no exit.
pub fn records(
    trace: &TraceFile,
    sink: &mut dyn FnMut(usize, &[u8]) -> std::io::Result<()>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<u64, ExportError> {
    let mut machine = ReplayState::new(TraceBounds::of(trace.recording));
    let buffers = vec![Vec::new(); trace.recording.threads.len()];
    let mut records = RecordWriter { sink, buffers, records: 0, outcome: Ok(()) };
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

impl EventVisitor for RecordWriter<'_> {
    type PerFrame = ();

    fn begin(&mut self, machine: &mut ReplayState<()>, opening: &ChunkOpening<'_>) {
        machine.continue_from(self, opening);
    }

    fn is_done(&self) -> bool {
        self.outcome.is_err()
    }

    #[inline]
    fn enter(&mut self, machine: &mut ReplayState<()>, function: u32, _: EnterKind) {
        self.write(machine, false, function);
    }

    #[inline]
    fn ended(&mut self, machine: &mut ReplayState<()>, frame: StackFrame<()>) {
        self.write(machine, true, frame.function);
    }
}

impl RecordWriter<'_> {
    #[inline]
    fn write(&mut self, machine: &ReplayState<()>, exit: bool, function: u32) {
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
