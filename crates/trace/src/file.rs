//! The trace file, chunk by chunk.

use crate::{ChunkHeader, ChunkIndex, TraceHeader, CHUNK_HEADER_BYTES, TRACE_HEADER_BYTES};
use std::io::{self, Write};

/// zstd level: 1 keeps one core ahead of the emulator.
const LEVEL: i32 = 1;

/// Compresses chunks, writes them and keeps the index.
pub struct TraceFileWriter<W> {
    out: W,
    offset: u64,
    index: Vec<ChunkIndex>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl<W: Write> TraceFileWriter<W> {
    /// Writes the file's header.
    pub fn new(mut out: W, header: TraceHeader) -> io::Result<Self> {
        out.write_all(&header.to_bytes())?;
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Self { out, offset: TRACE_HEADER_BYTES as u64, index: Vec::new(), compressor })
    }

    /// Writes one chunk. `raw` is its [`crate::ChunkState`] and its events, of the sizes that
    /// `header` says; `header.compressed` is filled in here.
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

    /// The sink, flushed, and where each chunk is.
    pub fn finish(mut self) -> io::Result<(W, Vec<ChunkIndex>)> {
        self.out.flush()?;
        Ok((self.out, self.index))
    }
}
