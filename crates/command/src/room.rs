//! Additions of a crate to the program: commands, formats, and stores that `check` reads.

use crate::exit::Failure;
use crate::output::CliOutput;
use crate::recognition::ImportEntry;
use crate::registry::{CommandEntry, Entry};
use clap::Args;
use kerntune_report::Subcommand;
use kerntune_work::WorkDir;
use std::fmt::Debug;

/// Additions of one crate. Only the list of rooms in `crates/cli/src/rooms.rs` names them.
pub struct Room {
    /// Commands, in the order of the overview.
    pub commands: &'static [&'static CommandEntry],
    /// Formats of `kerntune export`.
    pub exports: &'static [&'static Entry],
    /// Formats of `kerntune import`.
    pub imports: &'static [&'static ImportEntry],
    /// Stores that `kerntune check` reads.
    pub audits: &'static [&'static AuditEntry],
    /// Examples of the commands and formats: lines COMMAND, ARGUMENTS and what it does, separated by
    /// tabs.
    pub examples: &'static str,
}

impl Room {
    /// A room without additions, to fill in.
    pub const EMPTY: Self = Self { commands: &[], exports: &[], imports: &[], audits: &[], examples: "" };
}

/// Entry of an audit, whose name is the key of its findings in the JSON of `kerntune check`. Its
/// arguments become options of `check`.
pub type AuditEntry = Subcommand<dyn AuditStores>;

/// Makes the entry of an audit.
pub const fn audit<A: AuditStores + Args + 'static>(key: &'static str) -> AuditEntry {
    Subcommand::new::<A>(key, 0, |matches| Ok(Box::new(A::from_arg_matches(matches)?)))
}

/// Options that name stores outside of the results of the work directory.
pub trait AuditStores: Debug {
    /// Reads every file of the stores.
    ///
    /// # Errors
    /// A store that is missing or cannot be read; damage is a finding.
    fn audit(&self, work: &WorkDir, output: &CliOutput) -> Result<Vec<AuditedStore>, Failure>;
}

/// Findings in one store.
pub struct AuditedStore {
    /// Store and findings as JSON.
    pub document: serde_json::Value,
    /// A line for each finding, and one for the whole store.
    pub lines: Vec<String>,
    /// Set if there are no findings.
    pub is_whole: bool,
}
