//! Events of all CPUs, from the pages of their ring buffers, in order of time.

use super::bytes::Order;
use super::header::{TraceBuffer, TraceDat};
use super::{Result, TraceDatError};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::io::{Read, Seek, SeekFrom};

/// Bytes that are read at once, if pages are smaller.
const BLOCK: u64 = 1 << 16;
/// Largest uncompressed chunk in bytes; trace-cmd's have ten pages.
const MAX_CHUNK: u64 = 1 << 24;
/// Mask of the size in a page's counter.
const SIZE_MASK: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Bits of a time that an absolute time stamp does not have.
const TIME_TOP: u64 = 0xf8 << 56;

/// Event of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent<'a> {
    /// Place of the CPU in the buffer's list.
    pub cpu: usize,
    /// Time in the clock's unit.
    pub time: u64,
    /// Fields.
    pub bytes: &'a [u8],
}

/// Events that the tracer lost, as the pages say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostEvents {
    /// Number of lost events, where pages state it.
    pub counted: u64,
    /// Number of places where events were lost whose number is not stated.
    pub uncounted: u64,
}

/// Reader of the events of one buffer, all CPUs merged by time.
#[derive(Debug)]
pub struct EventStream<'a, R> {
    file: &'a mut R,
    cpus: Vec<CpuStream>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    /// CPU whose event was returned last, and is still the first of its stream.
    returned: bool,
}

#[derive(Debug)]
enum CpuBytes {
    Plain {
        left: u64,
    },
    /// Chunks that follow.
    Packed {
        chunks: u64,
    },
}

#[derive(Debug)]
struct CpuStream {
    layout: PageLayout,
    bytes: CpuBytes,
    /// Offset in the file of what is read next, and of the end.
    at: u64,
    end: u64,
    block: Vec<u8>,
    /// Offset in the file of the block, for messages.
    block_at: u64,
    /// Begin of the next page in the block.
    next_page: usize,
    /// Rest of the current page's events, as a range of the block.
    events: std::ops::Range<usize>,
    time: u64,
    /// Range of the current event in the block.
    event: std::ops::Range<usize>,
    lost: LostEvents,
}

#[derive(Debug, Clone, Copy)]
struct PageLayout {
    order: Order,
    page_bytes: usize,
    data_offset: usize,
    commit_bytes: usize,
    compression: super::sections::Compression,
}

impl TraceDat {
    /// Begins to read a buffer's events.
    ///
    /// # Errors
    /// [`TraceDatError`] if the first pages are damaged or the file is truncated.
    pub fn events<'a, R: Read + Seek>(
        &self,
        buffer: &TraceBuffer,
        file: &'a mut R,
    ) -> Result<EventStream<'a, R>> {
        let size = file.seek(SeekFrom::End(0))?;
        let layout = PageLayout {
            order: self.order,
            page_bytes: buffer.page_bytes as usize,
            data_offset: self.data_offset,
            commit_bytes: self.commit_bytes,
            compression: self.compression,
        };
        let mut stream = EventStream { file, cpus: Vec::new(), heap: BinaryHeap::new(), returned: false };
        for data in &buffer.cpus {
            let end = data.offset.saturating_add(data.size);
            if data.size > 0 && end > size {
                let what = "the data of a CPU";
                return Err(TraceDatError::Truncated { what, from: data.offset, to: end, size });
            }
            let mut cpu = CpuStream {
                layout,
                bytes: CpuBytes::Plain { left: data.size },
                at: data.offset,
                // The stated size of compressed data is without some of their headers.
                end: if buffer.compressed { size } else { end },
                block: Vec::new(),
                block_at: data.offset,
                next_page: 0,
                events: 0..0,
                time: 0,
                event: 0..0,
                lost: LostEvents::default(),
            };
            if buffer.compressed && data.size > 0 {
                let chunks = cpu.take(stream.file, 4)?;
                cpu.bytes = CpuBytes::Packed { chunks: layout.order.number(&chunks) };
            }
            let number = stream.cpus.len();
            if cpu.advance(stream.file)? {
                stream.heap.push(Reverse((cpu.time, number)));
            }
            stream.cpus.push(cpu);
        }
        Ok(stream)
    }
}

impl<R: Read + Seek> EventStream<'_, R> {
    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// [`TraceDatError`] for a page that is damaged.
    pub fn next_event(&mut self) -> Result<Option<TraceEvent<'_>>> {
        if std::mem::take(&mut self.returned) {
            if let Some(mut top) = self.heap.peek_mut() {
                let number = top.0 .1;
                let cpu = &mut self.cpus[number];
                match cpu.advance(self.file)? {
                    true => *top = Reverse((cpu.time, number)),
                    false => {
                        PeekMut::pop(top);
                    }
                }
            }
        }
        let Some(&Reverse((time, number))) = self.heap.peek() else { return Ok(None) };
        self.returned = true;
        let cpu = &self.cpus[number];
        Ok(Some(TraceEvent { cpu: number, time, bytes: &cpu.block[cpu.event.clone()] }))
    }

    /// Returns the number of lost events so far.
    pub fn lost(&self) -> LostEvents {
        self.cpus.iter().fold(LostEvents::default(), |sum, cpu| LostEvents {
            counted: sum.counted.saturating_add(cpu.lost.counted),
            uncounted: sum.uncounted.saturating_add(cpu.lost.uncounted),
        })
    }
}

