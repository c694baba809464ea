//! Description of a trace: everything but its events.

use super::bytes::{Cursor, Order};
use super::format::{fields, EventFormat};
use super::sections::Compression;
use super::symbols::KernelSymbols;
use super::{Result, TraceDatError, MAGIC};
use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom};

/// Events of a CPU in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuData {
    /// Number of the CPU.
    pub cpu: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Size in the file in bytes.
    pub size: u64,
}

/// Ring buffers of one instance of the tracer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceBuffer {
    /// Name of the instance; empty for the top one.
    pub name: String,
    /// Clock, if the file names it.
    pub clock: Option<String>,
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// The pages are compressed.
    pub compressed: bool,
    /// CPUs with their data.
    pub cpus: Vec<CpuData>,
}

/// Description of a trace.
#[derive(Debug)]
pub struct TraceDat {
    /// Version of the file: 6 or 7.
    pub version: u32,
    /// Byte order of everything.
    pub(super) order: Order,
    pub(super) compression: Compression,
    /// Offset of the data in a page, which is also the size of its header.
    pub(super) data_offset: usize,
    /// Size of a page's counter of bytes.
    pub(super) commit_bytes: usize,
    /// Formats of events.
    pub events: Vec<EventFormat>,
    pub(super) symbols: KernelSymbols,
    /// Names of threads, by pid.
    pub comms: HashMap<u32, String>,
    /// Output of `uname -a` on the machine, if the file has it.
    pub uname: Option<String>,
    /// Clock of the top instance.
    pub clock: Option<String>,
    /// Multiplier and shift that make nanoseconds of the clock.
    pub(super) tsc: Option<(u32, u32)>,
    /// Text of each CPU's `stats`.
    pub cpu_stats: Vec<String>,
    /// Instances with events, the top one first.
    pub buffers: Vec<TraceBuffer>,
    /// The file has the text of a latency tracer.
    pub has_latency_text: bool,
}

/// Numbers of options of both versions.
mod option {
    pub const DONE: u64 = 0;
    pub const CPU_STATS: u64 = 2;
    pub const BUFFER: u64 = 3;
    pub const CLOCK: u64 = 4;
    pub const UNAME: u64 = 5;
    pub const CPU_COUNT: u64 = 8;
    pub const TSC: u64 = 14;
    pub const HEADER_INFO: u64 = 16;
    pub const FTRACE_FORMATS: u64 = 17;
    pub const EVENT_FORMATS: u64 = 18;
    pub const SYMBOLS: u64 = 19;
    pub const COMMS: u64 = 21;
    pub const LATENCY: u64 = 22;
}

/// Largest number of CPUs.
const MAX_CPUS: u64 = 1 << 16;
/// Largest page in bytes: the kernel's own limit is far below.
const MAX_PAGE: u64 = 1 << 24;

impl TraceDat {
    /// Reads the formats of events in the tracing data of a `perf.data`, which begins as version 6
    /// does.
    ///
    /// # Errors
    /// [`TraceDatError`] for data of another kind, or damaged data.
    pub fn perf_formats(bytes: &[u8]) -> Result<Vec<EventFormat>> {
        let size = bytes.len() as u64;
        let mut file = std::io::Cursor::new(bytes);
        let mut cursor = Cursor { file: &mut file, at: 0, size, order: Order::default() };
        cursor.expect(&MAGIC, "the magic bytes")?;
        cursor.text("the version")?;
        cursor.order.big = cursor.number(1, "the byte order")? == 1;
        cursor.number(1, "the size of a long")?;
        cursor.number(4, "the size of a page")?;
        let mut trace = Self::empty(6, cursor.order);
        trace.header_info(&mut cursor)?;
        trace.ftrace_formats(&mut cursor)?;
        trace.event_formats(&mut cursor)?;
        Ok(trace.events)
    }

    fn empty(version: u32, order: Order) -> Self {
        Self {
            version,
            order,
            compression: Compression::None,
            data_offset: 16,
            commit_bytes: 8,
            events: Vec::new(),
            symbols: KernelSymbols::default(),
            comms: HashMap::new(),
            uname: None,
            clock: None,
            tsc: None,
            cpu_stats: Vec::new(),
            buffers: Vec::new(),
            has_latency_text: false,
        }
    }

