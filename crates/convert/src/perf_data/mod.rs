//! `perf.data` (in): what `perf record` writes, in a file or through a pipe.
//!
//! [`PerfData::open`] reads header, events and features, and [`PerfData::read`] passes the records on
//! one by one, in the order of their times. Memory is bounded: records of at most a few rounds of
//! perf's wait, however large the file. Compressed records (`perf record -z`) are unpacked. The
//! formats are those of `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`.
//!
//! Contents of hardware tracing (`AUXTRACE`), registers and copies of user
//! stacks are skipped; [`PerfSample`] tells how much that was. Files of big-endian machines, of
//! `perf stat` and of `perf record --threads` are refused by name.
//!
//! ```no_run
//! use kerntune_convert::perf_data::{PerfData, PerfRecord};
//! let mut data = PerfData::open(std::fs::File::open("perf.data")?)?;
//! let mut samples = 0;
//! data.read(|_, record| {
//!     samples += u64::from(matches!(record, PerfRecord::Sample(_)));
//!     Ok(())
//! })?;
//! # Ok::<(), kerntune_convert::perf_data::PerfDataError>(())
//! ```
//!
//! The rings of a running kernel have the same records: [`PerfSample::read`] and
//! [`PerfRecord::parse`] read one.

mod branches;
mod event;
mod fields;
mod file;
mod kind;
mod order;
mod record;
mod sample;
mod stream;
#[cfg(test)]
mod tests;
mod walk;
mod write;

pub use branches::read_branches;
pub use event::{EventKind, PerfEvent};
pub use file::{FileBuildId, KernelPlace, PerfFile};
pub use record::{MapRecord, PerfRecord};
pub use sample::{BranchRecord, CpuMode, PerfSample};
pub use walk::{BranchWalk, InstructionDraw, OverflowingCounts};
pub use write::{PerfDataWriter, PerfPipeWriter, WrittenBranch, WrittenMachine};

use fields::Fields;
use order::TimeOrder;
use std::io::{self, Read, Seek, SeekFrom};
use stream::{RawRecord, RecordStream};

/// Reasons why a file cannot be read.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum PerfDataError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("not a perf.data file: it begins with the bytes {found}, not with PERFILE2")]
    NotPerfData { found: String },
    #[error("it is of a big-endian machine, and kerntune knows little-endian kernels only")]
    BigEndian,
    #[error("it has the first version of the format (PERFFILE), which perf has not written since Linux 3.2")]
    FirstVersion,
    #[error("it has counts of `perf stat record` and no samples: record it with `perf record`")]
    Stat,
    #[error(
        "it is part of a directory of `perf record --threads`, whose samples are in other files: record without --threads"
    )]
    Directory,
    #[error("truncated at byte {at}, within {what}: copy the whole file, or record it again")]
    Truncated { at: u64, what: &'static str },
    #[error("damaged at byte {at}: {what}; copy the file again, or record it again")]
    Damaged { at: u64, what: String },
    #[error("damaged at byte {at}: its compressed data cannot be unpacked ({error}); copy the file again")]
    Zstd { at: u64, error: io::Error },
    #[error(
        "the samples of its event {event} have fields that kerntune does not know (sample_type {bits:#x}): record it with \
         fewer options, or import what `perf script` prints"
    )]
    UnknownFields { event: String, bits: u64 },
    #[error("it describes no event: the header is damaged, or perf was killed before it wrote anything")]
    NoEvents,
    #[error(
        "its events record different fields and no identifier, so that its samples cannot be told apart"
    )]
    MixedEvents,
    #[error("{0}")]
    Unusable(String),
}

/// Result with this module's [`PerfDataError`].
pub type Result<T, E = PerfDataError> = std::result::Result<T, E>;

impl PerfDataError {
    fn damaged(at: u64, what: impl Into<String>) -> Self {
        Self::Damaged { at, what: what.into() }
    }
}

/// An open perf.data file.
#[derive(Debug)]
pub struct PerfData<R> {
    input: R,
    /// Header of the file: everything apart from records.
    pub file: PerfFile,
}

impl<R: Read + Seek> PerfData<R> {
    /// Reads the header, the events and the features, and looks for the place of the kernel. Where
    /// these follow the records, because the file came through a pipe, all records are passed over once.
    ///
    /// # Errors
    /// A file that is no perf.data, of another byte order, damaged, or without an event.
    pub fn open(mut input: R) -> Result<Self> {
        let mut file = PerfFile::open(&mut input)?;
        scan(&mut input, &mut file)?;
        file.check_events()?;
        Ok(Self { input, file })
    }

