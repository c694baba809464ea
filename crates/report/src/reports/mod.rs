//! Reports of one profile's tables, a file each: its arguments, the comment on which is its help, its text and its JSON.
//!
//! A file in this folder is a report; nothing else names it. It has
//!
//! ```text
//! pub const ENTRY: Entry = entry::<Options>("switches", 90);
//! ```
//!
//! What needs more than the tables (a trace, another profile, a file) has its arguments in `crates/cli/src/report/`.

use crate::{Result, Style, Who};
use clap::Args;
use kerntune_profile::Profile;
use std::fmt::Debug;

/// A report of one profile's tables with its arguments.
pub trait Report: Debug {
    /// For people, with a newline at its end.
    ///
    /// # Errors
    /// What was asked for is not in the profile.
    fn text(&self, profile: &Profile, style: Style) -> Result<String>;

    /// For scripts (`docs/json.md`), with a newline at its end.
    ///
    /// # Errors
    /// As [`Report::text`].
    fn json(&self, profile: &Profile) -> Result<String>;

    /// The threads that it is to be of; `None` for a report that knows no threads. The profile that it is given is of these alone.
    fn who(&self) -> Option<&Who> {
        None
    }

    /// Whether the text says itself which profile it is of; where it does not, [`crate::of_profile`] comes before it.
    fn names_its_profile(&self) -> bool {
        false
    }
}

/// A report's subcommand of `kerntune report PROFILE`, without `--json`, which all have.
pub type Entry = crate::Subcommand<dyn Report>;

/// The report called `name`; `place` is where it stands in help.
pub(crate) const fn entry<R: Report + Args + 'static>(name: &'static str, place: u8) -> Entry {
    crate::Subcommand::new::<R>(name, place, |matches| Ok(Box::new(R::from_arg_matches(matches)?)))
}

include!(concat!(env!("OUT_DIR"), "/reports.rs"));
