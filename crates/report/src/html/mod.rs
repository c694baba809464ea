//! Self-contained HTML pages: nothing is loaded from elsewhere; they are readable without scripts,
//! in dark mode, and on paper.
//!
//! Start from [`report()`] for a comparison, and from [`profile`] for the interactive page of one
//! profile.

mod character;
mod chart;
pub mod clock;
mod comparison;
mod functions;
pub mod history;
mod join;
pub mod layouts;
pub mod profile;
mod runs;

pub(crate) use character::{character_page, PageSection};
pub use chart::px;

use crate::Result;
use kerntune_compare::{Comparison, OverallChange, Verdict};
use kerntune_profile::Profile;
use kerntune_table::number::{fixed, grouped};
use kerntune_table::Document;
use maud::{html, Markup, PreEscaped, DOCTYPE};
use std::time::Duration;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Number of functions on the page; `kerntune report PROFILE functions` shows all.
pub const TOP_FUNCTIONS: usize = 100;

/// Input of the comparison page. Every part is optional.
#[derive(Debug, Clone, Copy, Default)]
pub struct HtmlInput<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Comparison of both kernels.
    pub comparison: Option<&'a Comparison>,
    /// Profile of the base kernel.
    pub before: Option<&'a Profile>,
    /// Profile of the tuned kernel.
    pub after: Option<&'a Profile>,
    /// Provenance: sources, configurations, flags, hashes.
    pub provenance: &'a [ProvenanceLine],
    /// Commands that reproduce the results, a line each.
    pub commands: &'a [String],
    /// Steps of the tuning loop.
    pub steps: &'a [StepLine],
    /// Writer of the page, and date: `kerntune 0.1.0, 2025-06-01`.
    pub written: &'a str,
}

/// Line of the provenance table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenanceLine {
    /// Name of the property: `kernel config`.
    pub what: String,
    /// Value for the base kernel, or for both.
    pub base: String,
    /// Value for the tuned kernel; `None` if it is the same.
    pub tuned: Option<String>,
}

/// Step of the tuning loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLine {
    /// Name of the step.
    pub name: String,
    /// Result of the step in a line.
    pub result: String,
    /// Duration; `None` if the step had been done before.
    pub took: Option<Duration>,
    /// An earlier run began the step; its time is not in `took`.
    pub resumed: bool,
}

/// Renders the complete page.
pub fn report(input: &HtmlInput) -> Result<String> {
    let all = [
        ("change", "Change by operation", input.comparison.map(comparison::pictures)),
        ("figures", "Figures", input.comparison.map(comparison::tables)),
        ("layouts", "Luck of layout", input.comparison.and_then(layouts::section)),
        ("functions", "Functions", functions::section(input.before, input.after)?),
        ("runs", "Recordings", runs::section(input.before, input.after)?),
        ("method", "How it was measured", runs::method(input)),
        ("provenance", "Provenance", runs::provenance(input)),
        ("steps", "Steps", runs::steps(input.steps)),
        ("repeat", "Repeat it", runs::commands(input.commands)),
    ];
    let sections: Vec<_> =
        all.into_iter().filter_map(|(id, head, content)| Some((id, head, content?))).collect();
    let title = if input.title.is_empty() { "kerntune report" } else { input.title };
    let body = html! {
        body {
            header {
                h1 { (title) }
                @if let Some(subtitle) = subtitle(input) { p.quiet { (subtitle) } }
                @if let Some(comparison) = input.comparison { (summary(comparison)) }
                nav aria-label="Contents" {
                    @for (id, head, _) in &sections { a href={ "#" (id) } { (head) } }
                }
            }
            main {
                @for (id, head, content) in &sections { section id=(id) { h2 { (head) } (content) } }
            }
            @if !input.written.is_empty() { (footer(input.written)) }
            script { (PreEscaped(SCRIPT)) }
        }
    };
    Ok(page(title, None, &[CSS], &body))
}

/// Renders a report's document as a page without scripts; `heading` names the profile.
pub fn document_page(heading: &str, document: &Document) -> String {
    // The first sentence, without the page of the documentation that it refers to.
    let sentence = document.about.split(". ").next().unwrap_or_default();
    let title = sentence.split(" ([").next().unwrap_or_default().trim_end_matches('.');
    let body = html! {
        body {
            header { h1 { (title) } p.quiet { (heading) } }
            main { section { (kerntune_table::render::html(document)) } }
        }
    };
    page(title, None, &[CSS], &body)
}

