//! The part of a chunk's results that depends on the chunks before and after it.

use crate::accumulators::PendingIdles;
use crate::events::CallTimes;
use kerntune_trace::{ChunkState, EnterKind};

/// State at both ends of a chunk, and times of calls and regions that span its ends.
#[derive(Debug, Default)]
pub(crate) struct ChunkRecord {
    /// State that the chunk declares at its beginning.
    pub state: ChunkState,
    /// Virtual time of its beginning, and of its last event.
    pub begin: u64,
    pub end: u64,
    pub events: u64,
    /// The threads that ran in the chunk.
    pub threads: Vec<ThreadRecord>,
    /// The thread that ran at the end, and whether in user mode.
    pub running: usize,
    pub user: bool,
    /// The regions that were open in the chunk.
    pub regions: Vec<RegionRecord>,
    /// The regions that are open at the end, outermost first.
    pub open: Vec<u32>,
    /// Function of the interrupt that ended an idle period from before the chunk.
    pub first_interrupt: Option<u32>,
    /// Idle periods that an event after the chunk ends.
    pub idles: PendingIdles,
    /// See `Anomalies` in `stitch.rs`.
    pub unmatched_exits: u64,
    pub region_mismatches: u64,
}

/// The end of an inherited frame: the region in which it ended, and its times in the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedFrame {
    pub region: u32,
    pub times: CallTimes,
}

/// A chunk's changes to a thread's stack: first some inherited frames ended, then new ones were
/// opened above the rest.
#[derive(Debug)]
pub(crate) struct ThreadRecord {
    pub thread: u32,
    /// Inherited frames that ended, from the top.
    pub ended: Vec<EndedFrame>,
    /// Times of the inherited frames that did not end, from the outermost.
    pub inherited: Vec<CallTimes>,
    /// New frames that are still open, from the outermost.
    pub opened: Vec<OpenFrame>,
}

/// An open frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFrame {
    pub function: u32,
    pub how: EnterKind,
    /// Times, with all of the self time in an account.
    pub times: CallTimes,
    pub begin: u64,
    /// True if some of the call was not recorded: it has self time, but does not count as a call.
    pub cut: bool,
}

/// A region's time in a chunk, with the regions inside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegionRecord {
    pub region: u32,
    pub busy: u64,
    pub idle: u64,
    /// True if the region's begin, and its end, are in the chunk.
    pub began: bool,
    pub ended: bool,
}
