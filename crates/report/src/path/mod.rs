//! The code path: McRae's Figure 4, from a trace.
//!
//! What is shown was read by [`kerntune_analyze::path::collect`]; [`text`] and [`json`] write it.
//! [`worst`] and [`typical`] choose a call by the profile's figures.

mod json;
mod layout;
mod pick;
mod summary;
mod text;

pub use json::{json, SCHEMA};
pub use pick::{typical, worst, Picked};
pub use text::text;

use crate::names;
use crate::style::printable;
use kerntune_analyze::path::{fold, unfolded, Line, Path, ThreadPath};
use kerntune_profile::{FunctionIndex, Profile};
use kerntune_trace::Recording;

/// A path and what is needed to put names to it.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The profile whose trace it is from.
    pub profile: &'a Profile,
    /// The recording whose trace it is from.
    pub recording: &'a Recording,
    /// The path.
    pub path: &'a Path,
    /// Names of inline points, by number.
    pub points: &'a [String],
    /// What was selected, and why.
    pub title: &'a str,
    /// Whether identical repeats are written once.
    pub fold: bool,
}

impl Shown<'_> {
    /// `name [pid]` of a thread.
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

    fn lines(&self, thread: &ThreadPath) -> Vec<Line> {
        if self.fold {
            fold(&thread.entries, self.path.is_timeline())
        } else {
            unfolded(&thread.entries)
        }
    }
}