/// Wraps `body` in a page; `policy` is a Content-Security-Policy.
fn page(title: &str, policy: Option<&str>, styles: &[&str], body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="kerntune";
                @if let Some(policy) = policy { meta http-equiv="Content-Security-Policy" content=(policy); }
                title { (title) }
                style { (PreEscaped(styles.concat())) }
            }
            (body)
        }
    };
    // HTML does not allow control characters.
    page.0.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "\u{fffd}") + "\n"
}

/// Renders a page: head, content, the commands that reproduce it, and its writer and date.
pub fn document(title: &str, head: &Markup, content: &Markup, commands: &[String], written: &str) -> String {
    let body = html! {
        body {
            header { (head) }
            main {
                (content)
                @if let Some(commands) = runs::commands(commands) { (commands) }
            }
            (footer(written))
            script { (PreEscaped(SCRIPT)) }
        }
    };
    page(title, None, &[CSS], &body)
}

fn footer(written: &str) -> Markup {
    html! { footer { "Written by " (written) "." } }
}

/// Wraps content that may be too wide for a small screen, so that it scrolls by itself.
pub fn scroll(label: &str, content: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (content) } }
}

/// Renders the mark of figures of a front-end model.
pub fn model_tag(is_model: bool) -> Markup {
    html! { @if is_model { " " span.tag.model { "model" } } }
}

fn subtitle(input: &HtmlInput) -> Option<Markup> {
    let of = |workload: &str, machine: &str, what: &str| {
        html! { "Workload " b { (workload) } " on machine " b { (machine) } ": " (what) "." }
    };
    if let Some(comparison) = input.comparison {
        let Comparison { workload, machine, tuned, base, .. } = comparison;
        return Some(of(workload, machine, &format!("{} against {}", tuned.label, base.label)));
    }
    let manifest = &input.before.or(input.after)?.manifest;
    Some(of(&manifest.workload, &manifest.machine, &manifest.kernel.label))
}

fn summary(comparison: &Comparison) -> Markup {
    let verdict = Verdict::new(comparison);
    html! {
        div.lead {
            @if let Some(whole) = verdict.whole() { p { (signs(&whole)) } }
            p { (signs(&verdict.headline())) }
            @for warning in verdict.warnings() { p.note { (warning) } }
        }
        // The tiles state the totals.
        @if verdict.outcome != OverallChange::Unchanged { (comparison::tiles(&verdict)) }
    }
}

/// Formats a figure of a profile: instructions if exact (`1.41 M`), else time (`1.41 ms`).
fn amount(ns: u64, exact: bool) -> String {
    match ns {
        _ if !exact => crate::unit::readable(ns),
        0..=9_999 => grouped(ns),
        10_000..=999_499 => format!("{} k", fixed(ns as f64 / 1e3, 1)),
        _ => match fixed(ns as f64 / 1e6, 2) {
            small if ns < 100_000_000 => format!("{small} M"),
            _ => format!("{} M", grouped((ns + 500_000) / 1_000_000)),
        },
    }
}

/// Replaces the hyphen before a figure with a minus sign, which is as wide as the plus sign.
pub fn minus(figure: &str) -> String {
    match figure.strip_prefix('-') {
        Some(rest) => format!("\u{2212}{rest}"),
        None => figure.into(),
    }
}

/// Replaces hyphens before figures in a sentence with minus signs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let nasty = "</td><script>alert(\"1\" & '2')\x1b";
        let page = page(nasty, None, &[], &html! { body id=(nasty) {} });
        let escaped = "&lt;/td&gt;&lt;script&gt;alert(&quot;1&quot; &amp; '2')\u{fffd}";
        assert_eq!(page.matches(escaped).count(), 2, "{page}");
        assert!(!page.contains("<script"));
        assert_eq!(minus("-3.1 %"), "\u{2212}3.1 %");
        let figures = [9_999, 12_345, 999_700, 1_234_567, 2_681_408_370];
        assert_eq!(figures.map(|ns| amount(ns, true)), ["9,999", "12.3 k", "1.00 M", "1.23 M", "2,681 M"]);
        assert_eq!(amount(5_024, false), "5.02 us");
    }
}
