//! The page of one profile: its call tree, its functions with who calls whom and how long, and its
//! timeline. The data is packed into the page ([`pack`]), the scripts in `assets/` draw it; without
//! scripts the summary and the heaviest functions are there to read.

mod cpus;
mod data;
mod groups;
mod lanes;
mod moments;
mod numbers;
mod pack;
mod summary;
mod tree;
mod windows;

pub use windows::{windows, Choice};

use super::{footer, functions, runs, HtmlInput};
use crate::Result;
use data::{document, Pruning};
use kerntune_analyze::timeline::{Detail, Overview};
use kerntune_compare::number::grouped;
use kerntune_profile::Profile;
use kerntune_trace::Thread;
use maud::{html, Markup, PreEscaped};

/// Bins for [`kerntune_analyze::timeline::overview`].
pub const BINS: u32 = 6_000;

const CSS: &str = include_str!("../assets/profile.css");
const VIEWS: &str = include_str!("../assets/views.html");
/// One job each, in the order in which they need each other.
const SCRIPTS: [&str; 17] = [
    include_str!("../assets/begin.js"),
    include_str!("../assets/format.js"),
    include_str!("../assets/data.js"),
    include_str!("../assets/state.js"),
    include_str!("../assets/colour.js"),
    include_str!("../assets/tooltip.js"),
    include_str!("../assets/tree.js"),
    include_str!("../assets/canvas.js"),
    include_str!("../assets/icicle.js"),
    include_str!("../assets/moments.js"),
    include_str!("../assets/cpus.js"),
    include_str!("../assets/timeline.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/svg.js"),
    include_str!("../assets/neighbours.js"),
    include_str!("../assets/histogram.js"),
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
    /// Who wrote the page: `kerntune 0.1.0`.
    pub written: &'a str,
}

/// What was read of a trace.
#[derive(Debug, Clone)]
pub struct Timeline<'a> {
    /// [`kerntune_trace::Recording::threads`].
    pub threads: &'a [Thread],
    /// The whole.
    pub overview: Overview,
    /// The windows of [`windows`] with their calls.
    pub windows: Vec<(Choice, Detail)>,
}

/// The page, complete.
///
/// # Errors
/// [`crate::Error::NoRegion`]; nothing else is expected.
pub fn profile_page(page: &ProfilePage) -> Result<String> {
    let profile = page.profile;
    let document = document(profile, page.region, page.timeline)?;
    let packed = pack::pack(&document).map_err(serde_json::Error::io)?;
    let title = match page.region {
        Some(region) => format!("Kernel profile of {}: {region}", profile.manifest.workload),
        None => format!("Kernel profile of {}", profile.manifest.workload),
    };
    let functions = functions::section(Some(profile), None)?;
    let prose = [
        ("Recording", runs::section(Some(profile), None)?),
        ("How it was measured", runs::method(&HtmlInput { after: Some(profile), ..HtmlInput::default() })),
        ("What this page shows", Some(contents(document.pruning, page))),
    ];
    let body = html! {
        body.profile {
            header { h1 { (title) } (summary::header(page)?) }
            main {
                (PreEscaped(VIEWS))
                noscript { h2 { "Functions" } @if let Some(functions) = functions { (functions) } }
                @for (head, content) in prose {
                    @if let Some(content) = content { section.prose { h2 { (head) } (content) } }
                }
            }
            @if !page.written.is_empty() { (footer(page.written)) }
            script type="text/plain" id="kt-data" { (PreEscaped(packed)) }
            script { (PreEscaped("(() => {\n")) (PreEscaped(SCRIPTS.concat())) (PreEscaped("})();\n")) }
        }
    };
    Ok(super::page(&title, Some(POLICY), &[super::CSS, CSS], &body))
}

/// No page of ours loads anything; a browser is told to hold us to it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// What was cut, and how to see it.
fn contents(Pruning { nodes, kept, parts }: Pruning, page: &ProfilePage) -> Markup {
    html! {
        p {
            "Call tree: " (grouped(nodes as u64)) " paths, of which " (grouped(kept as u64)) " are shown one by one: those \
            with at least 1/" (grouped(parts)) " of their region by any weight. The others are in the grey boxes “N \
            smaller” beside their siblings, so that every sum is exact. All of them: "
            code { "kerntune report " (page.profile.manifest.id) " path" } "."
        }
        p {
            @if let Some(timeline) = page.timeline {
                "Timeline: time by thread in bins, and every single call in the windows that the list names: the first \
                 operations of each region, and the slowest call of the functions with the most time."
                @if !timeline.overview.cpu_slices.is_empty() {
                    " Each CPU has a lane of its own. The CPUs execute in turn on one clock: where a CPU is neither halted \
                     nor executes, it waits for its turn."
                }
            } @else {
                "Timeline: none, because the profile has no trace of function calls beside it."
            }
        }
    }
}
