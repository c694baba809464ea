//! Writer of the trace file; a separate thread compresses and writes.

use crate::threads::ShadowStacks;
use crate::Failure;
use kerntune_trace::{
    encode, files, ChunkHeader, ChunkIndex, ChunkState, Event, EventWeights, OpenStack, TraceFileWriter,
    TraceHeader, WaitingCpu,
};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;

/// Size at which a chunk is closed, in bytes before compression.
const CHUNK_BYTES: usize = 1 << 20;
/// Maximum number of chunks waiting for the disk; beyond it the emulator waits.
const IN_FLIGHT: usize = 8;

struct FinishedChunk {
    header: ChunkHeader,
    raw: Vec<u8>,
}

/// Position of an idle event whose length is not known yet.
#[derive(Debug, Clone, Copy)]
struct OpenIdle {
    sequence: u32,
    at: usize,
}

/// Collects events into chunks and passes full ones to the writing thread.
pub struct TraceWriter {
    buffer: Vec<u8>,
    wide: bool,
    state: usize,
    cpu: u32,
    events: u32,
    sequence: u32,
    begin_ns: u64,
    last_instructions: u64,
    now_ns: u64,
    open_idle: Option<OpenIdle>,
    full: SyncSender<FinishedChunk>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<std::io::Result<Vec<ChunkIndex>>>>,
    /// Number of events written so far.
    pub total_events: u64,
}