    /// Passes all records to `to` in the order of time; those without a time at once. Records of a
    /// file that came through a pipe and describe events are not passed on. Stops at the first error
    /// of `to`.
    ///
    /// # Errors
    /// I/O, damaged records, and those of `to`.
    pub fn read(&mut self, mut to: impl FnMut(&PerfFile, PerfRecord<'_>) -> Result<()>) -> Result<()> {
        let (file, data) = (&self.file, self.file.data);
        self.input.seek(SeekFrom::Start(data.0))?;
        let mut stream = RecordStream::new(&mut self.input, data.0, data.1);
        let (mut order, mut sample) = (TimeOrder::default(), PerfSample::default());
        let mut give = |(kind, misc, body): (u32, u16, &[u8])| -> Result<()> {
            let damaged =
                || PerfDataError::Unusable(format!("a record of type {kind} is too short for its fields"));
            if kind == kind::SAMPLE {
                let number = file.event_of(body).ok_or_else(|| {
                    PerfDataError::Unusable("a sample has an id that is of none of the file's events".into())
                })?;
                sample.parse(number, &file.events[number], misc, body).ok_or_else(damaged)?;
                return to(file, PerfRecord::Sample(&sample));
            }
            to(file, PerfRecord::parse(kind, misc, body).ok_or_else(damaged)?)
        };
        while let Some(RawRecord { kind, misc, body, at }) = stream.next(true)? {
            match kind {
                kind::FINISHED_ROUND => order.round(&mut give)?,
                kind::HEADER_TRACING_DATA | kind::AUXTRACE => {
                    let size = trailing(kind, body)
                        .ok_or_else(|| PerfDataError::damaged(at, "a record has no size of its data"))?;
                    let aux = if kind == kind::AUXTRACE { size } else { 0 };
                    stream.skip(size)?;
                    if aux > 0 {
                        to_aux(&mut give, aux)?;
                    }
                }
                kind::FIRST_OF_PERF.. => {}
                _ => {
                    let event = match kind {
                        kind::SAMPLE => file.event_of(body).and_then(|number| file.events.get(number)),
                        _ => file.events.first(),
                    };
                    match event.and_then(|event| event.time_of(kind, body)) {
                        None | Some(0 | u64::MAX) => give((kind, misc, body))?,
                        Some(time) => order.push(time, kind, misc, body),
                    }
                    if order.is_full() {
                        order.half(&mut give)?;
                    }
                }
            }
        }
        order.all(&mut give)
    }
}

/// Passes on the size of AUX data as if it were a record of the kernel.
fn to_aux(give: &mut impl FnMut((u32, u16, &[u8])) -> Result<()>, size: u64) -> Result<()> {
    let mut body = [0; 24];
    body[8..16].copy_from_slice(&size.to_le_bytes());
    give((kind::AUX, 0, &body))
}

/// Returns the size of the data behind a record, in bytes.
fn trailing(kind: u32, body: &[u8]) -> Option<u64> {
    match kind {
        kind::HEADER_TRACING_DATA => Some(u64::from(Fields(body).u32()?).next_multiple_of(8)),
        _ => Fields(body).u64(),
    }
}

/// Reads what describes the file from its records: all of them of a pipe, else up to the first
/// sample that follows the place of the kernel.
fn scan(input: &mut (impl Read + Seek), file: &mut PerfFile) -> Result<()> {
    input.seek(SeekFrom::Start(file.data.0))?;
    let mut stream = RecordStream::new(input, file.data.0, file.data.1);
    while let Some(RawRecord { kind, misc, body, at }) = stream.next(false)? {
        match kind {
            kind::HEADER_ATTR => file.header_attr(body, at)?,
            kind::EVENT_UPDATE => file.event_update(body),
            kind::HEADER_BUILD_ID => file.build_id(misc, body),
            kind::HEADER_FEATURE => {
                if let Some((number, data)) = body.split_first_chunk::<8>() {
                    file.feature(u64::from_le_bytes(*number), data)?;
                }
            }
            kind::MMAP | kind::MMAP2 => {
                if let Some(PerfRecord::Map(map)) = PerfRecord::parse(kind, misc, body) {
                    if map.is_kernel {
                        file.kernel_map(map.path, map.offset);
                    }
                    if let Some(id) = map.build_id {
                        file.known_build_id(map.is_kernel, map.path, id);
                    }
                }
            }
            kind::HEADER_TRACING_DATA | kind::AUXTRACE => {
                let size = trailing(kind, body)
                    .ok_or_else(|| PerfDataError::damaged(at, "a record has no size of its data"))?;
                stream.skip(size)?;
            }
            kind::SAMPLE | kind::COMPRESSED | kind::COMPRESSED2
                if !file.is_pipe
                    && (file.kernel_place.is_some() || file.events.iter().all(|e| e.excludes_kernel)) =>
            {
                break
            }
            _ => {}
        }
    }
    Ok(())
}
