//! What can go wrong with an analysis.

use kerntune_trace::Recording;
use kerntune_work::is_out_of_memory;

/// What can go wrong with an analysis. Damage is worked around only where that is asked for: a
/// profile of a part of a trace looks like one of all of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace could not be read.
    #[error("cannot read the trace: {0}")]
    Read(#[from] std::io::Error),
    /// The trace's own header is wrong.
    #[error("{0}")]
    Header(kerntune_trace::Error),
    /// A chunk holds bytes that are none of the format's.
    #[error("the trace is damaged in chunk {chunk}: {source}; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Format {
        /// The chunk's number, from 0.
        chunk: usize,
        /// What the bytes hold instead, and where in the chunk.
        source: kerntune_trace::Error,
    },
    /// A chunk cannot be decompressed.
    #[error("the trace is damaged in chunk {chunk}: {source}; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Decompress {
        /// The chunk's number, from 0.
        chunk: usize,
        /// The decompressor's reason.
        source: std::io::Error,
    },
    /// Memory ran out while a chunk was decompressed.
    #[error("there is not enough memory to read chunk {chunk} of the trace ({source}); the trace is not to blame: give the command more memory and run it again")]
    Memory {
        /// The chunk's number, from 0.
        chunk: usize,
        /// The decompressor's reason.
        source: std::io::Error,
    },
    /// A chunk holds something else than its header says.
    #[error("the trace is damaged in chunk {chunk}: it has {found} {what}, its header says {expected}; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Contents {
        /// The chunk's number, from 0.
        chunk: usize,
        /// What is counted: "bytes" or "events".
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many the header says.
        expected: u64,
    },
    /// The trace ends early.
    #[error("the trace ends after {found} of {expected} chunks; record again, or keep the rest: `kerntune profile rebuild PROFILE --partial`")]
    Truncated {
        /// Whole chunks that are there.
        found: usize,
        /// Chunks that the recording lists.
        expected: usize,
    },
    /// The trace is not the one that the recording describes.
    #[error(
        "chunk {chunk} of the trace is not the one that the recording describes ({what} is {found}, not \
         {expected}): their files are not of one run; record again"
    )]
    Mixed {
        /// The chunk's number, from 0.
        chunk: usize,
        /// The value in its header that differs.
        what: &'static str,
        /// That value in the trace; nanoseconds for times.
        found: u64,
        /// The recording's value.
        expected: u64,
    },
    /// An event refers to something that the recording does not know.
    #[error(
        "the trace names {what} {number} in chunk {chunk}, of which the recording has {known}: their files \
         are not of one run; record again"
    )]
    Unknown {
        /// The chunk's number, from 0.
        chunk: usize,
        /// What the event refers to: "thread", "function", "region" or "point".
        what: &'static str,
        /// Its number, from 0.
        number: u32,
        /// How many of these there are.
        known: usize,
    },
    /// Frames without end.
    #[error("a stack in chunk {chunk} of the trace has more than {limit} frames: no kernel stack has; record again")]
    Depth {
        /// The chunk's number, from 0.
        chunk: usize,
        /// The most frames that a stack may have.
        limit: usize,
    },
    /// More time than 64 bits hold.
    #[error("the times in chunk {chunk} of the trace add up to more than 2^63 ns; record again")]
    Time {
        /// The number, from 0, of the chunk in which the sum becomes too large.
        chunk: usize,
    },
    /// A call is not where it was found before.
    #[error("a call that begins in chunk {chunk} of the trace is not there when it is read again: something writes to the trace; run it again when that has ended")]
    Changed {
        /// The chunk's number, from 0.
        chunk: usize,
    },
    /// A chunk's error, with the time that the chunk covers.
    #[error("{source} (chunk {chunk} covers the virtual time from {begin_ns} to {end_ns} ns)")]
    InTime {
        /// The chunk's number, from 0.
        chunk: usize,
        /// Virtual time at which the chunk begins, in nanoseconds.
        begin_ns: u64,
        /// Virtual time at which the chunk ends, in nanoseconds.
        end_ns: u64,
        /// What is wrong with the chunk.
        source: Box<Error>,
    },
    /// Sums that hold by construction do not.
    #[error(
        "the net times of {what} in region {region} sum to {sum} ns instead of {busy} ns: this is a bug of \
         kerntune, the profile was not written; please report it"
    )]
    Unbalanced {
        /// The region's number.
        region: u32,
        /// Whose times were added up: "functions", "threads" or "paths".
        what: &'static str,
        /// Their sum, in nanoseconds.
        sum: u64,
        /// The time that the region was busy, in nanoseconds.
        busy: u64,
    },
    /// More functions than an arc has room for.
    #[error("the kernel has {0} functions, more than the 2^29 that can be told apart")]
    TooManyFunctions(usize),
    /// The progress callback said so.
    #[error("the analysis was stopped")]
    Stopped,
}

impl Error {
    /// True if the trace is at fault, and not the memory or the disk that it is read with.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Memory { .. } => false,
            Self::Read(source) => !is_out_of_memory(source),
            _ => true,
        }
    }

    /// Says which time is concerned.
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
