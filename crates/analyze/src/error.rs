//! What can go wrong with an analysis.

/// What can go wrong with an analysis. Damage is never worked around: a profile of a part of a
/// trace would look like one of all of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace could not be read.
    #[error("cannot read the trace: {0}")]
    Read(#[from] std::io::Error),
    /// The trace's own header is wrong.
    #[error("{0}")]
    Header(kerntune_trace::Error),
    /// A chunk holds bytes that are none of the format's.
    #[error("the trace is damaged in chunk {chunk}: {source}; record again")]
    Format { chunk: usize, source: kerntune_trace::Error },
    /// A chunk cannot be decompressed.
    #[error("the trace is damaged in chunk {chunk}: {source}; record again")]
    Decompress { chunk: usize, source: std::io::Error },
    /// A chunk holds something else than its header says.
    #[error("the trace is damaged in chunk {chunk}: it has {found} {what}, its header says {expected}; record again")]
    Contents { chunk: usize, what: &'static str, found: u64, expected: u64 },
    /// The trace ends early.
    #[error("the trace ends after {found} of {expected} chunks; record again")]
    Truncated { found: usize, expected: usize },
    /// The trace is not the one that the recording describes.
    #[error(
        "chunk {chunk} of the trace is not the one that the recording describes ({what} is {found}, not \
         {expected}): their files are not of one run; record again"
    )]
    Mixed { chunk: usize, what: &'static str, found: u64, expected: u64 },
    /// An event refers to something that the recording does not know.
    #[error(
        "the trace names {what} {number} in chunk {chunk}, of which the recording has {known}: their files \
         are not of one run; record again"
    )]
    Unknown { chunk: usize, what: &'static str, number: u32, known: usize },
    /// Frames without end.
    #[error("a stack in chunk {chunk} of the trace has more than {limit} frames: no kernel stack has; record again")]
    Depth { chunk: usize, limit: usize },
    /// More time than 64 bits hold.
    #[error("the times in chunk {chunk} of the trace add up to more than 2^63 ns; record again")]
    Time { chunk: usize },
    /// Events of several virtual CPUs.
    #[error("chunk {chunk} of the trace is of virtual CPU {vcpu}; this kerntune analyses one CPU: record on a machine with one")]
    SeveralCpus { chunk: usize, vcpu: u32 },
    /// More functions than an arc has room for.
    #[error("the kernel has {0} functions, more than the 2^29 that can be told apart")]
    TooManyFunctions(usize),
    /// The progress callback said so.
    #[error("the analysis was stopped")]
    Stopped,
}
