//! Interface between the recorder and its readers, and the only code that both sides share.
//!
//! - [`mark`]: marks by which a program in the guest delimits regions.
//! - [`RecorderSpec`]: the recorder's input, as JSON, written by the machine before the run.
//! - [`Event`], [`encode`], [`EventDecoder`]: the ordered events of a run, in chunks
//!   ([`ChunkHeader`]).
//! - [`Recording`]: the recorder's summary after the run, as JSON. With it come [`counts`] for the
//!   executed blocks and edges, [`data`] for accesses to memory, [`io`] for requests to block
//!   devices and network packets, [`loaded`] for code that the kernel loaded, and [`stream`] for
//!   every instruction of a part of the run.
//! - [`TagLayout`]: records of event tags of McRae's profiler.
//!
//! Time is the guest's virtual time in nanoseconds. Under `-icount shift=0` one guest instruction
//! takes one nanosecond. Idle time is a jump of virtual time, which the recorder reads from the
//! guest's own `rdtsc`. Several CPUs take turns on one clock ([`Event::Cpu`]), and the clock is
//! idle when all of them are. An event therefore carries the number of instructions since the
//! previous event, and only [`Event::Idle`] adds time of its own.
//!
//! ```
//! use kerntune_trace::{encode, EnterKind, Event, EventDecoder};
//! let mut bytes = Vec::new();
//! encode::event(&mut bytes, 7, Event::Enter { function: 300, how: EnterKind::Call });
//! encode::event(&mut bytes, 12, Event::Exit);
//! let mut decoder = EventDecoder::new(&bytes);
//! assert_eq!(decoder.next().unwrap(), Some((7, Event::Enter { function: 300, how: EnterKind::Call })));
//! assert_eq!(decoder.next().unwrap(), Some((12, Event::Exit)));
//! assert_eq!(decoder.next().unwrap(), None);
//! ```

mod chunk;
pub mod counts;
pub mod data;
pub mod encode;
mod event;
mod file;
pub mod io;
pub mod loaded;
pub mod mark;
mod numbers;
pub mod pattern;
mod progress;
mod recording;
mod spec;
pub mod stream;
mod tags;

pub use chunk::{
    ChunkHeader, ChunkState, OpenStack, TraceHeader, WaitingCpu, CHUNK_HEADER_BYTES, TRACE_HEADER_BYTES,
};
pub use event::{EnterKind, Event, EventDecoder, EventWeights, Waker};
pub use file::TraceFileWriter;
pub use progress::RunProgress;
pub use recording::{
    ChunkIndex, CpuCounters, CpuFrontEnd, ModeCounters, ModelEventCount, RecordedRegion, RecordedThread,
    Recording, RecordingHealth,
};
pub use spec::{
    page_hash, BinarySpec, CaptureSpec, FunctionKind, FunctionSpec, PageSpec, ProbeKind, RecorderSpec,
    TagSource, TagWindow, TaskOffsets,
};
pub use tags::{TagLayout, MAX_TAG_BITS, MAX_TAG_RECORD, MIN_TAG_BITS};

/// Version of all formats in this crate. The recorder and its reader must have the same one.
pub const VERSION: u32 = 4;

/// Exit status with which the recorder ends QEMU after a failure. The message is on QEMU's standard
/// error.
pub const RECORDER_FAILED: i32 = 97;

/// Names of the files in a recording's directory.
pub mod files {
    /// [`super::Recording`] as JSON. Written last: a directory without this file is not a
    /// recording.
    pub const RECORDING: &str = "recording.json";
    /// [`super::RunProgress`] of a run that is going on; removed after it.
    pub const PROGRESS: &str = "progress";
    /// Chunks of events.
    pub const TRACE: &str = "trace.kt";
    /// Execution counts of blocks and edges, see [`super::counts`].
    pub const COUNTS: &str = "counts.kt";
    /// Results of the data cache model as JSON, see [`super::data`].
    pub const DATA: &str = "data.json";
    /// Requests and packets as JSON, see [`super::io`]. Present only if they were recorded.
    pub const IO: &str = "io.json";
    /// [`super::loaded::LoadedCode`] as JSON. Present only if code was loaded.
    pub const LOADED: &str = "loaded.json";
    /// Event tags of McRae's profiler: records of a [`super::TagLayout`], least significant bytes
    /// first.
    pub const TAGS: &str = "tags.mcrae";
    /// Instruction stream of a part of the run, see [`super::stream`]. Present only if it was
    /// requested.
    pub const STREAM: &str = "instructions.kt";
    /// [`super::RecorderSpec`] as JSON, the recorder's input.
    pub const SPEC: &str = "spec.json";
}

/// Errors of reading a file of this crate's formats.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("the {what} ends in the middle, at byte {at}")]
    Truncated { what: &'static str, at: usize },
    #[error("the {what} holds {found} at byte {at}, which this format does not have")]
    Invalid { what: &'static str, found: u64, at: usize },
    #[error("this is not a kerntune {what} (its first bytes are {found:02x?})")]
    Magic { what: &'static str, found: [u8; 8] },
    #[error("the {what} is of format version {found}, this kerntune reads {VERSION}; record again")]
    Version { what: &'static str, found: u32 },
}

/// Checks that a file is of this [`VERSION`], and returns it.
fn check_version(what: &'static str, found: u32) -> Result<u32, Error> {
    match found {
        VERSION => Ok(VERSION),
        found => Err(Error::Version { what, found }),
    }
}
