//! Code paths: everything that ran in a window of a trace, call by call in the order of time
//! (McRae's Figure 4).
//!
//! [`collect`] reads only the chunks that a [`PathSelection`] needs: it begins with the chunk that
//! contains the wanted time, adopts the stacks that are open there, and stops at the end of the
//! selection. Its result, a [`CodePath`], has the entries of each shown thread, as a tree in
//! preorder, and the order in which the threads ran. [`fold`] shortens a thread's entries by
//! showing repeated parts once.
//!
//! Times follow the rules in `src/functions.rs`: neither interrupts nor time off the CPU count in a
//! call's self and total time. Entries of which some part was not recorded have the times that
//! were, and are not [complete](PathEntry::complete).

mod collector;
mod error;
mod fold;
mod model;
mod record;
mod select;

pub use error::PathError;
pub use fold::{fold, unfolded, PathLine, PathLineKind, TimeSpread};
pub use model::{
    CodePath, PathEntry, PathEntryKind, PathTotals, SelectedOperation, ThreadPath, ThreadStretch,
};
pub use select::{CallStart, PathSelection, PathSpan};

use crate::TraceFile;

/// Reads the path that `selection` describes.
///
/// `functions` is the number of rows in the table of symbols. Chunks before and after the selection
/// are not read: damage in them does not matter.
///
/// # Errors
/// Damage in a chunk that is needed, or a selection that matches nothing.
pub fn collect(
    trace: &TraceFile<'_>,
    functions: usize,
    selection: &PathSelection,
) -> Result<CodePath, PathError> {
    if !trace.recording.capture.functions {
        return Err(PathError::NoFunctions);
    }
    let plan = select::plan(trace.recording, selection)?;
    let Some(elapsed) = plan.elapsed() else { return collector::run(trace, functions, &plan, 1) };
    // Several calls of a function may begin in the same nanosecond (a jump to itself, a function
    // that falls through to itself): the one with the expected total time is meant.
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
