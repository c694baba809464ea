//! What the calls of one function do: all of them as one tree, how their figures are spread, and what they do before
//! a boundary.
//!
//! [`anatomy`] reads the whole trace once. What is kept does not grow with it: a tree with a limit, and for each call that
//! is open what it did at the tree's nodes so far. Two or three calls are then read again, through the trace's index:
//! the one in the middle, the longest, and the one in the middle of those that reach the boundary.
//!
//! Times follow the rules at the head of `src/functions.rs`: neither interrupts nor time off the CPU belong to a call, an
//! exception is a callee. So the times of all calls sum to what the profile's table of functions says of those that
//! ended, as long as the function does not call itself.
//!
//! # Which calls
//!
//! Those that begin and end within what was recorded, and end in one of the regions that were asked for: there the
//! profile counts their ends, too. A function that is called within its own call, but for an interrupt's sake, is a
//! callee like others and no call of its own; in an interrupt it is.
//!
//! ```
//! use kerntune_analyze::anatomy::{anatomy, Request};
//! use kerntune_analyze::{Error, TraceFile};
//! use kerntune_profile::FunctionIndex;
//! use std::ops::ControlFlow;
//!
//! /// The instructions of a function's calls, all regions together.
//! fn instructions(trace: &TraceFile<'_>, function: FunctionIndex, functions: usize) -> Result<u64, Error> {
//!     let regions = vec![true; trace.recording.regions.len()];
//!     let request = Request { function, functions, regions: &regions, until: &[], partial: false };
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

pub use model::{Anatomy, Before, Call, Figures, Node, Part, Reached, Spreads, Sums};
pub use spread::Spread;

use crate::events::{replay, Bounds, Machine, Visitor, TIME_LIMIT};
use crate::{Chunk, Error, Missing, Progress, TraceFile};
use collector::{Collector, Found, Seen};
use kerntune_profile::FunctionIndex;
use spread::Pick;
use tree::Tree;

/// Whose calls, where, and up to what.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The function.
    pub function: FunctionIndex,
    /// Number of rows in the table of symbols.
    pub functions: usize,
    /// Whether calls that end in a region count, by its number.
    pub regions: &'a [bool],
    /// Whether a function is the boundary, by its number; none is if it is empty.
    pub until: &'a [bool],
    /// Leave damaged chunks out instead of giving up, and say so: [`Anatomy::missing`].
    pub partial: bool,
}

/// Looks at every call of a function.
///
/// # Errors
/// Any damage, unless a partial result was asked for; [`Error::Changed`] if the trace is another one when calls are read
/// again; [`Error::Stopped`] if `progress` breaks.
pub fn anatomy(
    trace: &TraceFile<'_>,
    request: &Request<'_>,
    progress: Progress<'_>,
) -> Result<Anatomy, Error> {
    let mut collector = Collector::new(request, None, Tree::new(request.function.get()));
    let (missing, events) = read_all(trace, request, &mut collector, progress)?;
    let mut found = collector.finish();
    let (middle, longest) = (found.all.ns.median(), found.all.ns.greatest());
    let before = found.before.ns.median();
    let mut one = |pick: Option<Pick>, of: fn(&Seen) -> Option<u64>| match pick {
        Some(pick) => read_one(trace, request, &mut found.tree, pick, of).map(Some),
        None => Ok(None),
    };
    let whole = |call: &Seen| Some(call.figures.ns);
    let typical = one(middle, whole)?;
    let worst = one(longest, whole)?;
    let gate = one(before, |call| call.gate.map(|gate| gate.figures.ns))?;
    Ok(build::build(found, [typical, worst, gate], missing, events))
}

fn bounds(trace: &TraceFile<'_>, request: &Request<'_>) -> Bounds {
    let regions = trace.recording.regions.len();
    Bounds { functions: request.functions, regions, ..Bounds::of(trace.recording) }
}

/// Takes the collector through the whole trace; returns the chunks that were left out, and the number of events.
fn read_all(
    trace: &TraceFile<'_>,
    request: &Request<'_>,
    collector: &mut Collector<'_>,
    progress: Progress<'_>,
) -> Result<(Vec<Missing>, u64), Error> {
    let bounds = bounds(trace, request);
    let mut machine = Machine::new(bounds);
    let mut reader = trace.reader()?;
    let (mut missing, mut events, mut time) = (Vec::new(), 0, 0u64);
    for number in 0..trace.chunks() {
        let mut read = || -> Result<u64, Error> {
            let chunk = reader.read(number)?;
            // What a chunk that turns out to be damaged has counted must not be kept.
            if request.partial {
                whole(&mut Machine::new(bounds), &mut Nobody, &chunk)?;
            }
            let events = whole(&mut machine, collector, &chunk)?;
            // Calls share this time: no sum of theirs can be more.
            time = time.saturating_add(machine.now() - chunk.header.begin);
            match time < TIME_LIMIT {
                true => Ok(events),
                false => Err(Error::Time { chunk: number }),
            }
        };
        match read() {
            Ok(more) => events += more,
            Err(error) if request.partial => missing.push(Missing::of(trace.recording, number, &error)),
            Err(error) => return Err(error.in_time(trace.recording, number)),
        }
        if progress(events).is_break() {
            return Err(Error::Stopped);
        }
    }
    collector.lose_all(&mut machine);
    Ok((missing, events))
}

/// Reads a call again, of which `of` is what it was picked for.
fn read_one(
    trace: &TraceFile<'_>,
    request: &Request<'_>,
    tree: &mut Tree,
    pick: Pick,
    of: fn(&Seen) -> Option<u64>,
) -> Result<Found, Error> {
    let chunk = pick.place.chunk as usize;
    let mut collector = Collector::new(request, Some(pick.place), std::mem::take(tree));
    let mut machine = Machine::new(bounds(trace, request));
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

/// Takes the machine through a chunk, which must have as many events as it says.
fn whole<V: Visitor>(
    machine: &mut Machine<V::Frame>,
    visitor: &mut V,
    chunk: &Chunk<'_>,
) -> Result<u64, Error> {
    let found = replay(machine, visitor, chunk)?;
    let expected = chunk.header.events.into();
    match found == expected {
        true => Ok(found),
        false => Err(Error::Contents { chunk: chunk.number, what: "events", found, expected }),
    }
}

/// Is told of everything and keeps nothing.
struct Nobody;

impl Visitor for Nobody {
    type Frame = ();
}
