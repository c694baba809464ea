//! Random access to a trace, chunk by chunk, in bounded memory.

use crate::Error;
use kerntune_trace::{
    ChunkHeader, ChunkState, EventDecoder, Recording, TraceHeader, CHUNK_HEADER_BYTES, TRACE_HEADER_BYTES,
};
use kerntune_work::is_out_of_memory;
use std::io;

/// Source of bytes that several threads can read at any offset.
pub trait ReadAt: Sync {
    /// Reads up to `into.len()` bytes at `offset`; returns 0 at the end.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for std::fs::File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, into, offset)
    }
}

impl ReadAt for &[u8] {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// A trace with the recording that describes it.
#[derive(Clone, Copy)]
pub struct TraceFile<'a> {
    source: &'a dyn ReadAt,
    /// The recorder's description of the run.
    pub recording: &'a Recording,
    /// True if the trace's events carry weights.
    pub wide: bool,
}

impl<'a> TraceFile<'a> {
    /// Reads and checks the header of the file.
    pub fn open(source: &'a dyn ReadAt, recording: &'a Recording) -> Result<Self, Error> {
        let mut bytes = [0; TRACE_HEADER_BYTES];
        let length = fill(source, &mut bytes, 0)?;
        let header = TraceHeader::parse(&bytes[..length]).map_err(Error::Header)?;
        Ok(Self { source, recording, wide: header.wide })
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        self.recording.chunks.len()
    }

    /// Returns the chunks that have events at virtual times from `begin` to `end`.
    pub fn covering(&self, begin: u64, end: u64) -> std::ops::Range<usize> {
        let chunks = &self.recording.chunks;
        let first = chunks.partition_point(|chunk| chunk.end_ns < begin);
        let last = chunks.partition_point(|chunk| chunk.begin_ns <= end);
        first..last.max(first)
    }

    /// Returns chunk `number` as it is in the file, with its header. Only the length is checked.
    ///
    /// # Errors
    /// [`Error::Truncated`], or an invalid chunk header.
    pub fn chunk_bytes(&self, number: usize) -> Result<Vec<u8>, Error> {
        let truncated = || Error::Truncated { found: number, expected: self.chunks() };
        let index = self.recording.chunks.get(number).ok_or_else(truncated)?;
        let mut bytes = vec![0; CHUNK_HEADER_BYTES];
        if fill(self.source, &mut bytes, index.offset)? < CHUNK_HEADER_BYTES {
            return Err(truncated());
        }
        let header = ChunkHeader::parse(&bytes).map_err(|source| Error::Format { chunk: number, source })?;
        bytes.resize(CHUNK_HEADER_BYTES + header.compressed as usize, 0);
        let body = index.offset.saturating_add(CHUNK_HEADER_BYTES as u64);
        let room = bytes.get_mut(CHUNK_HEADER_BYTES..).unwrap_or_default();
        match fill(self.source, room, body)? == header.compressed as usize {
            true => Ok(bytes),
            false => Err(truncated()),
        }
    }

    /// Returns a reader with its own buffers, for one thread.
    pub fn reader(&self) -> Result<ChunkReader<'a>, Error> {
        let decompressor = zstd::bulk::Decompressor::new()?;
        Ok(ChunkReader { trace: *self, compressed: Vec::new(), raw: Vec::new(), decompressor })
    }
}

/// Reads chunks, and checks each against the recording's index.
pub struct ChunkReader<'a> {
    trace: TraceFile<'a>,
    compressed: Vec<u8>,
    raw: Vec<u8>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

/// A decompressed chunk.
pub struct TraceChunk<'a> {
    /// Number of the chunk in the trace.
    pub number: usize,
    /// Header of the chunk.
    pub header: ChunkHeader,
    /// State that the chunk declares at its beginning.
    pub state: ChunkState,
    /// The encoded events.
    pub payload: &'a [u8],
    /// True if the events carry weights.
    pub wide: bool,
}

impl<'a> TraceChunk<'a> {
    /// Returns a decoder of the chunk's events.
    pub fn decoder(&self) -> EventDecoder<'a> {
        EventDecoder::with_width(self.payload, self.wide)
    }
}

impl ChunkReader<'_> {
    /// Reads chunk `number`.
    pub fn read(&mut self, number: usize) -> Result<TraceChunk<'_>, Error> {
        let format = |source| Error::Format { chunk: number, source };
        let expected = self.trace.chunks();
        let truncated = Error::Truncated { found: number, expected };
        let Some(index) = self.trace.recording.chunks.get(number) else { return Err(truncated) };
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        if fill(self.trace.source, &mut bytes, index.offset)? < CHUNK_HEADER_BYTES {
            return Err(truncated);
        }
        let header = ChunkHeader::parse(&bytes).map_err(format)?;
        for (what, found, expected) in [
            ("its number", header.sequence.into(), number as u64),
            ("its begin", header.begin, index.begin_ns),
            ("its end", header.end, index.end_ns),
            ("its number of events", header.events.into(), index.events.into()),
        ] {
            if found != expected {
                return Err(Error::Mixed { chunk: number, what, found, expected });
            }
        }
        self.compressed.resize(header.compressed as usize, 0);
        let body = index.offset.saturating_add(CHUNK_HEADER_BYTES as u64);
        if fill(self.trace.source, &mut self.compressed, body)? < self.compressed.len() {
            return Err(truncated);
        }
        let (state, payload) = (header.state as usize, header.payload as usize);
        // Exactly the expected size, without bytes of another chunk: so the error for a damaged
        // chunk does not depend on what the reader read before.
        self.raw.resize(state + payload, 0);
        let found = (self.decompressor.decompress_to_buffer(&self.compressed, self.raw.as_mut_slice()))
            .map_err(|source| undecompressed(number, source))?;
        if found != state + payload {
            let (found, expected) = (found as u64, (state + payload) as u64);
            return Err(Error::Contents { chunk: number, what: "bytes", found, expected });
        }
        let (state, payload) = self.raw.split_at(state);
        let state = ChunkState::parse(state).map_err(format)?;
        Ok(TraceChunk { number, header, state, payload, wide: self.trace.wide })
    }
}

/// Returns the error for a chunk that could not be decompressed.
fn undecompressed(chunk: usize, source: io::Error) -> Error {
    match is_out_of_memory(&source) {
        true => Error::Memory { chunk, source },
        false => Error::Decompress { chunk, source },
    }
}

/// Reads until `into` is full or the input ends; returns the number of bytes.
fn fill(source: &dyn ReadAt, into: &mut [u8], offset: u64) -> Result<usize, Error> {
    let mut length = 0;
    while length < into.len() {
        match source.read_at(&mut into[length..], offset.saturating_add(length as u64)) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_does_not_blame_the_trace() {
        let error = undecompressed(3, io::Error::other("Allocation error : not enough memory"));
        assert!(!error.is_damage() && !error.to_string().contains("record again"), "{error}");
        assert!(error.to_string().starts_with("there is not enough memory to read chunk 3 of the trace"));
        let damaged = undecompressed(3, io::Error::other("Data corruption detected"));
        assert!(damaged.is_damage() && damaged.to_string().contains("--partial"), "{damaged}");
    }
}
