//! Profile or comparison → text tables, JSON, HTML. Pure: models in, text out.
//!
//! - [`reports`]: what one profile's tables say, a file for each [`Report`]; text and JSON.
//! - [`comparison`]: two kernels against each other, text (its JSON is
//!   [`kerntune_compare::Comparison::to_json`]).
//! - [`mod@bench`]: timed results of two kernels against each other, text (its JSON is
//!   [`kerntune_stats::Comparison::to_json`]).
//! - [`paper`]: a paper's tables with ours beside them; text ([`markdown`] for a repository's documentation).
//! - [`prove`]: what a proof comes to, a paragraph.
//! - [`study`]: the same of a paper that changes its kernel by hand; text, Markdown, HTML.
//! - [`survey`]: what becomes of the findings of a paper that looks at a kernel; text, Markdown, HTML.
//! - [`path`]: what ran when, call by call (McRae's Figure 4), text and JSON.
//! - [`anatomy`]: what the calls of one function do, and before what; text and JSON.
//! - [`graph`]: gprof's call graph; text and JSON.
//! - [`subsystems`]: time by part of the kernel; text and JSON.
//! - [`diff`]: two profiles side by side; text and JSON.
//! - [`path_length`]: what makes an operation's path longer in another kernel, by call path; text and JSON.
//! - [`mod@characterise`]: what a workload is like, and how alike two are; text, JSON and HTML.
//! - [`names`]: a function by its name.
//! - [`html`]: all of it on one self-contained page.
//!
//! Text is coloured and cut to a width only where a [`Style`] says so. Every JSON document
//! names its schema; `docs/json.md` is the contract.
//!
//! ```
//! use kerntune_profile::{KernelId, Manifest, Profile, Tables};
//! use kerntune_report::{functions, Report, Style};
//! let manifest = Manifest::new("p1", KernelId::default(), "rr", "emulator");
//! let profile = Profile { manifest, tables: Tables::default() };
//! let options = functions::Options { top: Some(10), sort: functions::Sort::Calls, ..Default::default() };
//! let text = options.text(&profile, Style::PLAIN)?;
//! assert!(text.starts_with("Elapsed time         = 0 sec      0 us  (0 events)"));
//! # Ok::<(), kerntune_report::Error>(())
//! ```

pub mod advise;
pub mod anatomy;
pub mod bench;
mod call_graph;
pub mod characterise;
mod columns;
pub mod comparison;
mod counted;
pub mod diff;
mod findings;
pub mod graph;
mod groups;
mod head;
mod health;
pub mod html;
mod inlining;
mod layouts;
pub mod markdown;
mod memory;
mod models;
pub mod names;
pub mod paper;
pub mod path;
pub mod path_length;
mod pattern;
mod plain;
pub mod prediction;
pub mod prove;
pub mod reports;
mod sampled;
pub mod study;
mod style;
mod subcommand;
pub mod subsystems;
pub mod survey;
mod system_calls;
mod tally;
mod traffic;
mod unit;
mod view;
mod who;

pub use call_graph::{GraphOptions, Propagation};
pub use columns::plain_table;
pub use groups::{Grouping, Groups};
pub use head::of_profile;
pub use reports::*;
pub use style::{printable, printable_text, Style};
pub use subcommand::Subcommand;
pub use unit::{Measure, TimeUnit};
pub use view::scope;
pub use who::Who;

use kerntune_profile::Profile;

/// Rows shown in text where no number is asked for.
pub const TOP: usize = 40;

