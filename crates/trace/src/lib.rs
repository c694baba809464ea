//! What the recorder and its readers agree on, and the only thing that both sides share.
//!
//! - [`mark`]: how a program in the guest tells the recorder where it is.
//! - [`RecorderSpec`]: what the machine asks of the recorder (JSON, before the run).
//! - [`Event`], [`encode`], [`Decoder`]: the ordered events of a run, in chunks ([`ChunkHeader`]).
//! - [`Recording`]: what the recorder says of the run when it is over (JSON), with
//!   [`counts`] for the executed blocks and edges, [`data`] for accesses to memory, [`io`] for requests to block devices
//!   and network packets, and [`stream`] for every instruction of a part of the run.
//!
//! Time is the guest's virtual time in nanoseconds. Under `-icount shift=0` one guest
//! instruction is one nanosecond; idle time is a jump of virtual time that the recorder reads
//! from the guest's own `rdtsc`. Several CPUs take turns on that one clock ([`Event::Cpu`]), and it is
//! idle when all are. An event therefore carries the number of instructions since the
//! event before it, and only [`Event::Idle`] adds time of its own.
//!
//! ```
//! use kerntune_trace::{Decoder, Event, How, encode};
//! let mut bytes = Vec::new();
//! encode::event(&mut bytes, 7, Event::Enter { function: 300, how: How::Call });
//! encode::event(&mut bytes, 12, Event::Exit);
//! let mut decoder = Decoder::new(&bytes);
//! assert_eq!(decoder.next().unwrap(), Some((7, Event::Enter { function: 300, how: How::Call })));
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
pub mod mark;
mod numbers;
mod recording;
mod spec;
pub mod stream;

pub use chunk::{
    ChunkHeader, ChunkState, OpenStack, TraceHeader, WaitingCpu, CHUNK_HEADER_BYTES, TRACE_HEADER_BYTES,
};
pub use event::{Decoder, Event, How, Waker, Weights};
pub use file::TraceFileWriter;
pub use recording::{
    ChunkIndex, CpuCounters, CpuFrontEnd, Health, ModeCounters, ModelEventCount, Recording, Region, Thread,
};
pub use spec::{
    page_hash, BinarySpec, Capture, FunctionKind, FunctionSpec, PageSpec, Probe, RecorderSpec, TagWindow,
    TaskOffsets,
};

/// Version of everything in this crate; the recorder and the reader must be of the same one.
pub const VERSION: u32 = 4;

/// Exit status with which the recorder ends QEMU when it cannot go on (its message is on
/// QEMU's error output).
pub const RECORDER_FAILED: i32 = 97;

/// Names of the files in a recording's directory.
pub mod files {
    /// [`super::Recording`] as JSON; written last, so a directory without it is not a recording.
    pub const RECORDING: &str = "recording.json";
    /// The chunks of events.
    pub const TRACE: &str = "trace.kt";
    /// Blocks and edges, see [`super::counts`].
    pub const COUNTS: &str = "counts.kt";
    /// What accesses to data missed, see [`super::data`], as JSON.
    pub const DATA: &str = "data.json";
    /// Requests to block devices and network packets, see [`super::io`], as JSON; only where they were to be seen.
    pub const IO: &str = "io.json";
    /// Event tags of McRae's profiler: records of 5 bytes, a 16-bit tag and 24-bit microseconds, both
    /// little endian.
    pub const TAGS: &str = "tags.mcrae";
    /// Every instruction of a part of the run, see [`super::stream`]; only where it was asked for.
    pub const STREAM: &str = "instructions.kt";
    /// [`super::RecorderSpec`] as JSON, the recorder's input.
    pub const SPEC: &str = "spec.json";
}

/// Bytes that are not what they should be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The bytes end too early.
    #[error("the {what} ends in the middle, at byte {at}")]
    Truncated {
        /// What was read: a file or a part of it.
        what: &'static str,
        /// Bytes from the beginning of what was read.
        at: usize,
    },
    /// A value that the format does not have.
    #[error("the {what} holds {found} at byte {at}, which this format does not have")]
    Invalid {
        /// What was read: a file or a part of it.
        what: &'static str,
        /// The value.
        found: u64,
        /// Bytes from the beginning of what was read.
        at: usize,
    },
    /// Not a file of this kind at all.
    #[error("this is not a kerntune {what} (its first bytes are {found:02x?})")]
    Magic {
        /// The kind of file that was expected.
        what: &'static str,
        /// The first bytes of the file.
        found: [u8; 8],
    },
    /// Another version's file.
    #[error("the {what} is of format version {found}, this kerntune reads {VERSION}; record again")]
    Version {
        /// The kind of file.
        what: &'static str,
        /// The version that stands in it.
        found: u32,
    },
}
