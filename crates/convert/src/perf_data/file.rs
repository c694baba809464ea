//! Header of a file: events, their ids, and features.

use super::event::PerfEvent;
use super::fields::{words, Fields};
use super::{PerfDataError, Result};
use crate::trace_dat::{EventFormat, TraceDat};
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

const MAGIC: &[u8; 8] = b"PERFILE2";
const SWAPPED_MAGIC: &[u8; 8] = b"2ELIFREP";
const FIRST_MAGIC: &[u8; 8] = b"PERFFILE";

/// Size of the header of a file, and of one that came through a pipe.
const FILE_HEADER: u64 = 104;
const PIPE_HEADER: u64 = 16;

/// Maximum size of a section with events or features that is read, in bytes.
const SECTION_MAX: u64 = 64 << 20;
/// Maximum number of events, and of ids of all events.
const MAX_EVENTS: usize = 1 << 16;
const MAX_IDS: usize = 1 << 22;
/// Maximum number of build ids that are kept.
const MAX_BUILD_IDS: usize = 1 << 20;

/// Numbers of features (`enum` in `tools/perf/util/header.h`).
mod feature {
    pub const TRACING_DATA: u64 = 1;
    pub const BUILD_ID: u64 = 2;
    pub const HOSTNAME: u64 = 3;
    pub const OSRELEASE: u64 = 4;
    pub const VERSION: u64 = 5;
    pub const ARCH: u64 = 6;
    pub const NRCPUS: u64 = 7;
    pub const CMDLINE: u64 = 11;
    pub const EVENT_DESC: u64 = 12;
    pub const STAT: u64 = 19;
    pub const DIR_FORMAT: u64 = 24;
}

/// Build id of the kernel or of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBuildId {
    /// Path, or `[kernel.kallsyms]`.
    pub path: String,
    /// Build id in hexadecimal digits.
    pub id: String,
}

/// Place of the kernel's image in memory: a symbol and its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelPlace {
    /// Symbol, `_text` or `_stext`.
    pub symbol: String,
    /// Address of the symbol while the samples were taken.
    pub address: u64,
}

/// A perf.data file, apart from its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerfFile {
    /// True if the file came through a pipe (`perf record -o -`).
    pub is_pipe: bool,
    /// Events.
    pub events: Vec<PerfEvent>,
    /// Number of the event of each id.
    pub ids: HashMap<u64, usize>,
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Release of its kernel.
    pub release: Option<String>,
    /// Version of perf.
    pub perf_version: Option<String>,
    /// Architecture, as `uname -m` prints it.
    pub arch: Option<String>,
    /// Number of online CPUs.
    pub cpus_online: Option<u32>,
    /// Command line of `perf record`.
    pub command: Option<String>,
    /// Build ids of files.
    pub build_ids: Vec<FileBuildId>,
    /// Build id of the kernel in hexadecimal digits.
    pub kernel_build_id: Option<String>,
    /// Place of the kernel's image.
    pub kernel_place: Option<KernelPlace>,
    /// Formats of tracepoints.
    pub formats: Vec<EventFormat>,
    /// True if perf was killed before it wrote the size of the data and the features.
    pub is_unfinished: bool,
    /// First byte of the records, and the byte after them.
    pub(super) data: (u64, u64),
}

/// Section of a file: offset and size in bytes.
type Section = (u64, u64);

fn section(fields: &mut Fields) -> Option<Section> {
    Some((fields.u64()?, fields.u64()?))
}

