//! A stretch of a trace as a trace of its own, to be analysed like any other.

use crate::events::{Bounds, Machine, Visitor};
use crate::trace_file::Chunk;
use crate::{Error, TraceFile};
use kerntune_trace::{
    encode, ChunkHeader, ChunkIndex, ChunkState, Event, Health, OpenStack, Recording, TraceFileWriter,
    TraceHeader, WaitingCpu, Weights, CHUNK_HEADER_BYTES,
};

/// A trace of a stretch of time, in memory.
#[derive(Debug)]
pub struct Cut {
    /// The bytes of its trace file.
    pub bytes: Vec<u8>,
    /// What describes it: as the whole trace's, with its own chunks, and regions that do not end, so that their times are those
    /// of the stretch.
    pub recording: Recording,
}

/// What happened from virtual time `from` on, before `to`, ns. An interval that `from` lies in counts from there on, with all of
/// its weights; one that `to` lies in counts up to there, without. Calls that are open at either are cut.
///
/// # Errors
/// Any damage in the chunks that it lies in.
pub fn cut(trace: &TraceFile<'_>, from: u64, to: u64) -> Result<Cut, Error> {
    let mut out = Writer::new(trace)?;
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

struct Writer {
    bytes: Vec<u8>,
    recording: Recording,
    wide: bool,
}

impl Writer {
    fn new(trace: &TraceFile<'_>) -> Result<Self, Error> {
        let mut recording = trace.recording.clone();
        (recording.chunks, recording.events, recording.health) = (Vec::new(), 0, Health::default());
        recording.per_cpu = Vec::new();
        for region in &mut recording.regions {
            region.closed = false;
            region.cpus = Vec::new();
        }
        let header = TraceHeader { wide: trace.wide };
        Ok(Self { bytes: header.to_bytes().to_vec(), recording, wide: trace.wide })
    }

    /// A whole chunk goes on as it is, under a number of its own.
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

    fn part(&mut self, chunk: &Chunk<'_>, from: u64, to: u64) -> Result<(), Error> {
        let mut part = Part { from, to, wide: self.wide, ..Part::default() };
        let mut machine: Machine<()> = Machine::new(Bounds::of(&self.recording));
        machine.begin(&mut Still, chunk)?;
        let mut decoder = chunk.decoder();
        while let Some((ns, event)) = machine.read(&mut decoder)? {
            let at = machine.now().saturating_add(ns);
            if at >= to {
                part.open(&mut machine);
                break;
            }
            if at >= from {
                part.open(&mut machine);
                part.put(at, decoder.weights(), event);
            }
            let slept = matches!(event, Event::Idle { ns } if at < from && at.saturating_add(ns) > from);
            machine.step(&mut Still, ns, Weights::NONE, event)?;
            if slept {
                // It wakes up in the stretch: the rest of its sleep is.
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

    fn write(&mut self, part: Part, end: u64) -> Result<(), Error> {
        let Part { raw, state, begin, events, .. } = part;
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
        // The writer of trace files compresses and fills in the length; its file header is left out.
        let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide: self.wide })?;
        writer.chunk(header, &raw)?;
        let (bytes, _) = writer.finish()?;
        self.index(begin, end, events);
        self.bytes.extend_from_slice(bytes.get(kerntune_trace::TRACE_HEADER_BYTES..).unwrap_or_default());
        Ok(())
    }

    fn finish(self) -> Cut {
        Cut { bytes: self.bytes, recording: self.recording }
    }
}

/// Nothing is done with what is read.
struct Still;

impl Visitor for Still {
    type Frame = ();
}

/// A chunk that is being written.
#[derive(Default)]
struct Part {
    from: u64,
    to: u64,
    wide: bool,
    raw: Vec<u8>,
    /// Bytes of the state at its beginning, once it has begun.
    state: Option<usize>,
    begin: u64,
    cpu: u32,
    /// When the last event was.
    last: u64,
    events: u32,
}

impl Part {
    /// It begins: what is open before the event that is to come.
    fn open(&mut self, machine: &mut Machine<()>) {
        if self.state.is_some() {
            return;
        }
        self.begin = machine.now().max(self.from).min(self.to);
        self.last = self.begin;
        self.cpu = machine.cpu() as u32;
        let (running, nobody) = (machine.running(), machine.nobody());
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

    fn put(&mut self, at: u64, weights: Weights, event: Event) {
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

    /// It begins while the CPU is halted.
    fn begun_asleep(&mut self, machine: &mut Machine<()>) {
        let (awake, from) = (machine.now(), self.from);
        self.open(machine);
        (self.begin, self.last) = (from, from);
        self.put(from, Weights::NONE, Event::Idle { ns: awake - from });
    }

    /// Time goes on to its end.
    fn until(&mut self, end: u64) {
        if end > self.last {
            self.put(end, Weights::NONE, Event::Idle { ns: 0 });
        }
    }
}
