//! Errors of an analysis.

use kerntune_trace::Recording;
use kerntune_work::is_out_of_memory;

/// Error of an analysis. Damage is an error unless a partial result was requested, because a
/// profile of a part of a trace looks like one of the whole trace.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("cannot read the trace: {0}")]
    Read(#[from] std::io::Error),
    #[error("{0}")]
    Header(kerntune_trace::Error),
    #[error("the trace is damaged in chunk {chunk}: {source}; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Format { chunk: usize, source: kerntune_trace::Error },
    #[error("the trace is damaged in chunk {chunk}: {source}; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Decompress { chunk: usize, source: std::io::Error },
    #[error("there is not enough memory to read chunk {chunk} of the trace ({source}); the trace is intact: give the command more memory and run it again")]
    Memory { chunk: usize, source: std::io::Error },
    #[error("the trace is damaged in chunk {chunk}: it has {found} {what}, its header says {expected}; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Contents { chunk: usize, what: &'static str, found: u64, expected: u64 },
    #[error("the trace ends after {found} of {expected} chunks; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Truncated { found: usize, expected: usize },
    #[error(
        "chunk {chunk} of the trace is not the one that the recording describes ({what} is {found}, not \
         {expected}): their files are not of one run; record again"
    )]
    Mixed { chunk: usize, what: &'static str, found: u64, expected: u64 },
    #[error(
        "the trace names {what} {number} in chunk {chunk}, of which the recording has {known}: their files \
         are not of one run; record again"
    )]
    Unknown { chunk: usize, what: &'static str, number: u32, known: usize },
    #[error("a stack in chunk {chunk} of the trace has more than {limit} frames: no kernel stack has; record again")]
    Depth { chunk: usize, limit: usize },
    #[error("the times in chunk {chunk} of the trace add up to more than 2^63 ns; record again")]
    Time { chunk: usize },
    #[error("a call that begins in chunk {chunk} of the trace was not found when it was read again: another program writes to the trace; run the command again when that program has ended")]
    Changed { chunk: usize },
    #[error("{source} (chunk {chunk} covers the virtual time from {begin_ns} to {end_ns} ns)")]
    InTime { chunk: usize, begin_ns: u64, end_ns: u64, source: Box<Error> },
    #[error(
        "internal error: the self times of {what} in region {region} sum to {sum} ticks instead of {busy}; the \
         profile was not written; please report this"
    )]
    Unbalanced { region: u32, what: &'static str, sum: u64, busy: u64 },
    #[error("the kernel has {0} functions, more than the limit of 2^29")]
    TooManyFunctions(usize),
    #[error("the analysis was stopped")]
    Stopped,
}

impl Error {
    /// Checks whether the trace is at fault, as opposed to memory or disk.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Memory { .. } => false,
            Self::Read(source) => !is_out_of_memory(source),
            _ => true,
        }
    }

    /// Adds the time range of the chunk to the message.
    pub(crate) fn in_time(self, recording: &Recording, chunk: usize) -> Self {
        match recording.chunks.get(chunk) {
            Some(index) => {
                let (begin_ns, end_ns) = (index.begin_ns, index.end_ns);
                Self::InTime { chunk, begin_ns, end_ns, source: Box::new(self) }
            }
            None => self,
        }
    }
}
