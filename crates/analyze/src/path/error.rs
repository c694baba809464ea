//! What can go wrong with a path.

use std::ops::RangeInclusive;

/// What can go wrong with a path.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// A chunk that is needed cannot be read.
    #[error("{0}")]
    Trace(#[from] crate::Error),
    /// The recording has no functions at all.
    #[error("the recording has no function calls: record with functions to see paths")]
    NoFunctions,
    /// No region at all, so no operation either.
    #[error("the recording has no regions: choose a call or a window of time")]
    NoRegions,
    /// No region of that name.
    #[error("the recording has no region \"{name}\"; it has {known}")]
    NoRegion {
        /// The name that was asked for.
        name: String,
        /// Names of the regions that there are.
        known: String,
    },
    /// No thread with that pid or name.
    #[error("the recording has no thread \"{name}\"; it has {known}")]
    NoThread {
        /// The pid or name that was asked for.
        name: String,
        /// Names and pids of the threads that there are.
        known: String,
    },
    /// The window ends before it begins.
    #[error("the window ends ({end} ns) before it begins ({begin} ns)")]
    Backwards {
        /// Virtual time at which the window begins, in nanoseconds.
        begin: u64,
        /// Virtual time at which it ends, in nanoseconds.
        end: u64,
    },
    /// Nothing was recorded then.
    #[error(
        "nothing was recorded from {begin} ns to {end} ns; the recording covers {first} ns to {last} ns"
    )]
    Outside {
        /// Virtual time at which the window begins, in nanoseconds.
        begin: u64,
        /// Virtual time at which it ends, in nanoseconds.
        end: u64,
        /// Virtual time at which the recording begins, in nanoseconds.
        first: u64,
        /// Virtual time at which the recording ends, in nanoseconds.
        last: u64,
    },
    /// No such call begins at that time.
    #[error("no such call begins at {at} ns in the trace: the profile is of another run, or the thread of another call")]
    NoCall {
        /// The virtual time, in nanoseconds.
        at: u64,
    },
    /// A call begins there, but not the one that was described.
    #[error(
        "the call that begins at {at} ns took {found} ns, not {} to {}: trace and profile are not of one run",
        expected.start(), expected.end()
    )]
    AnotherCall {
        /// Virtual time at which the call begins, in nanoseconds.
        at: u64,
        /// How long it took, in nanoseconds.
        found: u64,
        /// How long the call that was described took, in nanoseconds.
        expected: RangeInclusive<u64>,
    },
    /// Fewer calls than the number asked for.
    #[error("there are only {found} such calls where call {wanted} was asked for")]
    NoNthCall {
        /// The number that was asked for, from 1.
        wanted: u64,
        /// How many such calls there are.
        found: u64,
    },
    /// A region without operations has no second one.
    #[error(
        "region \"{region}\" marks no operations, so it has no operation {wanted}; \
         without a number all of the region is shown"
    )]
    NoOperations {
        /// The region's name.
        region: String,
        /// The number that was asked for, from 1.
        wanted: u64,
    },
    /// Fewer operations than the number asked for.
    #[error("there are only {found} operations marked in region \"{region}\" where operation {wanted} was asked for")]
    NoNthOperation {
        /// The region's name.
        region: String,
        /// The number that was asked for, from 1.
        wanted: u64,
        /// How many operations are marked.
        found: u64,
    },
}

impl PathError {
    /// Whether it only says that there is no further call.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, PathError::NoCall { .. } | PathError::NoNthCall { .. })
    }
}
