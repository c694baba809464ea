//! From a trace to a profile: pure algorithms. Bytes and values in, tables out; nothing is
//! opened, nothing is spawned.
//!
//! Start from [`analyze`], which reads a whole trace, several chunks at a time, in bounded memory.
//! What time is whose is defined in `src/functions.rs`; what the columns mean in `docs/profile.md`. In
//! short, for every region, exactly, and checked each time:
//!
//! ```text
//! Σ net time of functions + user time + unattributed time = busy time
//!                                  = Σ time of threads = Σ net time of paths
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
//! #     ran: Vec::new(),
//! #     ran_since_boot: Vec::new(),
//! #     version: VERSION, capture: Capture { functions: false, edges: false, weights: false },
//! #     kernel_functions: 0, cpus: 1, per_cpu: vec![], regions: vec![], threads: vec![], chunks: vec![], events: 0, health: Health::default(), notes: vec![],
//! # };
//! // `recording` is recording.json, `trace` trace.kt, both of one run.
//! let trace: &[u8] = &[];
//! let input = kerntune_analyze::Input::new(&trace, &recording, &[]);
//! let analysis = kerntune_analyze::analyze(&input, &mut |_events| ControlFlow::Continue(()))?;
//! assert_eq!(analysis.lost_events, 0);
//! # Ok::<(), kerntune_analyze::Error>(())
//! ```

/// Names the code of this crate and of those below it, for keys of results.
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
pub mod path;
mod path_rows;
mod pool;
mod record;
mod rows;
mod scheduler;
mod several;
mod stitch;
pub mod timeline;
mod trace_file;
mod tree;

pub use cut::{cut, Cut};
pub use data_rows::DataInput;
pub use error::Error;
pub use trace_file::{Chunk, ChunkReader, ReadAt, TraceFile};

use accumulators::Accumulators;
use kerntune_profile::{FunctionIndex, Manifest, Nanoseconds, Symbol, Tables};
use kerntune_trace::counts::Counts;
use kerntune_trace::io::IoFile;
use kerntune_trace::{Recording, Region};
use known::Known;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use stitch::Stitch;

/// Told the number of events done after each chunk; breaks to stop the analysis.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// What to analyse, and how.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The trace file; not read if no functions were captured.
    pub trace: &'a dyn ReadAt,
    /// What the recorder said of the run.
    pub recording: &'a Recording,
    /// Executed blocks and edges, if they were captured.
    pub counts: Option<&'a Counts>,
    /// The functions in the order of their numbers.
    pub symbols: &'a [Symbol],
    /// Name and function of each inline point, in the order of their numbers.
    pub points: &'a [(String, FunctionIndex)],
    /// The kernel's variables by address, to name locks by: address, bytes, name.
    pub objects: &'a [(u64, u64, String)],
    /// What accesses to data missed, if that was captured.
    pub data: Option<DataInput<'a>>,
    /// Requests to block devices and network packets, if they were seen.
    pub io: Option<&'a IoFile>,
    /// Number of threads; 0 for as many as there are CPUs. The result does not depend on it.
    pub threads: usize,
    /// Leave damaged chunks out instead of giving up, and say so: [`Analysis::missing`].
    pub partial: bool,
}

impl<'a> Input<'a> {
    /// All of a trace, on all CPUs, without counts and points.
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

/// A chunk that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its number.
    pub chunk: usize,
    /// Virtual time of its beginning.
    pub begin_ns: u64,
    /// Virtual time of its last event.
    pub end_ns: u64,
    /// Events in it.
    pub events: u64,
    /// What was wrong with it, in words.
    pub reason: String,
}

impl Missing {
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

    /// How much time is missing.
    pub fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Whether some of a region is missing.
    fn touches(&self, region: &Region) -> bool {
        let end = region.begin_ns.saturating_add(region.elapsed_ns);
        (region.begin_ns <= self.end_ns) && (!region.closed || end >= self.begin_ns)
    }
}

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
    /// - `outside_ns`: time of events in no region; `region_mismatches`: marks out of order, and
    ///   chunks that disagree on what is open;
    /// - `region_mismatch_ns`: by how much the recorder's times of regions differ from the trace's;
    /// - `cpu_mismatch_ns`, only of several CPUs: by how much the trace's times of CPUs differ from the instructions that
    ///   each of them counted;
    /// - `unclosed_regions`: regions whose end mark was not seen;
    /// - `unattributed_ns`: kernel time with no function open;
    /// - `folded_calls`: calls whose paths were too deep for a tree of a million nodes: their time is
    ///   that of the deepest path above them which was kept;
    /// - `missing_chunks`, `missing_events`, `missing_ns`: what [`Analysis::missing`] sums to.
    pub health: BTreeMap<String, u64>,
    /// What was left out of a partial result; of regions that this touches, times are those of what
    /// is there.
    pub missing: Vec<Missing>,
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
/// # Errors
/// Any damage, unless a partial result was asked for, and any sign that the arguments are not of one
/// run, see [`Error`].
pub fn analyze(input: &Input<'_>, progress: Progress<'_>) -> Result<Analysis, Error> {
    let Input { recording, symbols, .. } = *input;
    if symbols.len() >= accounts::FUNCTION_LIMIT {
        return Err(Error::TooManyFunctions(symbols.len()));
    }
    let trace = match recording.capture.functions {
        true => Some(TraceFile::open(input.trace, recording)?),
        false => None,
    };
    let known = Known::new(input, trace.is_some_and(|trace| trace.wide));
    let mut stitch = Stitch::new(&known);
    let mut missing = Vec::new();
    let mut events = 0;
    let sums = match &trace {
        None => Accumulators::new(known.bounds.regions, known.wide),
        Some(trace) => {
            let mut failure = None;
            let each = |number: usize, outcome: pool::Outcome| {
                let stitched = match outcome {
                    Ok(record) => {
                        events += record.events;
                        stitch.chunk(number, record)
                    }
                    Err(error) if input.partial && error.is_damage() => {
                        missing.push(Missing::of(recording, number, &error));
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

/// Adds up, checks the sums, makes the tables.
fn finish(
    input: &Input<'_>,
    known: &Known,
    mut stitch: Stitch<'_>,
    mut sums: Accumulators,
    events: u64,
    missing: Vec<Missing>,
) -> Result<Analysis, Error> {
    stitch.finish();
    let Stitch { sums: stitched, measured, troubles, .. } = stitch;
    sums.merge(stitched);
    sums.tree.settle();
    if let Some((region, what, sum, busy)) = sums.imbalance() {
        return Err(Error::Unbalanced { region, what, sum, busy });
    }
    let recording = input.recording;
    let evidence =
        health::Evidence { recording, sums: &sums, measured: &measured, troubles, missing: &missing };
    let health = health::counts(&evidence);
    // The recorder's word for a region whose end it saw, the trace's for another, or if some is missing.
    let trusted = |number: usize| match recording.regions.get(number) {
        Some(region) => region.closed && !missing.iter().any(|missing| missing.touches(region)),
        None => false,
    };
    let tables = rows::tables(sums, input, known, &measured, trusted);
    // Those with nothing around them never overlap.
    let outer = || tables.regions.iter().filter(|region| region.depth == 0);
    Ok(Analysis {
        elapsed_ns: outer().map(|region| region.elapsed_ns).sum(),
        busy_ns: outer().map(|region| region.busy_ns).sum(),
        idle_ns: outer().map(|region| region.idle_ns).sum(),
        events,
        lost_events: recording.health.lost_events,
        health,
        missing,
        tables,
    })
}
