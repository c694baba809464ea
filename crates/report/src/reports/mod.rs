//! Reports on one profile's tables, a file each, with arguments (whose doc comments are the help),
//! text and JSON.
//!
//! A file in this folder is a report; nothing else lists it. It declares
//!
//! ```text
//! pub const ENTRY: Entry = entry::<SwitchesOptions>("switches", 90);
//! ```
//!
//! Reports that need more than the tables (a trace, another profile, a file) have their arguments
//! in `crates/cli/src/report/`.

pub use crate::selection::Selection;
use crate::{Result, Style, ThreadFilter};
use clap::Args;
use kerntune_profile::Profile;
use kerntune_table::{render, Document};
use std::fmt::Debug;

/// Report on one profile's tables, implemented by the report's arguments.
pub trait Report: Debug {
    /// Makes the report of a profile.
    ///
    /// # Errors
    /// A region, function or thread that the profile does not have.
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>>;

    /// Renders the report as text, with a newline at its end.
    ///
    /// # Errors
    /// Same as [`Report::document`].
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        Ok(render::text(&self.document(profile)?, style))
    }

    /// Renders the JSON document (`docs/json.md`), with a newline at its end.
    ///
    /// # Errors
    /// Same as [`Report::document`].
    fn json(&self, profile: &Profile) -> Result<String> {
        Ok(render::json(&self.document(profile)?))
    }

    /// Returns the threads to report on; `None` if the report does not support a selection. The
    /// caller passes a profile restricted to these threads.
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        None
    }
}

/// Subcommand of `kerntune report PROFILE`, without `--json`, which all reports have.
pub type Entry = crate::Subcommand<dyn Report>;

/// Creates the entry of the report `name`; `place` is its position in the help.
pub(crate) const fn entry<R: Report + Args + 'static>(name: &'static str, place: u8) -> Entry {
    crate::Subcommand::new::<R>(name, place, |matches| Ok(Box::new(R::from_arg_matches(matches)?)))
}

include!(concat!(env!("OUT_DIR"), "/reports.rs"));