/// What can be wrong with what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The profile has no region of that name.
    #[error("the profile has no region \"{name}\"; it has {known}")]
    NoRegion {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A function's name that is none, or several functions'.
    #[error("{0}")]
    Name(#[from] names::NameError),
    /// No such thread or program.
    #[error("no {what} \"{name}\" ran{hint}")]
    NoThread {
        /// `thread` or `program`.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// Names that are near, or those that there are: the end of the message.
        hint: String,
    },
    /// Call paths do not tell threads of one name apart.
    #[error(
        "the profile has no trace, and its call paths do not distinguish threads of one name: select all \
         of them by the name \"{name}\""
    )]
    ThreadsOfOneName {
        /// Their name.
        name: String,
    },
    /// Without a trace nobody knows which thread's calls took how long.
    #[error(
        "single calls of these threads are not known: the profile has no trace, or none of their calls \
         ended"
    )]
    NoCallsByThread,
    /// Times of threads that do not sum: an error of kerntune's, or a trace of another profile.
    #[error("the functions of the threads take {parts} ns and the threads {whole} ns: the trace is not this profile's")]
    Threads {
        /// What the functions and user code sum to.
        parts: u64,
        /// What the threads have.
        whole: u64,
    },
    /// A trace that cannot be read.
    #[error(transparent)]
    Trace(kerntune_analyze::Error),
    /// Nothing to choose a call from.
    #[error("no call of {function} ended{}: there is none to show", .region.as_ref().map_or(String::new(), |name| format!(" in region {name}")))]
    NoCalls {
        /// The function.
        function: String,
        /// The regions that were looked at; all if none.
        region: Option<String>,
    },
    /// No call to look at.
    #[error("no call of {function} was seen from its entry to its exit{}: {cut} began or ended where nothing was recorded, {elsewhere} ended in other regions", .region.as_ref().map_or(String::new(), |name| format!(" in region {name}")))]
    NoneWhole {
        /// The function.
        function: String,
        /// The regions that were looked at; all if none.
        region: Option<String>,
        /// Calls of which some was not recorded.
        cut: u64,
        /// Calls in other regions.
        elsewhere: u64,
    },
    /// A profile without blocks.
    #[error("the profile has no executed blocks of the kernel: record again without --no-edges")]
    NoBlocks,
    /// A profile that was carried to another kernel: counts of branches alone are of that one.
    #[error(
        "profile {profile} is profile {from} transferred to another kernel: only its branches are of \
         that kernel, its times and operations are not; look at {from}"
    )]
    Carried {
        /// The profile.
        profile: String,
        /// The one that was recorded.
        from: String,
    },
    /// A rule that is none.
    #[error("rule {rule}: {why}")]
    Rule {
        /// Its name.
        rule: String,
        /// Where, and what is wrong.
        why: String,
    },
    /// A reference workload that is none.
    #[error("reference {reference}: {why}")]
    Reference {
        /// Its name, or the profile that was to become one.
        reference: String,
        /// What is wrong.
        why: String,
    },
    /// A set of functions with nothing in it.
    #[error("no function matches \"{pattern}\": give a name, a pattern with * and ?, or a directory of the source (net/ipv4)")]
    NoFunction {
        /// What was asked for.
        pattern: String,
    },
    /// There is no call graph of the profile.
    #[error("no call graph: {0}")]
    Graph(#[from] kerntune_analyze::graph::GraphError),
    /// A cut that cuts nothing.
    #[error("no call from a caller to a callee of \"{cut}\" was recorded{}: `report PROFILE graph --function \
         CALLEE` shows who calls it", .region.as_ref().map_or(String::new(), |name| format!(" in region {name}")))]
    NoArc {
        /// What was to be cut.
        cut: String,
        /// The regions that were looked at; all if none.
        region: Option<String>,
    },
    /// A file of groups that is none.
    #[error("{origin}, line {line}: {reason}")]
    Groups {
        /// The file.
        origin: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Nothing to divide by.
    #[error(
        "no operations were counted, so there is nothing to divide by: leave out --per-operation, or \
         choose a --region that counts them"
    )]
    NoOperations,
    /// No operations, so no path length.
    #[error(
        "no operations were counted, so there is no path length: choose a --region that counts them, or \
         see `report A diff B --paths`"
    )]
    NothingPerOperation,
    /// Times of a profile that are not instructions.
    #[error(
        "profile {profile} is not exact, so its times are not instructions: see `report A diff B \
         --paths`"
    )]
    NotExact {
        /// The profile.
        profile: String,
    },
    /// Parts of a difference that do not sum to it: an error of kerntune's.
    #[error("the parts of the difference sum to {parts} ns and not to {whole} ns: please report this")]
    Sum {
        /// What the parts sum to.
        parts: i128,
        /// What they should.
        whole: i128,
    },
    /// A document could not be written as JSON.
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Shorthand of this crate.
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