impl PerfFile {
    /// Reads the header, the events and the features.
    pub(super) fn open(input: &mut (impl Read + Seek)) -> Result<Self> {
        let size = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        let mut header = Vec::new();
        input.by_ref().take(FILE_HEADER).read_to_end(&mut header)?;
        let mut fields = Fields(&header);
        match fields.take(8) {
            Some(magic) if magic == MAGIC => {}
            Some(magic) if magic == SWAPPED_MAGIC => return Err(PerfDataError::BigEndian),
            Some(magic) if magic == FIRST_MAGIC => return Err(PerfDataError::FirstVersion),
            _ => {
                let found = header.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
                return Err(PerfDataError::NotPerfData { found: found.join(" ") });
            }
        }
        let truncated = |what| PerfDataError::Truncated { at: size, what };
        let header_size = fields.u64().ok_or(truncated("the header"))?;
        if header_size == PIPE_HEADER {
            return Ok(Self { is_pipe: true, data: (PIPE_HEADER, size), ..Self::default() });
        }
        if header_size != FILE_HEADER {
            return Err(PerfDataError::damaged(
                8,
                format!("the header has {header_size} bytes, not {FILE_HEADER}"),
            ));
        }
        let (attr_size, attrs, data, _types, flags) = (|| {
            let sections =
                (fields.u64()?, section(&mut fields)?, section(&mut fields)?, section(&mut fields)?);
            Some((sections.0, sections.1, sections.2, sections.3, fields.words(4)?))
        })()
        .ok_or(truncated("the header"))?;
        let mut file = Self { data: (data.0, size), ..Self::default() };
        file.read_events(input, attr_size, attrs, size)?;
        if data.0 < FILE_HEADER || data.0 > size {
            return Err(PerfDataError::Truncated { at: size, what: "the header" });
        }
        file.is_unfinished = data.1 == 0;
        if file.is_unfinished {
            return Ok(file);
        }
        let end = data.0.checked_add(data.1).filter(|end| *end <= size);
        let end = end.ok_or(PerfDataError::Truncated { at: size, what: "the data section" })?;
        file.data.1 = end;
        // Descriptions of features follow the data, in the order of their bits.
        let flags: Vec<u64> = words(flags).collect();
        let numbers = (0_u64..256).filter(|bit| flags[(bit / 64) as usize] >> (bit % 64) & 1 == 1);
        for (at, number) in (0_u64..).zip(numbers) {
            let at = end.checked_add(16 * at).ok_or(truncated("the features"))?;
            let place = read(input, (at, 16), size, "the features")?;
            let place = section(&mut Fields(&place)).ok_or(truncated("the features"))?;
            // Large features are of no use here.
            if place.1 <= SECTION_MAX {
                let bytes = read(input, place, size, "a feature")?;
                file.feature(number, &bytes)?;
            }
        }
        Ok(file)
    }

    fn read_events(
        &mut self,
        input: &mut (impl Read + Seek),
        attr_size: u64,
        attrs: Section,
        size: u64,
    ) -> Result<()> {
        let at = attrs.0;
        let usable = attr_size > 16 && attrs.1 % attr_size == 0 && attrs.1 / attr_size <= MAX_EVENTS as u64;
        if !usable {
            return Err(PerfDataError::damaged(16, "the list of events has no whole number of events"));
        }
        let bytes = read(input, attrs, size, "the list of events")?;
        for event in bytes.chunks_exact(attr_size as usize) {
            let (attr, ids) = event.split_at(event.len() - 16);
            let ids = section(&mut Fields(ids)).unwrap_or_default();
            let ids = read(input, ids, size, "the ids of an event")?;
            self.event(attr, &ids, at)?;
        }
        Ok(())
    }

    /// Adds an event with its ids.
    pub(super) fn event(&mut self, attr: &[u8], ids: &[u8], at: u64) -> Result<()> {
        let event = PerfEvent::parse(attr).filter(|_| self.events.len() < MAX_EVENTS);
        let event =
            event.ok_or_else(|| PerfDataError::damaged(at, "an event is too short, or they are too many"))?;
        if event.sample_type & !super::event::bit::KNOWN != 0 {
            return Err(PerfDataError::UnknownFields { event: event.name, bits: event.sample_type });
        }
        for id in words(ids) {
            if self.ids.len() >= MAX_IDS {
                return Err(PerfDataError::damaged(at, "there are too many ids of events"));
            }
            self.ids.insert(id, self.events.len());
        }
        self.events.push(event);
        Ok(())
    }

    /// Takes a `HEADER_ATTR` of a file that came through a pipe.
    pub(super) fn header_attr(&mut self, body: &[u8], at: u64) -> Result<()> {
        let size = Fields(body.get(4..).unwrap_or_default()).u32().unwrap_or_default() as usize;
        let (attr, ids) = body
            .split_at_checked(size)
            .ok_or_else(|| PerfDataError::damaged(at, "an event is longer than its record"))?;
        self.event(attr, ids, at)
    }

    /// Takes the name of an event (`EVENT_UPDATE`).
    pub(super) fn event_update(&mut self, body: &[u8]) {
        const NAME: u64 = 2;
        let mut fields = Fields(body);
        if let (Some(NAME), Some(id)) = (fields.u64(), fields.u64()) {
            self.name_event(id, &String::from_utf8_lossy(fields.text()));
        }
    }

    fn name_event(&mut self, id: u64, name: &str) {
        if let Some(event) = self.ids.get(&id).and_then(|number| self.events.get_mut(*number)) {
            if !name.is_empty() {
                event.name = name.to_owned();
            }
        }
    }

