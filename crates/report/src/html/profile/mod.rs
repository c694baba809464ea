//! The page of one profile: its call tree, its functions with who calls whom and how long, and its
//! timeline. The data is packed into the page ([`pack`]), the scripts in `assets/` draw it; without
//! scripts the summary and the heaviest functions are there to read. A page in a file carries the trace, as far as it fits;
//! a served one asks its server for what it needs ([`Answers`]).

mod answers;
mod code;
mod cpus;
mod data;
mod groups;
mod lanes;
mod moments;
mod numbers;
mod pack;
mod summary;
mod sums;
mod tree;
mod windows;

pub use answers::Answers;
pub use code::{function_code, packed, BlockCounts, Code, CodeRow, FunctionCode, PlacedInstruction};
pub use sums::{Selected, Sums};
pub use windows::{windows, Choice};

use super::{amount, footer, functions, runs, HtmlInput};
use crate::Result;
use data::{document, Document, Pruning};
use kerntune_analyze::timeline::Overview;
use kerntune_compare::number::grouped;
use kerntune_profile::Profile;
use kerntune_trace::Recording;
use maud::{html, Markup, PreEscaped};

/// Bins for [`kerntune_analyze::timeline::overview`].
pub const BINS: u32 = 6_000;

const CSS: &str = include_str!("../assets/profile.css");
const VIEWS: &str = include_str!("../assets/views.html");
/// One job each, in the order in which they need each other; between the two what a page in a file and a served one differ in.
const FIRST: [&str; 11] = [
    include_str!("../assets/begin.js"),
    include_str!("../assets/format.js"),
    include_str!("../assets/data.js"),
    include_str!("../assets/state.js"),
    include_str!("../assets/raw.js"),
    include_str!("../assets/tree.js"),
    include_str!("../assets/zstd.js"),
    include_str!("../assets/trace.js"),
    include_str!("../assets/sums.js"),
    include_str!("../assets/select.js"),
    include_str!("../assets/calls.js"),
];
const EMBEDDED: &str = include_str!("../assets/embedded.js");
const SERVED: &str = include_str!("../assets/served.js");
const REST: [&str; 18] = [
    include_str!("../assets/view.js"),
    include_str!("../assets/colour.js"),
    include_str!("../assets/tooltip.js"),
    include_str!("../assets/canvas.js"),
    include_str!("../assets/trees.js"),
    include_str!("../assets/icicle.js"),
    include_str!("../assets/calltree.js"),
    include_str!("../assets/moments.js"),
    include_str!("../assets/cpus.js"),
    include_str!("../assets/timeline.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/svg.js"),
    include_str!("../assets/neighbours.js"),
    include_str!("../assets/histogram.js"),
    include_str!("../assets/code.js"),
    include_str!("../assets/search.js"),
    include_str!("../assets/chips.js"),
    include_str!("../assets/main.js"),
];

/// What goes on the page.
#[derive(Debug, Clone, Copy)]
pub struct ProfilePage<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Leaves out everything outside the regions of this name.
    pub region: Option<&'a str>,
    /// What was read of its trace, where there is one.
    pub timeline: Option<&'a Timeline<'a>>,
    /// A second profile, to be held against it.
    pub against: Option<&'a Profile>,
    /// Source and machine code of functions; none where a server is asked for them.
    pub code: Option<&'a Code>,
    /// Who wrote the page: `kerntune 0.1.0`.
    pub written: &'a str,
}

/// What was read of a trace.
#[derive(Debug, Clone)]
pub struct Timeline<'a> {
    /// What the recorder said.
    pub recording: &'a Recording,
    /// Whether events carry weights.
    pub wide: bool,
    /// The whole.
    pub overview: Overview,
    /// Where to go to.
    pub places: Vec<Place>,
    /// The trace's chunks in their order, as far as they go on the page.
    pub chunks: Vec<Embedded>,
}

/// A stretch of time worth looking at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What it shows, in words.
    pub label: String,
    /// Row of the symbols table of the function whose slowest call it is.
    pub function: Option<u32>,
    /// Virtual time, ns.
    pub begin: u64,
    /// Virtual time, ns.
    pub end: u64,
}

/// What becomes of a chunk of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Embedded {
    /// It is on the page: header and compressed bytes.
    Here(Vec<u8>),
    /// The server has it.
    Served,
    /// There is no room for it.
    LeftOut,
    /// Nothing in it is in the regions of the page.
    Elsewhere,
}

/// The page, complete.
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

fn finish(page: &ProfilePage, mut document: Document, served: bool) -> Result<String> {
    let profile = page.profile;
    let none = Code { rest: "This page was written without code.".into(), ..Code::default() };
    let code = (!served).then(|| document.put_code(page.code.unwrap_or(&none)));
    if let Some(against) = page.against {
        let region =
            page.region.filter(|region| against.tables.regions.iter().any(|row| row.name == **region));
        let (other, _) = data::document(against, region, None, &[])?;
        document.other = Some(Box::new(other));
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
    let scripts =
        [FIRST.concat(), (if served { SERVED } else { EMBEDDED }).to_owned(), REST.concat()].concat();
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
            script { (PreEscaped("(() => {\n")) (PreEscaped(scripts)) (PreEscaped("})();\n")) }
        }
    };
    let policy = if served { SERVED_POLICY } else { POLICY };
    Ok(super::page(&title, Some(policy), &[super::CSS, CSS], &body))
}

fn label(profile: &Profile) -> &str {
    &profile.manifest.kernel.label
}

/// No page of ours loads anything; a browser is told to hold us to it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
/// A served one asks its own server.
const SERVED_POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";

/// What was cut, and how to see it.
fn contents(Pruning { nodes, kept, parts }: Pruning, page: &ProfilePage, served: bool) -> Markup {
    html! {
        p {
            "Call tree: " (grouped(nodes as u64)) " paths, of which " (grouped(kept as u64)) " are shown one by one: those \
            with at least 1/" (grouped(parts)) " of their region by any weight. The others are in the grey boxes “N \
            smaller” beside their siblings, so that every sum is exact. All of them: "
            code { "kerntune report " (page.profile.manifest.id) " path" } "."
        }
        p {
            @if served || page.timeline.is_some() {
                @let chunks = page.timeline.map_or(&[][..], |timeline| &timeline.chunks);
                @let left = chunks.iter().filter(|chunk| **chunk == Embedded::LeftOut).count();
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
