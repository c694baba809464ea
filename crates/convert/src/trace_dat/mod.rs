//! `trace.dat` of trace-cmd, versions 6 and 7: ftrace's ring buffers with the formats of their
//! events.
//!
//! The format follows trace-cmd's `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` and `v7.5.txt`,
//! that of the ring buffer's pages the kernel's `include/linux/ring_buffer.h` and its
//! `events/header_page`. Files of either byte order and word size are read, also compressed ones
//! (version 7, zstd or zlib). [`TraceDat::open`] reads the description of a trace,
//! [`TraceDat::events`] its events in order of time, and [`import()`] makes a profile's tables of
//! them. Memory does not grow with the length of a trace.

mod bytes;
mod cpu;
mod format;
mod header;
mod import;
mod sections;
mod symbols;
#[cfg(test)]
mod tests;

pub use cpu::{EventStream, LostEvents, TraceEvent};
pub use format::{EventField, EventFormat};
pub use header::{CpuData, TraceBuffer, TraceDat};
pub use import::{import, TraceImport, TraceNames};

/// First bytes of a file.
pub const MAGIC: [u8; 10] = *b"\x17\x08\x44tracing";

/// Reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum TraceDatError {
    #[error("not a trace.dat: it does not begin with the bytes 17 08 44 and \"tracing\"")]
    NotTraceDat,
    #[error(
        "a trace.dat of version {0}; kerntune reads 6 and 7: convert it with `trace-cmd convert --file-version 7`"
    )]
    Version(String),
    #[error(
        "truncated: {what} needs bytes {from} to {to}, and the file ends at {size}; copy the file again"
    )]
    Truncated { what: &'static str, from: u64, to: u64, size: u64 },
    #[error("damaged at byte {at}: {what}")]
    Damaged { at: u64, what: String },
    #[error("compressed with {0}, which kerntune does not read: `trace-cmd convert --compression none` writes it without")]
    Compression(String),
    #[error(
        "it has the text of a latency tracer, not events: `trace-cmd report` prints it; record a tracer like \
         function_graph, or events, for a profile"
    )]
    Latency,
    #[error("it has no events")]
    Empty,
    #[error(
        "none of its {events} events is one that kerntune makes a profile of ({names}); record with -p function, \
         -p function_graph, -e sched, -e irq, -e syscalls or -e raw_syscalls"
    )]
    NothingUsed { events: u64, names: String },
    #[error(
        "its clock `{0}` does not count time; record with `trace-cmd record -C local`, which is the default"
    )]
    Clock(String),
    #[error("it has events of more than {0} threads, more than a profile has room for")]
    Threads(usize),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Result with [`TraceDatError`].
type Result<T, E = TraceDatError> = std::result::Result<T, E>;
