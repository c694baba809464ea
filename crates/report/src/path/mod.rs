//! Code path from a trace: McRae's Figure 4.
//!
//! [`kerntune_analyze::path::collect`] reads the path; [`text`] and [`json`] render it. [`worst`]
//! and [`typical`] select a call by the profile's figures.

mod json;
mod layout;
mod pick;
mod summary;
mod text;

pub use json::{json, SCHEMA};
pub use pick::{typical, worst, PickedCall};
pub use text::text;

use crate::names;
use kerntune_analyze::path::{fold, unfolded, CodePath, PathLine, ThreadPath};
use kerntune_profile::{FunctionIndex, Profile};
use kerntune_table::printable;
use kerntune_trace::Recording;

/// Code path with the names needed for display.
#[derive(Clone, Copy)]
pub struct PathView<'a> {
    /// Profile of the recording.
    pub profile: &'a Profile,
    /// Recording that the trace belongs to.
    pub recording: &'a Recording,
    /// Path that was collected from the trace.
    pub path: &'a CodePath,
    /// Names of inline points, by number.
    pub points: &'a [String],
    /// Description of the selection and its reason.
    pub title: &'a str,
    /// Folds identical repeats into one line.
    pub fold: bool,
}

impl PathView<'_> {
    /// Formats a thread as `name [pid]`.
    fn thread(&self, number: u32) -> String {
        match self.recording.threads.get(number as usize) {
            Some(thread) => format!("{} [{}]", printable(&thread.comm), thread.pid),
            None => "[unknown]".into(),
        }
    }

    fn function(&self, function: FunctionIndex) -> String {
        names::label(&self.profile.tables, function)
    }

    fn region(&self, region: u32) -> String {
        self.recording.regions.get(region as usize).map_or("?".into(), |region| printable(&region.name))
    }

    fn point(&self, point: u32) -> String {
        self.points.get(point as usize).map_or_else(|| format!("point {point}"), |name| printable(name))
    }

    fn lines(&self, thread: &ThreadPath) -> Vec<PathLine> {
        if self.fold {
            fold(&thread.entries, self.path.is_timeline())
        } else {
            unfolded(&thread.entries)
        }
    }
}
