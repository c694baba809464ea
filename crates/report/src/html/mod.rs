//! One self-contained page: nothing is loaded from anywhere, it reads without scripts, in the
//! dark and on paper.

mod chart;
mod comparison;
mod escape;
mod functions;
mod join;
pub mod paper;
pub mod profile;
mod runs;

use crate::Result;
use escape::Escaped;
use kerntune_compare::{Comparison, Outcome, Verdict};
use kerntune_profile::Profile;
use std::fmt::Write;
use std::time::Duration;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Functions that the page shows; all of them are in `kerntune report PROFILE functions`.
pub const TOP_FUNCTIONS: usize = 100;

/// What goes on the page. Every part may be missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct HtmlInput<'a> {
    /// The page's title.
    pub title: &'a str,
    /// Both kernels against each other.
    pub comparison: Option<&'a Comparison>,
    /// A profile of the base kernel.
    pub before: Option<&'a Profile>,
    /// A profile of the tuned kernel.
    pub after: Option<&'a Profile>,
    /// Where everything comes from: sources, configs, flags, hashes.
    pub provenance: &'a [Provenance],
    /// The commands that repeat it, a line each.
    pub commands: &'a [String],
    /// What was done.
    pub steps: &'a [StepLine],
    /// Who wrote the page and when: `kerntune 0.1.0, 2025-06-01`.
    pub written: &'a str,
}

/// A line of provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// What: `kernel config`.
    pub what: String,
    /// Its value for the base kernel, or for both.
    pub base: String,
    /// Its value for the tuned kernel, where it differs in kind.
    pub tuned: Option<String>,
}

/// A step of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLine {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub result: String,
    /// How long it took; none if it was done before.
    pub took: Option<Duration>,
    /// Whether an earlier call began it, whose time is not in `took`.
    pub resumed: bool,
}

/// The page, complete.
pub fn report(input: &HtmlInput) -> Result<String> {
    let mut main = String::new();
    let mut contents = Vec::new();
    let mut section = |id: &'static str, head: &'static str, content: String| {
        if !content.is_empty() {
            let _ = write!(main, "<section id=\"{id}\">\n<h2>{head}</h2>\n{content}</section>\n");
            contents.push((id, head));
        }
    };
    if let Some(comparison) = input.comparison {
        section("change", "Change by operation", comparison::pictures(comparison));
        section("figures", "Figures", comparison::table(comparison));
    }
    section("functions", "Functions", functions::section(input.before, input.after)?);
    section("runs", "Recordings", runs::section(input.before, input.after)?);
    section("method", "How it was measured", runs::method(input));
    section("provenance", "Provenance", runs::provenance(input));
    section("steps", "Steps", runs::steps(input.steps));
    section("repeat", "Repeat it", runs::commands(input.commands));

    let mut page = String::with_capacity(main.len() + CSS.len() + SCRIPT.len() + 4096);
    let title = if input.title.is_empty() { "kerntune report" } else { input.title };
    head(&mut page, title, "", &[CSS]);
    let _ = write!(page, "<body>\n<header>\n<h1>{}</h1>\n", Escaped(title));
    page.push_str(&subtitle(input));
    if let Some(comparison) = input.comparison {
        page.push_str(&summary(comparison));
    }
    page.push_str("<nav aria-label=\"Contents\">");
    for (id, head) in contents {
        let _ = write!(page, "<a href=\"#{id}\">{head}</a>");
    }
    let _ = write!(page, "</nav>\n</header>\n<main>\n{main}</main>\n");
    if !input.written.is_empty() {
        let _ = writeln!(page, "<footer>Written by {}.</footer>", Escaped(input.written));
    }
    let _ = write!(page, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    Ok(page)
}

/// Everything before the body; `meta` is markup.
fn head(page: &mut String, title: &str, meta: &str, styles: &[&str]) {
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"kerntune\">\n{meta}<title>{}</title>\n<style>\n{}</style>\n</head>\n",
        Escaped(title),
        styles.concat(),
    );
}

fn subtitle(input: &HtmlInput) -> String {
    let text = match (input.comparison, input.before.or(input.after)) {
        (Some(comparison), _) => format!(
            "Workload <b>{}</b> on machine <b>{}</b>: {} against {}.",
            Escaped(&comparison.workload),
            Escaped(&comparison.machine),
            Escaped(&comparison.tuned.label),
            Escaped(&comparison.base.label),
        ),
        (None, Some(profile)) => format!(
            "Workload <b>{}</b> on machine <b>{}</b>: {}.",
            Escaped(&profile.manifest.workload),
            Escaped(&profile.manifest.machine),
            Escaped(&profile.manifest.kernel.label),
        ),
        (None, None) => return String::new(),
    };
    format!("<p class=\"quiet\">{text}</p>\n")
}

fn summary(comparison: &Comparison) -> String {
    let verdict = Verdict::new(comparison);
    let mut out = String::from("<div class=\"lead\">\n");
    let _ = writeln!(out, "<p>{}</p>", Escaped(signs(&verdict.headline())));
    for warning in verdict.warnings() {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", Escaped(warning));
    }
    out.push_str("</div>\n");
    // The totals are said by the tiles.
    if verdict.outcome != Outcome::Unchanged {
        out.push_str(&comparison::tiles(&verdict));
    }
    out
}

/// Minus signs for the hyphens before figures of a sentence.
fn signs(sentence: &str) -> String {
    let mut out = String::with_capacity(sentence.len());
    let mut chars = sentence.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let sign = c == '-' && before == ' ' && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if sign { '\u{2212}' } else { c });
        before = c;
    }
    out
}