    /// Reads the description.
    ///
    /// # Errors
    /// [`TraceDatError`] for a file of another kind or version, or a damaged one.
    pub fn open<R: Read + Seek>(file: &mut R) -> Result<Self> {
        let size = file.seek(SeekFrom::End(0))?;
        let mut cursor = Cursor { file, at: 0, size, order: Order::default() };
        if size < MAGIC.len() as u64 || cursor.bytes(MAGIC.len() as u64, "the magic bytes")? != MAGIC {
            return Err(TraceDatError::NotTraceDat);
        }
        let version = cursor.text("the version")?;
        let number = match version.as_str() {
            "6" => 6,
            "7" => 7,
            other => return Err(TraceDatError::Version(other.escape_debug().to_string())),
        };
        cursor.order.big = cursor.number(1, "the byte order")? == 1;
        let mut trace = Self::empty(number, cursor.order);
        cursor.number(1, "the size of a long")?;
        let page_bytes = cursor.number(4, "the size of a page")?;
        match number {
            6 => trace.version_6(&mut cursor, page_bytes)?,
            _ => trace.version_7(&mut cursor)?,
        }
        trace.check()?;
        Ok(trace)
    }

    fn check(&self) -> Result<()> {
        let damaged = |what: String| TraceDatError::Damaged { at: 0, what };
        if !(matches!(self.commit_bytes, 4 | 8) && (12..4096).contains(&self.data_offset)) {
            return Err(damaged("the header of pages is not one of a ring buffer".into()));
        }
        for buffer in &self.buffers {
            let least = self.data_offset as u64 + 8;
            if !(least..=MAX_PAGE).contains(&buffer.page_bytes) {
                return Err(damaged(format!("pages have {} bytes", buffer.page_bytes)));
            }
        }
        Ok(())
    }

