//! Anatomy of a function's calls: all of them as one tree, distributions of their figures, and
//! their behavior before a boundary.
//!
//! [`anatomy`] reads the whole trace once. Its memory does not grow with the trace: it keeps a tree
//! of limited size, and for each open call its counts at the tree's nodes. Then it reads two or
//! three calls again, through the trace's index: the one with the median time, the longest one, and
//! the one with the median time before the boundary.
//!
//! Times follow the rules in `src/functions.rs`: neither interrupts nor time off the CPU belong to
//! a call; an exception is a callee. So the times of all calls sum to the total time of ended calls
//! in the profile's table of functions, unless the function calls itself.
//!
//! # Selected calls
//!
//! The calls that begin and end within the recording, and end in one of the requested regions; the
//! profile counts their ends in the same way. A function that is called within its own call is a
//! callee like others, except within an interrupt, where it is a call of its own.
//!
//! ```
//! use kerntune_analyze::anatomy::{anatomy, AnatomyRequest};
//! use kerntune_analyze::{Error, TraceFile};
//! use kerntune_profile::FunctionIndex;
//! use std::ops::ControlFlow;
//!
//! /// The instructions of a function's calls, all regions together.
//! fn instructions(trace: &TraceFile<'_>, function: FunctionIndex, functions: usize) -> Result<u64, Error> {
//!     let regions = vec![true; trace.recording.regions.len()];
//!     let request = AnatomyRequest { function, functions, regions: &regions, until: &[], partial: false };
//!     Ok(anatomy(trace, &request, &mut |_| ControlFlow::Continue(()))?.all.ns.sum)
//! }
//! ```

mod build;
mod collector;
mod followed;
mod layout;
mod model;
mod spread;
mod tree;

pub use model::{
    Anatomy, AnatomyNode, BoundaryEntry, BoundarySummary, CallFigures, ExampleCall, FigureSpreads,
    NodeFigures, NodeSums,
};
pub use spread::FigureSpread;

use crate::events::{replay, EventVisitor, ReplayState, TraceBounds, TIME_LIMIT};
use crate::{Error, EventProgress, MissingChunk, TraceChunk, TraceFile};
use collector::{AnatomyCollector, CollectedCalls, FoundCall};
use kerntune_profile::FunctionIndex;
use spread::PickedCall;
use tree::CallTree;

/// Selection of calls for [`anatomy`].
#[derive(Debug, Clone, Copy)]
pub struct AnatomyRequest<'a> {
    /// The function whose calls are the operations.
    pub function: FunctionIndex,
    /// Number of rows in the table of symbols.
    pub functions: usize,
    /// True for regions in which calls count if they end there; indexed by region.
    pub regions: &'a [bool],
    /// True for functions of the boundary, indexed by function; empty for no boundary.
    pub until: &'a [bool],
    /// Leave damaged chunks out and list them in [`Anatomy::missing`], instead of failing.
    pub partial: bool,
}

/// Analyzes every call of a function.
///
/// # Errors
/// Damage in the trace, unless [`AnatomyRequest::partial`] is set; [`Error::Changed`] if the trace
/// changed before calls are read again; [`Error::Stopped`] if `progress` breaks.
pub fn anatomy(
    trace: &TraceFile<'_>,
    request: &AnatomyRequest<'_>,
    progress: EventProgress<'_>,
) -> Result<Anatomy, Error> {
    let mut collector = AnatomyCollector::new(request, None, CallTree::new(request.function.get()));
    let (missing, events) = read_all(trace, request, &mut collector, progress)?;
    let mut found = collector.finish();
    let (middle, longest) = (found.all.ns.median(), found.all.ns.greatest());
    let before = found.before.ns.median();
    let mut one = |pick: Option<PickedCall>, of: fn(&FoundCall) -> Option<u64>| match pick {
        Some(pick) => read_one(trace, request, &mut found.tree, pick, of).map(Some),
        None => Ok(None),
    };
    let whole = |call: &FoundCall| Some(call.figures.ns);
    let typical = one(middle, whole)?;
    let worst = one(longest, whole)?;
    let boundary = one(before, |call| call.boundary.map(|boundary| boundary.figures.ns))?;
    Ok(build::build(found, [typical, worst, boundary], missing, events))
}

fn bounds(trace: &TraceFile<'_>, request: &AnatomyRequest<'_>) -> TraceBounds {
    let regions = trace.recording.regions.len();
    TraceBounds { functions: request.functions, regions, ..TraceBounds::of(trace.recording) }
}

/// Reads the whole trace; returns the chunks that were left out, and the number of events.
fn read_all(
    trace: &TraceFile<'_>,
    request: &AnatomyRequest<'_>,
    collector: &mut AnatomyCollector<'_>,
    progress: EventProgress<'_>,
) -> Result<(Vec<MissingChunk>, u64), Error> {
    let bounds = bounds(trace, request);
    let mut machine = ReplayState::new(bounds);
    let mut reader = trace.reader()?;
    let (mut missing, mut events, mut time) = (Vec::new(), 0, 0u64);
    for number in 0..trace.chunks() {
        let mut read = || -> Result<u64, Error> {
            let chunk = reader.read(number)?;
            // The counts of a chunk that turns out to be damaged must not be kept.
            if request.partial {
                whole(&mut ReplayState::new(bounds), &mut (), &chunk)?;
            }
            let events = whole(&mut machine, collector, &chunk)?;
            // Calls share this time: no sum of theirs can be greater.
            time = time.saturating_add(machine.now() - chunk.header.begin);
            match time < TIME_LIMIT {
                true => Ok(events),
                false => Err(Error::Time { chunk: number }),
            }
        };
        match read() {
            Ok(more) => events += more,
            Err(error) if request.partial => missing.push(MissingChunk::of(trace.recording, number, &error)),
            Err(error) => return Err(error.in_time(trace.recording, number)),
        }
        if progress(events).is_break() {
            return Err(Error::Stopped);
        }
    }
    collector.lose_all(&mut machine);
    Ok((missing, events))
}

/// Reads a single call again. `of` returns the figure for which it was picked.
fn read_one(
    trace: &TraceFile<'_>,
    request: &AnatomyRequest<'_>,
    tree: &mut CallTree,
    pick: PickedCall,
    of: fn(&FoundCall) -> Option<u64>,
) -> Result<CollectedCalls, Error> {
    let chunk = pick.place.chunk as usize;
    let mut collector = AnatomyCollector::new(request, Some(pick.place), std::mem::take(tree));
    let mut machine = ReplayState::new(bounds(trace, request));
    let mut reader = trace.reader()?;
    for number in chunk..trace.chunks() {
        let read = reader.read(number).and_then(|chunk| replay(&mut machine, &mut collector, &chunk));
        read.map_err(|error| error.in_time(trace.recording, number))?;
        if collector.is_done() {
            break;
        }
    }
    let mut found = collector.finish();
    std::mem::swap(tree, &mut found.tree);
    match found.call.as_ref().is_some_and(|call| of(call) == Some(pick.value)) {
        true => Ok(found),
        false => Err(Error::Changed { chunk }),
    }
}

/// Replays a chunk, and checks the number of its events.
fn whole<V: EventVisitor>(
    machine: &mut ReplayState<V::PerFrame>,
    visitor: &mut V,
    chunk: &TraceChunk<'_>,
) -> Result<u64, Error> {
    let found = replay(machine, visitor, chunk)?;
    let expected = chunk.header.events.into();
    match found == expected {
        true => Ok(found),
        false => Err(Error::Contents { chunk: chunk.number, what: "events", found, expected }),
    }
}
