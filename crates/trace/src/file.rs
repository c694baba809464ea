//! Writer of the trace file.

use crate::{ChunkHeader, ChunkIndex, TraceHeader, CHUNK_HEADER_BYTES, TRACE_HEADER_BYTES};
use std::io::{self, Write};

/// zstd level. Level 1 is fast enough for one core to keep up with the emulator.
const LEVEL: i32 = 1;

/// Compresses chunks, writes them and builds their index.
pub struct TraceFileWriter<W> {
    out: W,
    offset: u64,
    index: Vec<ChunkIndex>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl<W: Write> TraceFileWriter<W> {
    /// Writes the file header.
    pub fn new(mut out: W, header: TraceHeader) -> io::Result<Self> {
        out.write_all(&header.to_bytes())?;
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Self { out, offset: TRACE_HEADER_BYTES as u64, index: Vec::new(), compressor })
    }

    /// Compresses and writes one chunk. `raw` is its encoded [`crate::ChunkState`] and its events,
    /// with the sizes given in `header`. This function fills in `header.compressed`.
    pub fn chunk(&mut self, mut header: ChunkHeader, raw: &[u8]) -> io::Result<()> {
        let body = self.compressor.compress(raw)?;
        header.compressed = body.len() as u32;
        self.out.write_all(&header.to_bytes())?;
        self.out.write_all(&body)?;
        self.index.push(ChunkIndex {
            offset: self.offset,
            begin_ns: header.begin,
            end_ns: header.end,
            events: header.events,
        });
        self.offset += (CHUNK_HEADER_BYTES + body.len()) as u64;
        Ok(())
    }

    /// Flushes and returns the sink and the index of all chunks.
    pub fn finish(mut self) -> io::Result<(W, Vec<ChunkIndex>)> {
        self.out.flush()?;
        Ok((self.out, self.index))
    }
}