    fn version_6<R: Read + Seek>(&mut self, cursor: &mut Cursor<'_, R>, page_bytes: u64) -> Result<()> {
        self.header_info(cursor)?;
        self.ftrace_formats(cursor)?;
        self.event_formats(cursor)?;
        self.symbols = KernelSymbols::parse(&cursor.sized(4, "the kernel's symbols")?);
        cursor.sized(4, "the formats of trace_printk")?;
        self.comms = comms(&cursor.sized(8, "the names of threads")?);
        let mut cpus = cursor.number(4, "the number of CPUs")?;
        let mut kind = cursor.bytes(10, "the kind of data")?;
        let mut instances = Vec::new();
        if kind == *b"options  \0" {
            loop {
                let id = cursor.number(2, "an option")?;
                if id == option::DONE {
                    break;
                }
                let data = cursor.sized(4, "an option")?;
                match id {
                    option::BUFFER => instances.push(data),
                    option::CPU_COUNT => cpus = self.order.number(data.get(..4).unwrap_or_default()),
                    _ => self.option(id, &data),
                }
            }
            kind = cursor.bytes(10, "the kind of data")?;
        }
        match &kind[..] {
            b"flyrecord\0" => {}
            b"latency  \0" => {
                self.has_latency_text = true;
                return Ok(());
            }
            _ => {
                let what = "neither \"flyrecord\" nor \"latency\" follows the options".into();
                return Err(TraceDatError::Damaged { at: cursor.at - 10, what });
            }
        }
        let clock = self.clock.clone();
        let buffer =
            |name, cpus| TraceBuffer { name, clock: clock.clone(), page_bytes, compressed: false, cpus };
        let top = cpu_table(cursor, cpus)?;
        self.buffers.push(buffer(String::new(), top));
        for data in instances {
            let Some((offset, name)) = data.split_at_checked(8) else { continue };
            let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default());
            cursor.at = self.order.number(offset);
            let cpus = cursor.number(4, "the number of an instance's CPUs")?;
            cursor.expect(b"flyrecord\0", "the begin of an instance's data")?;
            let cpus = cpu_table(cursor, cpus)?;
            self.buffers.push(buffer(name.into_owned(), cpus));
        }
        Ok(())
    }

    fn version_7<R: Read + Seek>(&mut self, cursor: &mut Cursor<'_, R>) -> Result<()> {
        self.compression = Compression::of(&cursor.text("the compression")?)?;
        cursor.text("the version of the compression")?;
        let mut offset = cursor.number(8, "the offset of the options")?;
        let mut seen = HashSet::new();
        let mut sections = Vec::new();
        while offset != 0 {
            if !seen.insert(offset) {
                let what = "the sections of options refer to each other in a circle".into();
                return Err(TraceDatError::Damaged { at: offset, what });
            }
            let data = self.section(cursor, offset)?;
            let mut options = &data[..];
            let mut next = 0;
            while let Some((head, rest)) = options.split_at_checked(6) {
                let (id, length) = (self.order.number(&head[..2]), self.order.number(&head[2..]));
                let Some((data, rest)) = rest.split_at_checked(length as usize) else {
                    let what = format!("option {id} is longer than its section");
                    return Err(TraceDatError::Damaged { at: offset, what });
                };
                options = rest;
                let place = || data.get(..8).map_or(0, |bytes| self.order.number(bytes));
                match id {
                    option::DONE => {
                        next = place();
                        break;
                    }
                    option::HEADER_INFO
                    | option::FTRACE_FORMATS
                    | option::EVENT_FORMATS
                    | option::SYMBOLS
                    | option::COMMS => sections.push((id, place())),
                    option::BUFFER => {
                        let buffer = self.buffer(data, cursor).ok_or_else(|| TraceDatError::Damaged {
                            at: offset,
                            what: "the description of a buffer is too short".into(),
                        })?;
                        self.buffers.push(buffer);
                    }
                    option::LATENCY => self.has_latency_text = true,
                    _ => self.option(id, data),
                }
            }
            offset = next;
        }
        for (id, offset) in sections {
            let bytes = self.section(cursor, offset)?;
            let size = bytes.len() as u64;
            let mut section =
                Cursor { file: &mut std::io::Cursor::new(bytes), at: 0, size, order: self.order };
            match id {
                option::HEADER_INFO => self.header_info(&mut section)?,
                option::FTRACE_FORMATS => self.ftrace_formats(&mut section)?,
                option::EVENT_FORMATS => self.event_formats(&mut section)?,
                option::SYMBOLS => {
                    self.symbols = KernelSymbols::parse(&section.sized(4, "the kernel's symbols")?);
                }
                _ => self.comms = comms(&section.sized(8, "the names of threads")?),
            }
        }
        // The top instance first, as in version 6.
        self.buffers.sort_by_key(|buffer| !buffer.name.is_empty());
        Ok(())
    }

    /// Reads the section at an offset, uncompressed.
    fn section<R: Read + Seek>(&self, cursor: &mut Cursor<'_, R>, offset: u64) -> Result<Vec<u8>> {
        cursor.at = offset;
        cursor.number(2, "a section")?;
        let flags = cursor.number(2, "a section")?;
        cursor.number(4, "a section")?;
        let size = cursor.number(8, "a section")?;
        if flags & 1 == 0 {
            return cursor.bytes(size, "a section");
        }
        let packed = cursor.number(4, "a section")?;
        let unpacked = cursor.number(4, "a section")?;
        let bytes = cursor.bytes(packed, "a section")?;
        self.compression.unpack(&bytes, unpacked, offset)
    }

    /// Parses the option that describes a buffer.
    fn buffer<R: Read + Seek>(&self, data: &[u8], cursor: &mut Cursor<'_, R>) -> Option<TraceBuffer> {
        let (section, data) = data.split_at_checked(8)?;
        let (name, data) = zero_ended(data)?;
        let (clock, data) = zero_ended(data)?;
        let (page, data) = data.split_at_checked(4)?;
        let (count, data) = data.split_at_checked(4)?;
        let count = self.order.number(count);
        if count > MAX_CPUS {
            return None;
        }
        let entries = data.chunks_exact(20).take(count as usize);
        let cpus: Vec<CpuData> = entries
            .map(|entry| CpuData {
                cpu: self.order.u32(&entry[..4]),
                offset: self.order.number(&entry[4..12]),
                size: self.order.number(&entry[12..]),
            })
            .collect();
        cursor.at = self.order.number(section).saturating_add(2);
        let flags = cursor.number(2, "the section of a buffer").ok()?;
        (cpus.len() as u64 == count).then_some(TraceBuffer {
            name,
            clock: Some(clock),
            page_bytes: self.order.number(page),
            compressed: flags & 1 == 1 && self.compression != Compression::None,
            cpus,
        })
    }

    /// Reads an option that both versions have.
    fn option(&mut self, id: u64, data: &[u8]) {
        let text = || zero_ended(data).map_or_else(|| lossy(data), |(text, _)| text);
        match id {
            option::CPU_STATS if self.cpu_stats.len() < MAX_CPUS as usize => self.cpu_stats.push(text()),
            // The content of `trace_clock`: the chosen one is in brackets.
            option::CLOCK => {
                let text = text();
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.clock = Some(chosen.map_or(text.as_str(), |(clock, _)| clock).trim().into());
            }
            option::UNAME => self.uname = Some(text()),
            option::TSC => {
                if let Some(data) = data.get(..8) {
                    self.tsc = Some((self.order.u32(&data[..4]), self.order.u32(&data[4..])));
                }
            }
            _ => {}
        }
    }

    fn header_info<R: Read + Seek>(&mut self, cursor: &mut Cursor<'_, R>) -> Result<()> {
        cursor.expect(b"header_page\0", "`header_page`")?;
        let page = lossy(&cursor.sized(8, "the header of pages")?);
        cursor.expect(b"header_event\0", "`header_event`")?;
        cursor.sized(8, "the header of events")?;
        for field in fields(&page) {
            match field.name.as_str() {
                "commit" => self.commit_bytes = field.size,
                "data" => self.data_offset = field.offset,
                _ => {}
            }
        }
        Ok(())
    }

    fn ftrace_formats<R: Read + Seek>(&mut self, cursor: &mut Cursor<'_, R>) -> Result<()> {
        let count = cursor.number(4, "the number of ftrace's events")?;
        self.formats(cursor, "ftrace", count)
    }

    fn event_formats<R: Read + Seek>(&mut self, cursor: &mut Cursor<'_, R>) -> Result<()> {
        for _ in 0..cursor.number(4, "the number of event systems")? {
            let system = cursor.text("the name of an event system")?;
            let count = cursor.number(4, "the number of a system's events")?;
            self.formats(cursor, &system, count)?;
        }
        Ok(())
    }

    fn formats<R: Read + Seek>(
        &mut self,
        cursor: &mut Cursor<'_, R>,
        system: &str,
        count: u64,
    ) -> Result<()> {
        for _ in 0..count {
            let text = lossy(&cursor.sized(8, "the format of an event")?);
            self.events.extend(EventFormat::parse(system, &text));
        }
        Ok(())
    }
}

fn cpu_table<R: Read + Seek>(cursor: &mut Cursor<'_, R>, cpus: u64) -> Result<Vec<CpuData>> {
    if cpus > MAX_CPUS {
        let what = format!("the file claims to have the data of {cpus} CPUs");
        return Err(TraceDatError::Damaged { at: cursor.at, what });
    }
    (0..cpus as u32)
        .map(|cpu| {
            let offset = cursor.number(8, "the table of CPUs")?;
            Ok(CpuData { cpu, offset, size: cursor.number(8, "the table of CPUs")? })
        })
        .collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string()
}

fn zero_ended(bytes: &[u8]) -> Option<(String, &[u8])> {
    let at = bytes.iter().position(|byte| *byte == 0)?;
    Some((lossy(&bytes[..at]), &bytes[at + 1..]))
}

/// Parses `saved_cmdlines`: a pid and a name on each line.
fn comms(text: &[u8]) -> HashMap<u32, String> {
    let text = String::from_utf8_lossy(text);
    let line = |line: &str| {
        let (pid, comm) = line.trim_end_matches('\0').split_once(' ')?;
        Some((pid.trim().parse().ok()?, comm.to_string()))
    };
    text.lines().filter_map(line).collect()
}
