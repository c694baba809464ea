//! Turns a trace into a profile. Pure algorithms: bytes and values in, tables out; opens no file
//! and starts no process.
//!
//! Start from [`analyze`], which reads a whole trace, several chunks in parallel, in bounded
//! memory. `src/functions.rs` defines how time is attributed to functions, `docs/profile.md` what
//! the columns mean. For every region these sums are exact, and each analysis checks them:
//!
//! ```text
//! Σ self time of functions + user time + unattributed time = busy time
//!                                 = Σ time of threads = Σ self time of paths
//! ```
//!
//! A call that spans a region boundary counts in the region in which it ends, but each part of its
//! self time counts in the region in which it passed. The recorder writes nothing between regions:
//! calls that are open across such a gap, or when recording began or ended, have self time but do
//! not count as calls (`cut_calls` in [`Analysis::health`] is their number).
//!
//! ```
//! use std::ops::ControlFlow;
//! # use kerntune_trace::{CaptureSpec, Recording, RecordingHealth, VERSION};
//! # let recording = Recording {
//! #     ran: Vec::new(),
//! #     ran_since_boot: Vec::new(),
//! #     version: VERSION, capture: CaptureSpec { functions: false, edges: false, weights: false },
//! #     kernel_functions: 0, first_loaded: None, cpus: 1, per_cpu: vec![], regions: vec![], threads: vec![], chunks: vec![], events: 0, health: RecordingHealth::default(), notes: vec![],
//! # };
//! // `recording` is recording.json, `trace` trace.kt, both of one run.
//! let trace: &[u8] = &[];
//! let input = kerntune_analyze::AnalysisInput::new(&trace, &recording, &[]);
//! let analysis = kerntune_analyze::analyze(&input, &mut |_events| ControlFlow::Continue(()))?;
//! assert_eq!(analysis.lost_events, 0);
//! # Ok::<(), kerntune_analyze::Error>(())
//! ```

/// Hash of the code of this crate and of the crates below it, for the keys of stored results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod accounts;
mod accumulators;
pub mod anatomy;
mod cpu_rows;
mod cut;
mod data_rows;
mod error;
pub mod events;
mod functions;
pub mod graph;
mod hash;
mod health;
mod io_rows;
mod known;
mod memo;
mod multi_cpu;
pub mod path;
mod path_rows;
mod pool;
mod record;
mod rows;
mod scheduler;
mod stitch;
pub mod timeline;
mod trace_file;
mod tree;

pub use cut::{cut, TraceExcerpt};
pub use data_rows::DataInput;
pub use error::Error;
pub use known::call_kind;
pub use trace_file::{ChunkReader, ReadAt, TraceChunk, TraceFile};

use accumulators::Accumulators;
use kerntune_profile::{FunctionIndex, Manifest, Symbol, Tables, Ticks};
use kerntune_trace::counts::ExecutionCounts;
use kerntune_trace::io::IoFile;
use kerntune_trace::{RecordedRegion, Recording};
use known::TraceContext;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use stitch::ChunkStitcher;

/// Progress callback: receives the number of events read so far, after each chunk. Returning
/// `Break` stops the analysis with [`Error::Stopped`].
pub type EventProgress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// Input and settings of [`analyze`].
#[derive(Clone, Copy)]
pub struct AnalysisInput<'a> {
    /// The trace file; not read if no functions were captured.
    pub trace: &'a dyn ReadAt,
    /// The recorder's description of the run (`recording.json`).
    pub recording: &'a Recording,
    /// Executed blocks and edges; `None` if they were not captured.
    pub counts: Option<&'a ExecutionCounts>,
    /// The functions, indexed by their number in events.
    pub symbols: &'a [Symbol],
    /// Name and function of each inline point, indexed by the point's number in events.
    pub points: &'a [(String, FunctionIndex)],
    /// Address, size in bytes and name of each kernel variable, by address. Locks are named by it.
    pub objects: &'a [(u64, u64, String)],
    /// Misses of data accesses; `None` if they were not captured.
    pub data: Option<DataInput<'a>>,
    /// Requests to block devices and network packets; `None` if they were not recorded.
    pub io: Option<&'a IoFile>,
    /// Number of worker threads; 0 for one per CPU. The result does not depend on it.
    pub threads: usize,
    /// Leave damaged chunks out and list them in [`Analysis::missing`], instead of failing.
    pub partial: bool,
}

impl<'a> AnalysisInput<'a> {
    /// Input for a whole trace on all CPUs, without counts, points and other optional parts.
    pub fn new(trace: &'a dyn ReadAt, recording: &'a Recording, symbols: &'a [Symbol]) -> Self {
        Self {
            trace,
            recording,
            counts: None,
            symbols,
            points: &[],
            objects: &[],
            data: None,
            io: None,
            threads: 0,
            partial: false,
        }
    }

    fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

/// A damaged chunk that a partial analysis left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingChunk {
    /// Number of the chunk in the trace.
    pub chunk: usize,
    /// Virtual time at which the chunk begins, in ticks.
    pub begin_ns: u64,
    /// Virtual time of the chunk's last event, in ticks.
    pub end_ns: u64,
    /// Number of events in the chunk.
    pub events: u64,
    /// The damage, as an error message.
    pub reason: String,
}

impl MissingChunk {
    fn of(recording: &Recording, chunk: usize, error: &Error) -> Self {
        let index = recording.chunks.get(chunk);
        Self {
            chunk,
            begin_ns: index.map_or(0, |index| index.begin_ns),
            end_ns: index.map_or(0, |index| index.end_ns),
            events: index.map_or(0, |index| index.events.into()),
            reason: error.to_string(),
        }
    }