impl CpuStream {
    /// Reads bytes of the file.
    fn take<R: Read + Seek>(&mut self, file: &mut R, count: u64) -> Result<Vec<u8>> {
        if count > self.end.saturating_sub(self.at) || count > 2 * MAX_CHUNK {
            let what = format!("a chunk of {count} bytes does not fit into the data of its CPU");
            return Err(TraceDatError::Damaged { at: self.at, what });
        }
        file.seek(SeekFrom::Start(self.at))?;
        // The caller's count was checked against the size of the file.
        let mut bytes = vec![0; count as usize];
        file.read_exact(&mut bytes)?;
        self.at += count;
        Ok(bytes)
    }

    /// Reads the next block of pages; false at the end.
    fn fill<R: Read + Seek>(&mut self, file: &mut R) -> Result<bool> {
        self.block_at = self.at;
        match self.bytes {
            CpuBytes::Plain { left } => {
                let page = self.layout.page_bytes as u64;
                let count = left.min((BLOCK / page).max(1) * page);
                self.block.resize(count as usize, 0);
                file.seek(SeekFrom::Start(self.at))?;
                file.read_exact(&mut self.block)?;
                self.at += count;
                self.bytes = CpuBytes::Plain { left: left - count };
            }
            CpuBytes::Packed { chunks: 0 } => self.block.clear(),
            CpuBytes::Packed { chunks } => {
                let head = self.take(file, 8)?;
                let packed = self.layout.order.number(&head[..4]);
                let size = self.layout.order.number(&head[4..]);
                if size > MAX_CHUNK {
                    let what = format!("a chunk claims to have {size} bytes");
                    return Err(TraceDatError::Damaged { at: self.block_at, what });
                }
                let bytes = self.take(file, packed)?;
                self.block = self.layout.compression.unpack(&bytes, size, self.block_at)?;
                self.bytes = CpuBytes::Packed { chunks: chunks - 1 };
            }
        }
        self.next_page = 0;
        Ok(!self.block.is_empty())
    }

    /// Begins the next page; false at the end.
    fn page<R: Read + Seek>(&mut self, file: &mut R) -> Result<bool> {
        if self.next_page >= self.block.len() && !self.fill(file)? {
            return Ok(false);
        }
        let layout = self.layout;
        let begin = self.next_page;
        let end = self.block.len().min(begin + layout.page_bytes);
        self.next_page = end;
        let page = &self.block[begin..end];
        let damaged = |what: String| TraceDatError::Damaged { at: self.block_at, what };
        let (Some(time), Some(commit)) = (page.get(..8), page.get(8..8 + layout.commit_bytes)) else {
            return Err(damaged(format!("a page of a ring buffer has only {} bytes", page.len())));
        };
        self.time = layout.order.number(time);
        let commit = layout.order.number(commit);
        let size = (commit & SIZE_MASK) as usize;
        let room = page.len().saturating_sub(layout.data_offset);
        if size > room {
            return Err(damaged(format!(
                "a page claims to have {size} bytes of events, and has room for {room}"
            )));
        }
        if commit & MISSED != 0 {
            let stored =
                page.get(layout.data_offset + size..).and_then(|rest| rest.get(..layout.commit_bytes));
            match stored.filter(|_| commit & MISSED_STORED != 0) {
                Some(count) => {
                    self.lost.counted = self.lost.counted.saturating_add(layout.order.number(count));
                }
                None => self.lost.uncounted += 1,
            }
        }
        self.events = begin + layout.data_offset..begin + layout.data_offset + size;
        Ok(true)
    }

    /// Goes to the next event; false at the end.
    #[inline]
    fn advance<R: Read + Seek>(&mut self, file: &mut R) -> Result<bool> {
        loop {
            if self.events.len() < 4 {
                if !self.page(file)? {
                    return Ok(false);
                }
                continue;
            }
            let order = self.layout.order;
            let at = self.events.start;
            let word = order.u32(&self.block[at..at + 4]);
            let (kind, delta) = match order.big {
                false => (word & 31, word >> 5),
                true => (word >> 27, word & ((1 << 27) - 1)),
            };
            let second = match kind {
                0 | 29..=31 => match self.block[at + 4..self.events.end].get(..4) {
                    Some(bytes) => order.u32(bytes),
                    // Padding up to the page's end may have no length.
                    None if kind == 29 => 0,
                    None => return Err(self.overrun()),
                },
                _ => 0,
            };
            let (begin, length) = match kind {
                // Padding without a time ends the page.
                29 if delta == 0 => (self.events.end, 0),
                29 => (at + 4, second as usize),
                30 => {
                    self.time = self.time.wrapping_add(u64::from(second) << 27 | u64::from(delta));
                    (at + 8, 0)
                }
                31 => {
                    self.time = self.time & TIME_TOP | u64::from(second) << 27 | u64::from(delta);
                    (at + 8, 0)
                }
                0 => (at + 8, (second as usize).saturating_sub(4).next_multiple_of(4)),
                _ => (at + 4, 4 * kind as usize),
            };
            let end = begin.saturating_add(length);
            if end > self.events.end {
                return Err(self.overrun());
            }
            self.events.start = end;
            match kind {
                30 | 31 => {}
                29 => self.time = self.time.wrapping_add(delta.into()),
                _ => {
                    self.time = self.time.wrapping_add(delta.into());
                    self.event = begin..end;
                    return Ok(true);
                }
            }
        }
    }

    fn overrun(&self) -> TraceDatError {
        let what = "an event is longer than its page".into();
        TraceDatError::Damaged { at: self.block_at, what }
    }
}
