//! Cuts a time window out of a trace, as a trace of its own that can be analyzed like any other.

use crate::events::{ReplayState, TraceBounds};
use crate::trace_file::TraceChunk;
use crate::{Error, TraceFile};
use kerntune_trace::{
    encode, ChunkHeader, ChunkIndex, ChunkState, Event, EventWeights, OpenStack, Recording, RecordingHealth,
    TraceFileWriter, TraceHeader, WaitingCpu, CHUNK_HEADER_BYTES,
};

/// A time window of a trace, in memory.
#[derive(Debug)]
pub struct TraceExcerpt {
    /// Contents of the trace file.
    pub bytes: Vec<u8>,
    /// The whole trace's description, but with the chunks of the window. Regions have no end, so
    /// that their times are measured within the window.
    pub recording: Recording,
}

/// Returns the events from virtual time `from` (included) to `to` (excluded), in ticks. An interval
/// that contains `from` counts from there on, with all of its weights; an interval that contains
/// `to` counts up to there, without weights. Calls that are open at either end are cut.
///
/// # Errors
/// Damage in a chunk that overlaps the window.
pub fn cut(trace: &TraceFile<'_>, from: u64, to: u64) -> Result<TraceExcerpt, Error> {
    let mut out = ExcerptWriter::new(trace)?;
    let mut reader = trace.reader()?;
    for number in trace.covering(from, to) {
        let Some(index) = trace.recording.chunks.get(number).copied() else { continue };
        if index.begin_ns >= to || index.end_ns < from {
            continue;
        }
        if index.begin_ns >= from && index.end_ns < to {
            out.copy(index, trace.chunk_bytes(number)?);
        } else {
            out.part(&reader.read(number)?, from, to)?;
        }
    }
    Ok(out.finish())
}

struct ExcerptWriter {
    bytes: Vec<u8>,
    recording: Recording,
    wide: bool,
}

impl ExcerptWriter {
    fn new(trace: &TraceFile<'_>) -> Result<Self, Error> {
        let mut recording = trace.recording.clone();
        (recording.chunks, recording.events, recording.health) = (Vec::new(), 0, RecordingHealth::default());
        recording.per_cpu = Vec::new();
        for region in &mut recording.regions {
            region.closed = false;
            region.cpus = Vec::new();
        }
        let header = TraceHeader { wide: trace.wide };
        Ok(Self { bytes: header.to_bytes().to_vec(), recording, wide: trace.wide })
    }

    /// Copies a whole chunk under a new number.
    fn copy(&mut self, index: ChunkIndex, mut chunk: Vec<u8>) {
        if let (Ok(header), Some(head)) = (ChunkHeader::parse(&chunk), chunk.get_mut(..CHUNK_HEADER_BYTES)) {
            let sequence = self.recording.chunks.len() as u32;
            head.copy_from_slice(&ChunkHeader { sequence, ..header }.to_bytes());
        }
        self.index(index.begin_ns, index.end_ns, index.events);
        self.bytes.append(&mut chunk);
    }

    fn index(&mut self, begin_ns: u64, end_ns: u64, events: u32) {
        let offset = self.bytes.len() as u64;
        self.recording.chunks.push(ChunkIndex { offset, begin_ns, end_ns, events });
        self.recording.events += u64::from(events);
    }

    fn part(&mut self, chunk: &TraceChunk<'_>, from: u64, to: u64) -> Result<(), Error> {
        let mut part = ExcerptChunk { from, to, wide: self.wide, ..ExcerptChunk::default() };
        let mut machine: ReplayState<()> = ReplayState::new(TraceBounds::of(&self.recording));
        machine.begin(&mut (), chunk)?;
        let mut decoder = chunk.decoder();
        while let Some((ns, event)) = machine.read(&mut decoder)? {
            let at = machine.now().saturating_add(ns);
            if at >= to {
                part.open(&mut machine);
                break;
            }
            if at >= from {
                part.open(&mut machine);
                part.write_event(at, decoder.weights(), event);
            }
            let slept = matches!(event, Event::Idle { ns } if at < from && at.saturating_add(ns) > from);
            machine.step(&mut (), ns, EventWeights::NONE, event)?;
            if slept {
                // The CPU wakes up within the window: the rest of its idle period belongs to the
                // window.
                part.begun_asleep(&mut machine);
            }
            if machine.now() >= to {
                break;
            }
        }
        let end = chunk.header.end.min(to);
        if part.state.is_none() {
            return Ok(());
        }
        part.until(end);
        self.write(part, end)
    }

