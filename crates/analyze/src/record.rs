//! What a chunk leaves to be made whole with those before and after it.

use crate::accumulators::PendingIdles;
use kerntune_trace::{ChunkState, How};

/// A chunk's ends.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// What the chunk said was going on where it begins.
    pub state: ChunkState,
    /// Virtual time where it begins, and of its last event.
    pub begin: u64,
    pub end: u64,
    pub events: u64,
    /// The threads that ran in it.
    pub threads: Vec<ThreadPart>,
    /// The thread that ran at its end, and whether in user mode.
    pub running: usize,
    pub user: bool,
    /// The regions that were open in it.
    pub regions: Vec<RegionPart>,
    /// Those that are open at its end, outermost first.
    pub open: Vec<u32>,
    /// The interrupt that ended an idle period from before it.
    pub first_interrupt: Option<u32>,
    /// Idle periods that something after it ends.
    pub idles: PendingIdles,
    /// See `Troubles` in `stitch.rs`.
    pub unmatched_exits: u64,
    pub region_mismatches: u64,
}

/// The end of a frame that was carried: the region in which it ended, and its times in the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub region: u32,
    pub net: u64,
    pub callees: u64,
}

/// What a chunk did to a thread's stack: first some carried frames ended, then others were opened on
/// those that were left.
#[derive(Debug)]
pub(crate) struct ThreadPart {
    pub thread: u32,
    /// The carried frames that ended, from the top.
    pub ended: Vec<Ended>,
    /// Net time and callees' time of those that did not, from the outermost.
    pub carried: Vec<(u64, u64)>,
    /// New frames that are still open, from the outermost.
    pub opened: Vec<Opened>,
}

/// A frame that is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    pub function: u32,
    pub how: How,
    /// Net time, all of it credited.
    pub net: u64,
    pub callees: u64,
    pub begin: u64,
    /// Some of it was not seen: it has net time, but its end does not count.
    pub cut: bool,
}

/// A region's time in a chunk, that of regions within it included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegionPart {
    pub region: u32,
    pub busy: u64,
    pub idle: u64,
    /// Whether its begin and its end are in the chunk.
    pub began: bool,
    pub ended: bool,
}
