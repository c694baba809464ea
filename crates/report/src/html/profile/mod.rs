//! Interactive page of one profile: call tree, functions with callers, callees and times, and
//! timeline.
//!
//! The data is packed into the page ([`pack`]) and drawn by the modules in `scripts/`. Without
//! scripts, the summary and the heaviest functions are readable. A page in a file embeds as much of
//! the trace as fits; a served page requests data from its server ([`PageAnswers`]).

mod answers;
mod code;
mod cpus;
mod data;
mod groups;
mod lanes;
mod moments;
mod numbers;
mod pack;
mod pairs;
mod summary;
mod sums;
mod tree;
mod windows;

pub use answers::PageAnswers;
pub use code::{function_code, packed, BlockCounts, CodeRow, FunctionCode, PageCode, PlacedInstruction};
pub use sums::{SelectionTables, TraceSums};
pub use windows::{windows, CallWindow};

use super::{amount, footer, functions, runs, HtmlInput};
use crate::Result;
use data::{document, PageDocument, TreePruning};
use kerntune_analyze::timeline::TimelineOverview;
use kerntune_profile::Profile;
use kerntune_table::number::grouped;
use kerntune_trace::Recording;
use maud::{html, Markup, PreEscaped};

/// Number of bins for [`kerntune_analyze::timeline::overview`].
pub const BINS: u32 = 6_000;

const CSS: &str = include_str!("../assets/profile.css");
const VIEWS: &str = include_str!("../assets/views.html");
/// Scripts of a page in a file and of a served page: the modules in `scripts/`, bundled by build.rs.
const FILE_SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/file.js"));
const SERVED_SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/served.js"));

/// Input of a profile's page.
#[derive(Debug, Clone, Copy)]
pub struct ProfilePage<'a> {
    /// Profile to show.
    pub profile: &'a Profile,
    /// Leaves out everything outside the regions of this name.
    pub region: Option<&'a str>,
    /// Timeline of the profile's trace; `None` without a trace.
    pub timeline: Option<&'a TraceTimeline<'a>>,
    /// Second profile for comparison.
    pub against: Option<&'a Profile>,
    /// Source and machine code of functions; `None` if a server provides them.
    pub code: Option<&'a PageCode>,
    /// Writer of the page: `kerntune 0.1.0`.
    pub written: &'a str,
}

/// Overview of a trace, and the parts of it that the page embeds.
#[derive(Debug, Clone)]
pub struct TraceTimeline<'a> {
    /// Recording that the trace belongs to.
    pub recording: &'a Recording,
    /// Events carry weights: taken branches and misses.
    pub wide: bool,
    /// Overview of the whole trace, in bins.
    pub overview: TimelineOverview,
    /// Places that the page offers to jump to.
    pub places: Vec<TimelinePlace>,
    /// Chunks of the trace in order, with their storage.
    pub chunks: Vec<ChunkStorage>,
}

/// Stretch of time that the page offers to jump to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelinePlace {
    /// Description for the reader.
    pub label: String,
    /// Row of the symbol table, if the place is a function's slowest call.
    pub function: Option<u32>,
    /// Begin in virtual time, ns.
    pub begin: u64,
    /// End in virtual time, ns.
    pub end: u64,
}

/// Storage of a chunk of the trace: where a page finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkStorage {
    /// Embedded in the page: header and compressed bytes.
    Here(Vec<u8>),
    /// Requested from the server.
    Served,
    /// Left out for lack of space.
    LeftOut,
    /// Left out because it has nothing of the page's regions.
    Elsewhere,
}

/// Renders the complete page.
///
/// # Errors
/// [`crate::Error::NoRegion`]; nothing else is expected.
pub fn profile_page(page: &ProfilePage) -> Result<String> {
    write(page)
}

fn write(page: &ProfilePage) -> Result<String> {
    let threads = page.timeline.map_or(&[][..], |timeline| &timeline.recording.threads);
    let (document, _) = document(page.profile, page.region, page.timeline, threads)?;
    finish(page, document, false)
}