    fn write(&mut self, part: ExcerptChunk, end: u64) -> Result<(), Error> {
        let ExcerptChunk { raw, state, begin, events, .. } = part;
        let header = ChunkHeader {
            vcpu: part.cpu,
            sequence: self.recording.chunks.len() as u32,
            events,
            begin,
            end,
            state: state.unwrap_or_default() as u32,
            payload: (raw.len() - state.unwrap_or_default()) as u32,
            compressed: 0,
        };
        // `TraceFileWriter` compresses and sets the length; its file header is left out.
        let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide: self.wide })?;
        writer.chunk(header, &raw)?;
        let (bytes, _) = writer.finish()?;
        self.index(begin, end, events);
        self.bytes.extend_from_slice(bytes.get(kerntune_trace::TRACE_HEADER_BYTES..).unwrap_or_default());
        Ok(())
    }

    fn finish(self) -> TraceExcerpt {
        TraceExcerpt { bytes: self.bytes, recording: self.recording }
    }
}

/// A chunk of the window under construction.
#[derive(Default)]
struct ExcerptChunk {
    from: u64,
    to: u64,
    wide: bool,
    raw: Vec<u8>,
    /// Size of the encoded initial state, in bytes; `None` before the chunk has begun.
    state: Option<usize>,
    begin: u64,
    cpu: u32,
    /// Virtual time of the last event.
    last: u64,
    events: u32,
}

impl ExcerptChunk {
    /// Begins the chunk with the state before the next event.
    fn open(&mut self, machine: &mut ReplayState<()>) {
        if self.state.is_some() {
            return;
        }
        self.begin = machine.now().max(self.from).min(self.to);
        self.last = self.begin;
        self.cpu = machine.cpu() as u32;
        let (running, nobody) = (machine.running(), machine.unknown_thread());
        let mut stacks = Vec::new();
        for thread in 0..nobody.saturating_sub(1) {
            let frames: Vec<_> =
                machine.stack_of(thread).frames.iter().map(|frame| (frame.function, frame.how)).collect();
            if !frames.is_empty() || thread == running {
                stacks.push(OpenStack { thread: thread as u32, running: thread == running, frames });
            }
        }
        let waiting = (0..machine.bounds.cpus).filter_map(|cpu| {
            let (waiting, _) = machine.waiting(cpu)?;
            let thread = u32::try_from(waiting.running).ok().filter(|_| waiting.running + 1 < nobody)?;
            Some(WaitingCpu { cpu: cpu as u32, thread, user: waiting.user, halted: waiting.halted })
        });
        let waiting = waiting.collect();
        ChunkState { user: machine.user, waiting, regions: machine.regions.clone(), stacks }
            .write(&mut self.raw);
        self.state = Some(self.raw.len());
    }

    fn write_event(&mut self, at: u64, weights: EventWeights, event: Event) {
        let delta = at.saturating_sub(self.last);
        let event = match event {
            Event::Idle { ns } => Event::Idle { ns: ns.min(self.to - at) },
            other => other,
        };
        match self.wide {
            true => encode::wide_event(&mut self.raw, delta, weights, event),
            false => encode::event(&mut self.raw, delta, event),
        }
        self.last = match event {
            Event::Idle { ns } => at + ns,
            _ => at,
        };
        self.events += 1;
    }

    /// Begins the chunk within an idle period.
    fn begun_asleep(&mut self, machine: &mut ReplayState<()>) {
        let (awake, from) = (machine.now(), self.from);
        self.open(machine);
        (self.begin, self.last) = (from, from);
        self.write_event(from, EventWeights::NONE, Event::Idle { ns: awake - from });
    }

    /// Lets time pass up to the chunk's end.
    fn until(&mut self, end: u64) {
        if end > self.last {
            self.write_event(end, EventWeights::NONE, Event::Idle { ns: 0 });
        }
    }
}