    /// Takes a feature.
    pub(super) fn feature(&mut self, number: u64, bytes: &[u8]) -> Result<()> {
        let mut fields = Fields(bytes);
        match number {
            // Without formats, the events of tracepoints are not read.
            feature::TRACING_DATA => self.formats = TraceDat::perf_formats(bytes).unwrap_or_default(),
            feature::BUILD_ID => self.build_id_list(bytes),
            feature::HOSTNAME => self.hostname = fields.string(),
            feature::OSRELEASE => self.release = fields.string(),
            feature::VERSION => self.perf_version = fields.string(),
            feature::ARCH => self.arch = fields.string(),
            feature::CMDLINE => {
                let count = fields.u32().unwrap_or_default().min(4096);
                let words: Vec<String> = (0..count).map_while(|_| fields.string()).collect();
                self.command = Some(words.join(" "));
            }
            // The number of online CPUs is the second one, whatever the documentation says.
            feature::NRCPUS => self.cpus_online = fields.u32().and_then(|_| fields.u32()),
            feature::EVENT_DESC => self.event_desc(fields),
            feature::STAT => return Err(PerfDataError::Stat),
            feature::DIR_FORMAT => return Err(PerfDataError::Directory),
            _ => {}
        }
        Ok(())
    }

    fn event_desc(&mut self, mut fields: Fields) {
        let (Some(count), Some(size)) = (fields.u32(), fields.u32()) else { return };
        for number in 0..count.min(MAX_EVENTS as u32) as usize {
            let parts = (|| {
                fields.take(size as usize)?;
                let ids = fields.u32()?;
                Some((fields.string()?, fields.words(ids.into())?))
            })();
            let Some((name, ids)) = parts else { return };
            match words(ids).next() {
                Some(id) => self.name_event(id, &name),
                // Without ids there is one event.
                None => {
                    if let Some(event) = self.events.get_mut(number).filter(|_| !name.is_empty()) {
                        event.name = name;
                    }
                }
            }
        }
    }

    fn build_id_list(&mut self, mut bytes: &[u8]) {
        while let Some(header) = bytes.first_chunk::<8>() {
            let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
            let misc = u16::from_le_bytes([header[4], header[5]]);
            let Some(body) = bytes.get(8..size) else { return };
            self.build_id(misc, body);
            bytes = &bytes[size..];
        }
    }

    /// Takes a `struct build_id_event` without its header.
    pub(super) fn build_id(&mut self, misc: u16, body: &[u8]) {
        const HAS_SIZE: u16 = 1 << 15;
        let mut fields = Fields(body);
        let (Some(_), Some(id)) = (fields.u32(), fields.take(24)) else { return };
        let length = if misc & HAS_SIZE != 0 { usize::from(id[20]) } else { 20 };
        self.known_build_id(misc & 7 == 1, fields.text(), id.get(..length).unwrap_or(&id[..20]));
    }

    /// Adds a build id, if the file has none yet.
    pub(super) fn known_build_id(&mut self, is_kernel: bool, path: &[u8], id: &[u8]) {
        if id.iter().all(|byte| *byte == 0) || self.build_ids.len() >= MAX_BUILD_IDS {
            return;
        }
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = String::from_utf8_lossy(path).into_owned();
        if is_kernel && is_kernel_path(&path) {
            self.kernel_build_id.get_or_insert_with(|| id.clone());
        }
        self.build_ids.push(FileBuildId { path, id });
    }

    /// Takes the place of the kernel's image from a mapping.
    pub(super) fn kernel_map(&mut self, path: &[u8], address: u64) {
        let path = String::from_utf8_lossy(path);
        if let Some(symbol) = path.strip_prefix("[kernel.kallsyms]").filter(|symbol| !symbol.is_empty()) {
            self.kernel_place.get_or_insert_with(|| KernelPlace { symbol: symbol.to_owned(), address });
        }
    }

    /// Returns the event of a sample; `None` if its id is not one of the file's.
    pub(super) fn event_of(&self, body: &[u8]) -> Option<usize> {
        if self.events.len() == 1 {
            return Some(0);
        }
        let at = self.events.first()?.id_offset()?;
        let id = u64::from_le_bytes(*body.get(at..)?.first_chunk()?);
        self.ids.get(&id).copied()
    }

    /// Checks that samples of several events can be distinguished.
    pub(super) fn check_events(&self) -> Result<()> {
        let Some(first) = self.events.first() else { return Err(PerfDataError::NoEvents) };
        let same = self.events.iter().all(|event| event.id_offset() == first.id_offset());
        match self.events.len() > 1 && (!same || first.id_offset().is_none()) {
            true => Err(PerfDataError::MixedEvents),
            false => Ok(()),
        }
    }
}

/// Returns true for the names under which perf records the kernel's image.
fn is_kernel_path(path: &str) -> bool {
    path.starts_with("[kernel.kallsyms]") || path.ends_with("/vmlinux") || path.contains("/vmlinux-")
}

fn read(input: &mut (impl Read + Seek), place: Section, size: u64, what: &'static str) -> Result<Vec<u8>> {
    let (at, length) = place;
    if at.checked_add(length).is_none_or(|end| end > size) {
        return Err(PerfDataError::Truncated { at: size, what });
    }
    if length > SECTION_MAX {
        return Err(PerfDataError::damaged(
            at,
            format!("{what}: it has {length} bytes, {SECTION_MAX} are allowed"),
        ));
    }
    input.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}
