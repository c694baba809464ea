//! The page of one profile: its call tree, its functions with who calls whom and how long, and its
//! timeline. The data is packed into the page ([`pack`]), the scripts in `assets/` draw it; without
//! scripts the summary and the heaviest functions are there to read.

mod data;
mod groups;
mod moments;
mod numbers;
mod pack;
mod summary;
mod tree;
mod windows;

pub use windows::{windows, Choice};

use super::escape::Escaped;
use super::{functions, runs};
use crate::Result;
use data::{document, Pruning};
use kerntune_analyze::timeline::{Detail, Overview};
use kerntune_compare::number::grouped;
use kerntune_profile::Profile;
use kerntune_trace::Thread;
use std::fmt::Write;

/// Bins for [`kerntune_analyze::timeline::overview`].
pub const BINS: u32 = 6_000;

const CSS: &str = include_str!("../assets/profile.css");
const VIEWS: &str = include_str!("../assets/views.html");
/// One job each, in the order in which they need each other.
const SCRIPTS: [&str; 16] = [
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
    let mut out = String::with_capacity(packed.len() + (1 << 17));
    // No page of ours loads anything; a browser is told to hold us to it.
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                  script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n";
    super::head(&mut out, &title, policy, &[super::CSS, CSS]);
    let _ = write!(out, "<body class=\"profile\">\n<header>\n<h1>{}</h1>\n", Escaped(&title));
    summary::header(&mut out, page)?;
    out.push_str("</header>\n<main>\n");
    out.push_str(VIEWS);
    let functions = functions::section(Some(profile), None)?;
    let _ = write!(out, "<noscript>\n<h2>Functions</h2>\n{functions}</noscript>\n");
    section(&mut out, "Recording", &runs::section(Some(profile), None)?);
    section(
        &mut out,
        "How it was measured",
        &runs::method(&super::HtmlInput { after: Some(profile), ..super::HtmlInput::default() }),
    );
    section(&mut out, "What this page shows", &contents(document.pruning, page));
    out.push_str("</main>\n");
    if !page.written.is_empty() {
        let _ = writeln!(out, "<footer>Written by {}.</footer>", Escaped(page.written));
    }
    let _ =
        write!(out, "<script type=\"text/plain\" id=\"kt-data\">{packed}</script>\n<script>\n(() => {{\n");
    SCRIPTS.iter().for_each(|script| out.push_str(script));
    out.push_str("})();\n</script>\n</body>\n</html>\n");
    Ok(out)
}

fn section(out: &mut String, head: &str, content: &str) {
    if !content.is_empty() {
        let _ = write!(out, "<section class=\"prose\">\n<h2>{head}</h2>\n{content}</section>\n");
    }
}

/// What was cut, and how to see it.
fn contents(Pruning { nodes, kept, parts }: Pruning, page: &ProfilePage) -> String {
    let id = Escaped(&page.profile.manifest.id);
    let mut out = format!(
        "<p>Call tree: {} paths, of which {} are shown one by one: those with at least 1/{} of their region by \
         any weight. The others are in the grey boxes “N smaller” beside their siblings, so that every sum is \
         exact. All of them: <code>kerntune report {id} path</code>.</p>\n",
        grouped(nodes as u64),
        grouped(kept as u64),
        grouped(parts),
    );
    out.push_str(if page.timeline.is_some() {
        "<p>Timeline: time by thread in bins, and every single call in the windows that the list names: the first \
         operations of each region, and the slowest call of the functions with the most time.</p>\n"
    } else {
        "<p>Timeline: none, because the profile has no trace of function calls beside it.</p>\n"
    });
    out
}