    /// Returns the length of the missing time, in ticks.
    pub fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Checks whether the chunk overlaps a region.
    fn touches(&self, region: &RecordedRegion) -> bool {
        let end = region.begin_ns.saturating_add(region.elapsed_ns);
        (region.begin_ns <= self.end_ns) && (!region.closed || end >= self.begin_ns)
    }
}

/// Result of [`analyze`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The tables of the profile.
    pub tables: Tables,
    /// Time inside regions, idle time included.
    pub elapsed_ns: Ticks,
    /// Time inside regions in which a CPU executed: `elapsed_ns - idle_ns`.
    pub busy_ticks: Ticks,
    /// Time inside regions in which all CPUs were halted.
    pub idle_ns: Ticks,
    /// Number of events that were read.
    pub events: u64,
    /// Number of events that the recorder could not keep.
    pub lost_events: u64,
    /// Counts of anomalies by [`kerntune_profile::Anomaly::name`], the recorder's and the analysis's;
    /// 0 means that there was none. Where the state that a chunk declares differs from the final
    /// state of the chunk before, the analysis uses the later one.
    pub health: BTreeMap<String, u64>,
    /// Chunks that a partial analysis left out. Times of a region that overlaps one of them cover
    /// the chunks that were read.
    pub missing: Vec<MissingChunk>,
}

impl Analysis {
    /// Copies totals and anomaly counters into a manifest, and returns the tables.
    pub fn describe(self, manifest: &mut Manifest) -> Tables {
        manifest.elapsed_ticks = self.elapsed_ns;
        manifest.busy_ticks = self.busy_ticks;
        manifest.idle_ticks = self.idle_ns;
        manifest.events = self.events;
        manifest.lost_events = self.lost_events;
        manifest.health.extend(self.health);
        self.tables
    }
}

/// Analyzes a whole trace.
///
/// # Errors
/// Damage in the trace, unless [`AnalysisInput::partial`] is set, and any sign that the inputs are
/// not of the same run; see [`Error`].
pub fn analyze(input: &AnalysisInput<'_>, progress: EventProgress<'_>) -> Result<Analysis, Error> {
    let AnalysisInput { recording, symbols, .. } = *input;
    if symbols.len() >= accounts::FUNCTION_LIMIT {
        return Err(Error::TooManyFunctions(symbols.len()));
    }
    let trace = match recording.capture.functions {
        true => Some(TraceFile::open(input.trace, recording)?),
        false => None,
    };
    let known = TraceContext::new(input, trace.is_some_and(|trace| trace.wide));
    let mut stitch = ChunkStitcher::new(&known);
    let mut missing = Vec::new();
    let mut events = 0;
    let sums = match &trace {
        None => Accumulators::new(known.bounds.regions, known.wide),
        Some(trace) => {
            let mut failure = None;
            let each = |number: usize, outcome: pool::ChunkOutcome| {
                let stitched = match outcome {
                    Ok(record) => {
                        events += record.events;
                        stitch.chunk(number, record)
                    }
                    Err(error) if input.partial && error.is_damage() => {
                        missing.push(MissingChunk::of(recording, number, &error));
                        stitch.missing();
                        Ok(())
                    }
                    Err(error) => Err(error),
                };
                failure = stitched.err().map(|error| error.in_time(recording, number));
                if failure.is_none() && progress(events).is_break() {
                    failure = Some(Error::Stopped);
                }
                if failure.is_some() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let sums = pool::replay_all(trace, &known, input.threads(), input.partial, each)?;
            if let Some(error) = failure {
                return Err(error);
            }
            sums
        }
    };
    finish(input, &known, stitch, sums, events, missing)
}

/// Merges the sums, checks that they balance, and makes the tables.
fn finish(
    input: &AnalysisInput<'_>,
    known: &TraceContext,
    mut stitch: ChunkStitcher<'_>,
    mut sums: Accumulators,
    events: u64,
    missing: Vec<MissingChunk>,
) -> Result<Analysis, Error> {
    stitch.finish();
    let ChunkStitcher { sums: stitched, measured, anomalies, .. } = stitch;
    sums.merge(stitched);
    sums.tree.settle();
    if let Some((region, what, sum, busy)) = sums.imbalance() {
        return Err(Error::Unbalanced { region, what, sum, busy });
    }
    let recording = input.recording;
    let evidence =
        health::AnomalySources { recording, sums: &sums, measured: &measured, anomalies, missing: &missing };
    let health = health::counts(&evidence);
    // The recorder's times are used for a complete region; the trace's if the region has no end or
    // chunks are missing.
    let trusted = |number: usize| match recording.regions.get(number) {
        Some(region) => region.closed && !missing.iter().any(|missing| missing.touches(region)),
        None => false,
    };
    let tables = rows::tables(sums, input, known, &measured, trusted);
    // Outermost regions never overlap.
    let outer = || tables.regions.iter().filter(|region| region.depth == 0);
    Ok(Analysis {
        elapsed_ns: outer().map(|region| region.elapsed_ticks).sum(),
        busy_ticks: outer().map(|region| region.busy_ticks).sum(),
        idle_ns: outer().map(|region| region.idle_ticks).sum(),
        events,
        lost_events: recording.health.lost_events,
        health,
        missing,
        tables,
    })
}
