//! Code paths: what ran in a window of a trace, call by call in real time (McRae's Figure 4).
//!
//! [`collect`] reads the chunks that a [`Selection`] needs and no others: it begins with the one that
//! covers the wanted time, takes the stacks that are open there, and stops where the selection
//! ends. What it returns, a [`Path`], has one list of entries for each thread that is shown, each
//! a tree in preorder, and the order in which the threads ran. [`fold`] makes a thread's entries
//! short by writing identical repeated parts once.
//!
//! Times follow the rules at the head of `src/functions.rs`: neither interrupts nor time off the CPU
//! count in the net and total time of a call. What was not seen whole says so
//! ([`Entry::complete`]); its times are those that were seen.

mod collector;
mod error;
mod fold;
mod model;
mod record;
mod select;

pub use error::PathError;
pub use fold::{fold, unfolded, Line, LineKind, Spread};
pub use model::{Entry, EntryKind, Operation, Path, Stretch, ThreadPath, Totals};
pub use select::{CallStart, Selection, Span};

use crate::TraceFile;

/// Reads the path that `selection` asks for.
///
/// `functions` is the number of rows in the table of symbols. The chunks before and after what is
/// selected are not read: damage in them does not matter.
///
/// # Errors
/// Damage in the chunks that are needed, and a selection of something that is not there.
pub fn collect(trace: &TraceFile<'_>, functions: usize, selection: &Selection) -> Result<Path, PathError> {
    if !trace.recording.capture.functions {
        return Err(PathError::NoFunctions);
    }
    let plan = select::plan(trace.recording, selection)?;
    let Some(elapsed) = plan.elapsed() else { return collector::run(trace, functions, &plan, 1) };
    // Several calls of a function may begin in the same nanosecond (a jump to itself, a function
    // that falls into itself): the one that took as long as it should is meant.
    let mut seen = None;
    for candidate in 1.. {
        match collector::run(trace, functions, &plan, candidate) {
            Ok(path) if elapsed.contains(&path.call_ns()) => return Ok(path),
            Ok(path) => seen = seen.or(Some(path.call_ns())),
            Err(error) => match seen {
                Some(found) if error.is_not_found() => {
                    let at = plan.window.0;
                    return Err(PathError::AnotherCall { at, found, expected: elapsed });
                }
                _ => return Err(error),
            },
        }
    }
    Err(PathError::NoCall { at: plan.window.0 })
}