fn finish(page: &ProfilePage, mut document: PageDocument, served: bool) -> Result<String> {
    let profile = page.profile;
    let none = PageCode { rest: "This page was written without code.".into(), ..PageCode::default() };
    let code = (!served).then(|| document.put_code(page.code.unwrap_or(&none)));
    if let Some(against) = page.against {
        let region =
            page.region.filter(|region| against.tables.regions.iter().any(|row| row.name == **region));
        let (other, _) = data::document(against, region, None, &[])?;
        document.other = Some(pairs::paired(&mut document, other));
    }
    let packed = pack::pack(&document).map_err(serde_json::Error::io)?;
    let trace = page.timeline.filter(|_| !served).map(|timeline| moments::embedded(&timeline.chunks));
    let title = match (page.region, page.against) {
        (_, Some(against)) => {
            format!("{} and {} on {}", label(profile), label(against), profile.manifest.workload)
        }
        (Some(region), None) => format!("Kernel profile of {}: {region}", profile.manifest.workload),
        (None, None) => format!("Kernel profile of {}", profile.manifest.workload),
    };
    let functions = functions::section(Some(profile), None)?;
    let prose = [
        ("Recording", runs::section(Some(profile), None)?),
        ("How it was measured", runs::method(&HtmlInput { after: Some(profile), ..HtmlInput::default() })),
        ("What this page shows", Some(contents(document.pruning, page, served))),
    ];
    let script = if served { SERVED_SCRIPT } else { FILE_SCRIPT };
    let body = html! {
        body.profile {
            header { h1 { (title) } (summary::header(page)) }
            main {
                (PreEscaped(VIEWS))
                noscript { h2 { "Functions" } @if let Some(functions) = functions { (functions) } }
                section.prose { h2 { "The recording in figures" } (summary::figures(page)?) }
                @for (head, content) in prose {
                    @if let Some(content) = content { section.prose { h2 { (head) } (content) } }
                }
            }
            @if !page.written.is_empty() { (footer(page.written)) }
            script type="text/plain" id="kt-data" { (PreEscaped(packed)) }
            @if let Some(trace) = trace { script type="text/plain" id="kt-trace" { (PreEscaped(trace)) } }
            @if let Some(code) = code { script type="text/plain" id="kt-code" { (PreEscaped(code)) } }
            script { (PreEscaped("(() => {\n\"use strict\";\n")) (PreEscaped(script)) (PreEscaped("})();\n")) }
        }
    };
    let policy = if served { SERVED_POLICY } else { POLICY };
    Ok(super::page(&title, Some(policy), &[super::CSS, CSS], &body))
}

fn label(profile: &Profile) -> &str {
    &profile.manifest.kernel.label
}

/// Content-Security-Policy of a page in a file: it loads nothing.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
/// Content-Security-Policy of a served page: it loads from its server only.
const SERVED_POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";

/// Describes what was cut from the page, and how to see it.
fn contents(TreePruning { nodes, kept, parts }: TreePruning, page: &ProfilePage, served: bool) -> Markup {
    html! {
        p {
            "Call tree: " (grouped(nodes as u64)) " paths, of which " (grouped(kept as u64)) " are shown one by one: those \
            with at least 1/" (grouped(parts)) " of their region by any weight. The others are in the gray boxes “N \
            smaller” beside their siblings, so that every sum is exact. All of them: "
            code { "kerntune report " (page.profile.manifest.id) " path" } "."
        }
        p {
            @if served || page.timeline.is_some() {
                @let chunks = page.timeline.map_or(&[][..], |timeline| &timeline.chunks);
                @let left = chunks.iter().filter(|chunk| **chunk == ChunkStorage::LeftOut).count();
                "Timeline: time by thread in bins; zoomed in, every single call. "
                @if served { "The server reads it out of the trace. " }
                @else if left == 0 { "The whole trace is on the page: a selection is added up from its events. " }
                @else {
                    "Of the trace's " (grouped(chunks.len() as u64)) " parts " (grouped(left as u64)) " are not on the page, \
                     which would be too large: a selection that needs one is refused. All of it: "
                    code { "kerntune view " (page.profile.manifest.id) } ". "
                }
                "In a selection, calls are those that begin and end in it."
                @if page.timeline.is_some_and(|timeline| !timeline.overview.cpu_slices.is_empty()) {
                    " Each CPU has a lane of its own. The CPUs execute in turn on one clock: a CPU that is \
                     neither halted nor executing waits for its turn."
                }
            } @else {
                "Timeline: none, because the profile has no trace of function calls beside it."
            }
        }
    }
}
