//! From a trace to a profile: pure algorithms. Bytes and values in, tables out; nothing is
//! opened, nothing is spawned.
//!
//! Start from [`analyze`], which reads a whole trace chunk by chunk in bounded memory. What time is whose is defined in `src/replay.rs`; what
//! the columns mean in `docs/profile.md`. In short, for every region, exactly:
//!
//! ```text
//! Σ net time of functions + user time + unattributed time = busy time = Σ time of threads
//! ```
//!
//! A call that spans a region boundary counts in the region in which it ends, but its net time
//! goes where it passed. Between regions the recorder writes nothing: calls that are open across
//! such a gap, or that were open when recording began or ended, have net time but do not count as
//! calls (`cut_calls` in [`Analysis::health`] says how many).
//!
//! ```
//! use std::ops::ControlFlow;
//! # use kerntune_trace::{Capture, Health, Recording, VERSION};
//! # let recording = Recording {
//! #     version: VERSION, capture: Capture { functions: false, edges: false, weights: false },
//! #     kernel_functions: 0, regions: vec![], threads: vec![], chunks: vec![], events: 0, health: Health::default(), notes: vec![],
//! # };
//! // `recording` is recording.json, the first argument trace.kt, both of one run.
//! let trace: &[u8] = &[];
//! let analysis = kerntune_analyze::analyze(&trace, &recording, None, &[], &mut |_events| {
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(analysis.lost_events, 0);
//! # Ok::<(), kerntune_analyze::Error>(())
//! ```

mod arcs;
mod error;
pub mod graph;
mod ledger;
mod replay;
mod rows;
pub mod timeline;
mod trace_file;

pub use error::Error;
pub use trace_file::{Chunk, ChunkReader, ReadAt, TraceFile};

use kerntune_profile::{Manifest, Nanoseconds, Symbol, Tables};
use kerntune_trace::counts::Counts;
use kerntune_trace::Recording;
use replay::{Known, Replay};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Told the number of events done after each chunk; breaks to stop the analysis.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// What a trace came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The profile's tables.
    pub tables: Tables,
    /// Time inside regions.
    pub elapsed_ns: Nanoseconds,
    /// `elapsed_ns - idle_ns`.
    pub busy_ns: Nanoseconds,
    /// Time inside regions in which the CPU was halted.
    pub idle_ns: Nanoseconds,
    /// Events read.
    pub events: u64,
    /// Events that the recorder could not keep.
    pub lost_events: u64,
    /// What was not as it should be, by name: the recorder's [`kerntune_trace::Health`] and
    ///
    /// - `stack_mismatches`, `running_mismatches`, `clock_mismatches` (and `clock_mismatch_ns`):
    ///   chunks that do not go on where the one before ended; the later chunk was believed;
    /// - `unmatched_exits`: events that end frames that are not there;
    /// - `cut_calls`: calls that were not seen whole;
    /// - `outside_ns`: time of events in no region; `region_mismatches`: marks out of order;
    /// - `region_mismatch_ns`: by how much the recorder's times of regions differ from the trace's;
    /// - `unclosed_regions`: regions whose end mark was not seen;
    /// - `unattributed_ns`: kernel time with no function open.
    pub health: BTreeMap<String, u64>,
}

impl Analysis {
    /// Puts totals and health into a manifest; returns the tables.
    pub fn describe(self, manifest: &mut Manifest) -> Tables {
        manifest.elapsed_ns = self.elapsed_ns;
        manifest.busy_ns = self.busy_ns;
        manifest.idle_ns = self.idle_ns;
        manifest.events = self.events;
        manifest.lost_events = self.lost_events;
        manifest.health.extend(self.health);
        self.tables
    }
}

/// Analyses a whole trace.
///
/// `trace` is the file; it is not read if no functions were captured. `symbols` are the functions
/// in the order of their numbers.
///
/// # Errors
/// Any damage, and any sign that the arguments are not of one run, see [`Error`].
pub fn analyze(
    trace: &dyn ReadAt,
    recording: &Recording,
    counts: Option<&Counts>,
    symbols: &[Symbol],
    progress: Progress<'_>,
) -> Result<Analysis, Error> {
    if symbols.len() >= arcs::FUNCTION_LIMIT {
        return Err(Error::TooManyFunctions(symbols.len()));
    }
    let known = Known {
        functions: symbols.len(),
        threads: recording.threads.len(),
        regions: recording.regions.len(),
        idle: rows::is_idle,
    };
    let mut replay = Replay::new(&recording.threads, known, &[]);
    let mut events = 0;
    if recording.capture.functions {
        let trace = TraceFile::open(trace, recording)?;
        let mut reader = trace.reader()?;
        for number in 0..trace.chunks() {
            let chunk = reader.read(number)?;
            replay.chunk(chunk.number, &chunk.header, &chunk.state.stacks, chunk.payload)?;
            events += u64::from(chunk.header.events);
            if progress(events).is_break() {
                return Err(Error::Stopped);
            }
        }
    }
    let closing = replay.finish();
    let health = rows::health(&closing, recording);
    let tables = rows::tables(closing, recording, counts, symbols, known);
    // Those with nothing around them never overlap.
    let outer = || tables.regions.iter().filter(|region| region.depth == 0);
    Ok(Analysis {
        elapsed_ns: outer().map(|region| region.elapsed_ns).sum(),
        busy_ns: outer().map(|region| region.busy_ns).sum(),
        idle_ns: outer().map(|region| region.idle_ns).sum(),
        events,
        lost_events: recording.health.lost_events,
        health,
        tables,
    })
}
