//! Stream of records, with a buffer of fixed size. Compressed records are unpacked on the way.

use super::kind;
use super::{PerfDataError, Result};
use std::io::{self, Read};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Size of the buffer in bytes; a record has less than 64 KiB.
const BUFFER: usize = 1 << 20;
const HEADER: usize = 8;
const RECORD_MAX: usize = 1 << 16;

/// Type, flags and bytes after the header of a record.
pub(super) struct RawRecord<'a> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'a [u8],
    /// Byte of the file at which the record begins.
    pub at: u64,
}

/// Records of a file, one after the other.
pub(super) struct RecordStream<R> {
    input: R,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Position of `begin` in the file.
    at: u64,
    /// Byte after the last record.
    limit: u64,
    unpacked: Option<Unpacked>,
}

/// Records of compressed ones that were not given out yet.
struct Unpacked {
    decoder: Decoder<'static>,
    bytes: Vec<u8>,
    begin: usize,
    /// Compressed bytes that are still to be unpacked.
    packed: Vec<u8>,
    taken: usize,
    is_flushed: bool,
}

impl<R: Read> RecordStream<R> {
    /// Reads records from `at`, the position of `input`, to `limit`.
    pub fn new(input: R, at: u64, limit: u64) -> Self {
        Self { input, buffer: vec![0; BUFFER], begin: 0, end: 0, at, limit, unpacked: None }
    }

    /// Fills the buffer until it has `wanted` bytes or the data end; returns true if it has.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        if self.end - self.begin >= wanted {
            return Ok(true);
        }
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        while self.end < wanted {
            let left = self.limit - self.at - self.end as u64;
            let room = (self.buffer.len() - self.end).min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.input.read(&mut self.buffer[self.end..self.end + room]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Skips bytes after the current record.
    pub fn skip(&mut self, mut bytes: u64) -> Result<()> {
        let damaged = PerfDataError::Truncated { at: self.limit, what: "the data after a record" };
        if bytes > self.limit - self.at {
            return Err(damaged);
        }
        while bytes > 0 {
            if !self.fill(1)? {
                return Err(damaged);
            }
            let step = bytes.min((self.end - self.begin) as u64);
            self.begin += step as usize;
            self.at += step;
            bytes -= step;
        }
        Ok(())
    }

    /// Returns the next record; `None` at the end. With `unpack`, the content of compressed records
    /// comes in their place.
    pub fn next(&mut self, unpack: bool) -> Result<Option<RawRecord<'_>>> {
        loop {
            if self.unpacked.as_mut().is_some_and(Unpacked::is_ready) || self.refill_unpacked()? {
                break;
            }
            if !self.fill(HEADER)? {
                return match self.end - self.begin {
                    0 => self.finish(),
                    _ => Err(PerfDataError::Truncated { at: self.limit, what: "a record" }),
                };
            }
            let (kind, misc, size) = header(&self.buffer[self.begin..]);
            if size < HEADER {
                return Err(PerfDataError::damaged(
                    self.at,
                    format!("a record of type {kind} has {size} bytes"),
                ));
            }
            if !self.fill(size)? {
                return Err(PerfDataError::Truncated { at: self.limit, what: "a record" });
            }
            let (at, begin) = (self.at, self.begin);
            self.begin += size;
            self.at += size as u64;
            if unpack && matches!(kind, kind::COMPRESSED | kind::COMPRESSED2) {
                let body = &self.buffer[begin + HEADER..begin + size];
                let packed = match kind {
                    kind::COMPRESSED => Some(body),
                    // The size without padding comes first.
                    _ => (|| {
                        let (size, rest) = body.split_first_chunk::<8>()?;
                        rest.get(..usize::try_from(u64::from_le_bytes(*size)).ok()?)
                    })(),
                };
                let damaged = || PerfDataError::damaged(at, "a compressed record is too short");
                let packed = packed.ok_or_else(damaged)?;
                let unpacked = match &mut self.unpacked {
                    Some(unpacked) => unpacked,
                    none => none.insert(Unpacked::new()?),
                };
                unpacked.packed.clear();
                unpacked.packed.extend_from_slice(packed);
                (unpacked.taken, unpacked.is_flushed) = (0, false);
                continue;
            }
            let body = &self.buffer[begin + HEADER..begin + size];
            return Ok(Some(RawRecord { kind, misc, body, at }));
        }
        let at = self.at;
        let Some(unpacked) = &mut self.unpacked else { return Ok(None) };
        let begin = unpacked.begin;
        let (kind, misc, size) = header(&unpacked.bytes[begin..]);
        if size < HEADER {
            return Err(PerfDataError::damaged(
                at,
                format!("a compressed record of type {kind} has {size} bytes"),
            ));
        }
        unpacked.begin += size;
        Ok(Some(RawRecord { kind, misc, body: &unpacked.bytes[begin + HEADER..begin + size], at }))
    }

    /// Unpacks more; returns true if there is a whole record then.
    fn refill_unpacked(&mut self) -> Result<bool> {
        let at = self.at;
        let Some(unpacked) = &mut self.unpacked else { return Ok(false) };
        while !unpacked.is_ready() {
            if !unpacked.more().map_err(|error| PerfDataError::Zstd { at, error })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&self) -> Result<Option<RawRecord<'_>>> {
        match &self.unpacked {
            Some(unpacked) if unpacked.begin < unpacked.bytes.len() => {
                Err(PerfDataError::Truncated { at: self.limit, what: "a compressed record" })
            }
            _ => Ok(None),
        }
    }
}

impl Unpacked {
    fn new() -> Result<Self> {
        let decoder = Decoder::new()?;
        Ok(Self { decoder, bytes: Vec::new(), begin: 0, packed: Vec::new(), taken: 0, is_flushed: true })
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.begin..).unwrap_or_default()
    }

    /// Returns true if a whole record, or a damaged one, is there.
    fn is_ready(&mut self) -> bool {
        let rest = self.rest();
        rest.len() >= HEADER && rest.len() >= header(rest).2
    }

    /// Unpacks at most a buffer; returns false if there is nothing more.
    fn more(&mut self) -> io::Result<bool> {
        if self.taken == self.packed.len() && self.is_flushed {
            return Ok(false);
        }
        self.bytes.drain(..self.begin);
        self.begin = 0;
        let old = self.bytes.len();
        self.bytes.resize(old + RECORD_MAX, 0);
        let mut input = InBuffer::around(&self.packed[self.taken..]);
        let mut output = OutBuffer::around(&mut self.bytes[old..]);
        self.decoder.run(&mut input, &mut output)?;
        let (read, written) = (input.pos(), output.pos());
        self.bytes.truncate(old + written);
        self.taken += read;
        // A full buffer may have more behind it.
        self.is_flushed = written < RECORD_MAX;
        Ok(read > 0 || written > 0)
    }
}

/// Returns type, flags and size of a record.
fn header(bytes: &[u8]) -> (u32, u16, usize) {
    let at = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let kind = u32::from_le_bytes([at(0), at(1), at(2), at(3)]);
    (kind, u16::from_le_bytes([at(4), at(5)]), usize::from(u16::from_le_bytes([at(6), at(7)])))
}
