//! Reading a trace chunk by chunk, in bounded memory.

use crate::Error;
use kerntune_trace::{
    ChunkHeader, ChunkIndex, OpenStack, TraceHeader, CHUNK_HEADER_BYTES, TRACE_HEADER_BYTES,
};
use std::io::{ErrorKind, Read};
use std::ops::Range;

/// A chunk, decompressed.
pub(crate) struct Chunk<'a> {
    /// Its number in the trace.
    pub number: usize,
    pub header: ChunkHeader,
    pub stacks: Vec<OpenStack>,
    /// The encoded events.
    pub payload: &'a [u8],
}

/// Reads a range of chunks and checks each against the recording's index.
pub(crate) struct Chunks<'a, R> {
    trace: R,
    index: &'a [ChunkIndex],
    range: Range<usize>,
    compressed: Vec<u8>,
    raw: Vec<u8>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

impl<'a, R: Read> Chunks<'a, R> {
    /// `trace` is at the beginning of the file.
    pub fn from_beginning(mut trace: R, index: &'a [ChunkIndex]) -> Result<Self, Error> {
        let mut header = [0; TRACE_HEADER_BYTES];
        let length = fill(&mut trace, &mut header)?;
        TraceHeader::parse(&header[..length]).map_err(Error::Header)?;
        Self::from_chunk(trace, index, 0..index.len())
    }

    /// `trace` is where the first chunk of `range` begins.
    pub fn from_chunk(trace: R, index: &'a [ChunkIndex], range: Range<usize>) -> Result<Self, Error> {
        let decompressor = zstd::bulk::Decompressor::new()?;
        Ok(Self { trace, index, range, compressed: Vec::new(), raw: Vec::new(), decompressor })
    }

    /// The next chunk; `None` after the last.
    pub fn next(&mut self) -> Result<Option<Chunk<'_>>, Error> {
        let Some(number) = self.range.next() else { return Ok(None) };
        let format = |source| Error::Format { chunk: number, source };
        let truncated = Error::Truncated { found: number, expected: self.index.len() };
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        if fill(&mut self.trace, &mut bytes)? < CHUNK_HEADER_BYTES {
            return Err(truncated);
        }
        let header = ChunkHeader::parse(&bytes).map_err(format)?;
        self.check(number, &header)?;

        self.compressed.clear();
        let length = u64::from(header.compressed);
        if (&mut self.trace).take(length).read_to_end(&mut self.compressed)? as u64 != length {
            return Err(truncated);
        }
        let (stacks, payload) = (header.stacks as usize, header.payload as usize);
        self.raw.clear();
        self.raw.reserve(stacks + payload);
        let found = (self.decompressor.decompress_to_buffer(&self.compressed, &mut self.raw))
            .map_err(|source| Error::Decompress { chunk: number, source })?;
        if found != stacks + payload {
            let (found, expected) = (found as u64, (stacks + payload) as u64);
            return Err(Error::Contents { chunk: number, what: "bytes", found, expected });
        }
        let (stacks, payload) = self.raw.split_at(stacks);
        let stacks = OpenStack::parse_all(stacks).map_err(format)?;
        Ok(Some(Chunk { number, header, stacks, payload }))
    }

    fn check(&self, chunk: usize, header: &ChunkHeader) -> Result<(), Error> {
        if header.vcpu != 0 {
            return Err(Error::SeveralCpus { chunk, vcpu: header.vcpu });
        }
        let Some(index) = self.index.get(chunk) else { return Ok(()) };
        for (what, found, expected) in [
            ("its number", header.sequence.into(), chunk as u64),
            ("its begin", header.begin, index.begin_ns),
            ("its end", header.end, index.end_ns),
            ("its number of events", header.events.into(), index.events.into()),
        ] {
            if found != expected {
                return Err(Error::Mixed { chunk, what, found, expected });
            }
        }
        Ok(())
    }
}

/// Reads until `into` is full or the input ends; returns how much there was.
fn fill(from: &mut impl Read, into: &mut [u8]) -> Result<usize, Error> {
    let mut length = 0;
    while length < into.len() {
        match from.read(&mut into[length..]) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(length)
}
