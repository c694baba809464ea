//! Reports on profiles and comparisons: text tables, JSON documents and HTML pages.
//!
//! All functions are pure: they take profiles or results and return text. Start from a report of
//! [`reports`] (they implement [`Report`]), or from [`html`] for pages.
//!
//! - [`reports`]: reports on one profile's tables, one file per [`Report`]; every form.
//! - [`comparison`]: comparison of two kernels, text (its JSON is
//!   [`kerntune_compare::Comparison::to_json`]).
//! - [`mod@bench`]: comparison of two kernels' timed results, text (its JSON is
//!   [`kerntune_stats::TimedComparison::to_json`]).
//! - [`prove`]: result of `kerntune prove` in one paragraph.
//! - [`path`]: trace of calls in time order (McRae's Figure 4), text and JSON.
//! - [`anatomy`]: what the calls of one function do, in total and before a boundary; every form.
//! - [`graph`]: gprof's call graph; every form.
//! - [`subsystems`]: time by subsystem of the kernel; every form.
//! - [`diff`]: two profiles side by side; every form.
//! - [`path_length`]: change of an operation's path length between two kernels, by call path; every
//!   form.
//! - [`mod@characterize`]: characterization of a workload and similarity to others; text, JSON and
//!   HTML.
//! - [`names`]: lookup of a function by its name.
//! - [`html`]: self-contained pages.
//!
//! Text is colored and cut to a width only as a [`Style`] says. Every JSON document names its
//! schema; `docs/json.md` is the contract.
//!
//! ```
//! use kerntune_profile::{KernelId, Manifest, Profile, Tables};
//! use kerntune_report::{functions, Report, Selection, Style};
//! let manifest = Manifest::new("p1", KernelId::default(), "rr", "emulator");
//! let profile = Profile { manifest, tables: Tables::default() };
//! let sort = functions::FunctionSort::Calls;
//! let select = Selection { top: Some(10), region: None };
//! let options = functions::FunctionsOptions { select, sort, ..Default::default() };
//! let text = options.text(&profile, Style::PLAIN)?;
//! assert!(text.starts_with("Elapsed time         = 0 sec      0 us  (0 events)"));
//! # Ok::<(), kerntune_report::Error>(())
//! ```

pub mod advise;
pub mod anatomy;
pub mod bench;
mod call_graph;
mod cgroups;
pub mod characterize;
pub mod comparison;
mod counted;
pub mod diff;
mod form;
pub mod graph;
mod groups;
mod head;
mod health;
pub mod html;
mod inlining;
mod layouts;
mod memory;
mod models;
pub mod names;
pub mod path;
pub mod path_length;
mod pattern;
pub mod prediction;
pub mod prove;
pub mod reports;
mod sampled;
mod selection;
mod side_by_side;
mod subcommand;
pub mod subsystems;
mod tally;
mod thread_filter;
mod traffic;
mod unit;
mod view;

pub use call_graph::{GraphOptions, Propagation};
pub use form::{render, ReportForm};
pub use groups::{Grouping, GroupsFile};
pub use head::profile_line;
pub use kerntune_table::columns::plain_table;
pub use kerntune_table::{printable, printable_text, DisplayUnit, Style, DEFAULT_ROWS};
pub use reports::*;
pub use subcommand::Subcommand;
pub use thread_filter::ThreadFilter;
pub use unit::TickUnit;
pub use view::scope;

use kerntune_profile::Profile;
use kerntune_work::{ClassifyError, ErrorClass};