impl TraceWriter {
    /// Creates the trace file in `directory`. A wide trace has weights with every event.
    pub fn create(directory: &Path, wide: bool) -> Result<Self, Failure> {
        let path = directory.join(files::TRACE);
        let file =
            File::create(&path).map_err(|e| Failure(format!("cannot create {}: {e}", path.display())))?;
        let (full, full_rx) = sync_channel::<FinishedChunk>(IN_FLIGHT);
        let (empty_tx, empty) = sync_channel::<Vec<u8>>(IN_FLIGHT + 2);
        for _ in 0..IN_FLIGHT + 1 {
            let _ = empty_tx.send(Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4));
        }
        let thread = std::thread::Builder::new()
            .name("kerntune-trace".into())
            .spawn(move || write_chunks(file, wide, &full_rx, &empty_tx))?;
        Ok(Self {
            buffer: Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4),
            wide,
            state: 0,
            cpu: 0,
            events: 0,
            sequence: 0,
            begin_ns: 0,
            last_instructions: 0,
            now_ns: 0,
            open_idle: None,
            full,
            empty,
            thread: Some(thread),
            total_events: 0,
        })
    }

    /// Begins a chunk with the current state: the executing CPU and its mode, the other CPUs, the
    /// open `regions`, and the stacks.
    pub fn begin(
        &mut self,
        instructions: u64,
        now_ns: u64,
        (cpu, user): (u32, bool),
        waiting: impl ExactSizeIterator<Item = WaitingCpu>,
        regions: impl ExactSizeIterator<Item = u32>,
        threads: &ShadowStacks,
    ) {
        self.buffer.clear();
        ChunkState::write_head(user, waiting, regions, &mut self.buffer);
        self.cpu = cpu;
        let running = threads.running_index();
        for (index, stack) in threads.iter().enumerate() {
            if !stack.frames.is_empty() || index as u32 == running {
                let index = index as u32;
                OpenStack::write(index, index == running, &stack.frames, &mut self.buffer);
            }
        }
        self.state = self.buffer.len();
        self.events = 0;
        self.begin_ns = now_ns;
        self.now_ns = now_ns;
        self.last_instructions = instructions;
    }

    /// Appends one event, with weights if the trace is wide. Returns true when the chunk is full
    /// and must be closed.
    #[inline(always)]
    pub fn push(&mut self, instructions: u64, weights: EventWeights, event: Event) -> bool {
        // The count can go back when a waiting CPU turns out to have left its last block early.
        let delta = instructions.saturating_sub(self.last_instructions);
        self.last_instructions += delta;
        self.now_ns += delta;
        if self.wide {
            encode::wide_event(&mut self.buffer, delta, weights, event);
        } else {
            encode::event(&mut self.buffer, delta, event);
        }
        self.events += 1;
        self.buffer.len() - self.state >= CHUNK_BYTES
    }

    /// Appends an idle event, whose length [`Self::idle`] fills in.
    pub fn halt(&mut self, instructions: u64, weights: EventWeights) {
        self.push(instructions, weights, Event::Idle { ns: 0 });
        self.open_idle = Some(OpenIdle { sequence: self.sequence, at: self.buffer.len() - 8 });
    }

    /// Sets the length of the last halt. If its chunk is already closed, appends a new idle event
    /// without weights; the next event receives them.
    pub fn idle(&mut self, instructions: u64, ns: u64) {
        match self.open_idle.take() {
            Some(open) if open.sequence == self.sequence => {
                if let Some(place) = self.buffer.get_mut(open.at..open.at + 8) {
                    place.copy_from_slice(&ns.to_le_bytes());
                }
                self.now_ns += ns;
            }
            _ => {
                self.push(instructions, EventWeights::NONE, Event::Idle { ns });
                self.now_ns += ns;
            }
        }
    }

    /// Closes the chunk and passes it on. Waits if the disk is far behind.
    pub fn close(&mut self) -> Result<(), Failure> {
        if self.events == 0 {
            return Ok(());
        }
        let header = ChunkHeader {
            vcpu: self.cpu,
            sequence: self.sequence,
            events: self.events,
            begin: self.begin_ns,
            end: self.now_ns,
            state: self.state as u32,
            payload: (self.buffer.len() - self.state) as u32,
            compressed: 0,
        };
        self.total_events += u64::from(self.events);
        self.sequence += 1;
        self.events = 0;
        let fresh = self.empty.recv().ok();
        let raw = std::mem::replace(&mut self.buffer, fresh.unwrap_or_default());
        if self.full.send(FinishedChunk { header, raw }).is_err() {
            return Err(self.reason());
        }
        Ok(())
    }

    /// Waits until everything is on disk. Returns the index and the number of events.
    pub fn finish(mut self) -> Result<(Vec<ChunkIndex>, u64), Failure> {
        self.close()?;
        let thread = self.thread.take();
        let events = self.total_events;
        drop(self);
        match thread.map(JoinHandle::join) {
            Some(Ok(Ok(index))) => Ok((index, events)),
            Some(Ok(Err(error))) => Err(Failure(format!("cannot write the trace: {error}"))),
            _ => Err(Failure("the trace writer ended unexpectedly".into())),
        }
    }

    fn reason(&mut self) -> Failure {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Failure(format!("cannot write the trace: {error}")),
            _ => Failure("the trace writer ended unexpectedly".into()),
        }
    }
}

fn write_chunks(
    file: File,
    wide: bool,
    full: &Receiver<FinishedChunk>,
    empty: &SyncSender<Vec<u8>>,
) -> std::io::Result<Vec<ChunkIndex>> {
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut trace = TraceFileWriter::new(out, TraceHeader { wide })?;
    while let Ok(FinishedChunk { header, raw }) = full.recv() {
        trace.chunk(header, &raw)?;
        let _ = empty.try_send(raw);
    }
    let (out, index) = trace.finish()?;
    out.get_ref().sync_data()?;
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_and_not_a_short_trace() {
        let dir = std::env::temp_dir().join(format!("kerntune-writer-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink("/dev/full", dir.join(files::TRACE)).unwrap();
        let mut writer = TraceWriter::create(&dir, false).unwrap();
        writer.begin(0, 0, (0, true), [].into_iter(), [].into_iter(), &ShadowStacks::new());
        writer.push(1, EventWeights::NONE, Event::Operation);
        let message = writer.finish().unwrap_err().0;
        std::fs::remove_dir_all(dir).unwrap();
        assert!(message.contains("No space left on device"), "{message}");
    }
}