/// Reason why a report cannot be made of a profile.
// Messages document the variants.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the profile has no region \"{name}\"; it has {known}")]
    NoRegion { name: String, known: String },
    #[error("{0}")]
    Name(#[from] names::NameError),
    #[error("no {what} \"{name}\" ran{hint}")]
    NoThread {
        /// `thread` or `program`.
        what: &'static str,
        name: String,
        /// End of the message: similar names, or the names that exist.
        hint: String,
    },
    #[error(
        "the profile has no trace, and its call paths do not distinguish threads of one name: select all \
         of them by the name \"{name}\""
    )]
    ThreadsOfOneName { name: String },
    #[error(
        "single calls of these threads are not known: the profile has no trace, or none of their calls \
         ended"
    )]
    NoCallsByThread,
    /// Also raised if kerntune's own sums are wrong.
    #[error("the functions of the threads take {parts} ns and the threads {whole} ns: the trace is not this profile's")]
    Threads {
        /// Sum over functions and user code.
        parts: u64,
        /// Sum over threads.
        whole: u64,
    },
    #[error(transparent)]
    Trace(kerntune_analyze::Error),
    #[error("no call of {function} ended{}: there is none to show", .region.as_ref().map_or(String::new(), |name| format!(" in region {name}")))]
    NoCalls {
        function: String,
        /// Selected region; `None` for all.
        region: Option<String>,
    },
    #[error("no call of {function} was seen from its entry to its exit{}: {cut} began or ended where nothing was recorded, {elsewhere} ended in other regions", .region.as_ref().map_or(String::new(), |name| format!(" in region {name}")))]
    NoneWhole {
        function: String,
        /// Selected region; `None` for all.
        region: Option<String>,
        /// Calls that were recorded only in part.
        cut: u64,
        /// Calls that ended in other regions.
        elsewhere: u64,
    },
    #[error("the profile has no executed blocks of the kernel: record again without --no-edges")]
    NoBlocks,
    #[error("the profile has no exact calls of the kernel: record the workload on a kernel in the emulator, with all functions")]
    NoExactCalls,
    #[error(
        "profile {profile} is profile {from} transferred to another kernel: only its branches are of \
         that kernel, its times and operations are not; look at {from}"
    )]
    Transferred {
        profile: String,
        /// Id of the recorded profile.
        from: String,
    },
    #[error("rule {rule}: {why}")]
    Rule { rule: String, why: String },
    #[error("reference {reference}: {why}")]
    Reference {
        /// Name of the reference, or id of the profile that was to become one.
        reference: String,
        why: String,
    },
    #[error("no function matches \"{pattern}\": give a name, a pattern with * and ?, or a directory of the source (net/ipv4)")]
    NoFunction { pattern: String },
    #[error("no call graph: {0}")]
    Graph(#[from] kerntune_analyze::graph::GraphError),
    #[error("no call from a caller to a callee of \"{cut}\" was recorded{}: `report PROFILE graph --function \
         CALLEE` shows who calls it", .region.as_ref().map_or(String::new(), |name| format!(" in region {name}")))]
    NoArc {
        cut: String,
        /// Selected region; `None` for all.
        region: Option<String>,
    },
    #[error("{origin}, line {line}: {reason}")]
    Groups {
        /// Name of the groups file.
        origin: String,
        /// Line number, from 1.
        line: usize,
        reason: &'static str,
    },
    #[error(
        "no operations were counted, so there is nothing to divide by: leave out --per-operation, or \
         choose a --region that counts them"
    )]
    NoOperations,
    #[error(
        "no operations were counted, so there is no path length: choose a --region that counts them, or \
         see `report A diff B --paths`"
    )]
    NothingPerOperation,
    #[error(
        "profile {profile} is not exact, so its times are not instructions: see `report A diff B \
         --paths`"
    )]
    NotExact { profile: String },
    /// Internal error: the parts of a difference do not sum to it.
    #[error("the parts of the difference sum to {parts} ns and not to {whole} ns: please report this")]
    Sum { parts: i128, whole: i128 },
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Trace(_) => ErrorClass::RecordingFailure,
            _ => ErrorClass::Usage,
        }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    fn no_region(name: &str, profile: &Profile) -> Self {
        let known: Vec<_> = view::regions(profile).into_iter().map(|row| row.name).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        Error::NoRegion { name: name.into(), known }
    }
}

fn to_json(document: &impl serde::Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}
