//! One self-contained page: nothing is loaded from anywhere, it reads without scripts, in the
//! dark and on paper.

mod character;
mod chart;
pub mod clock;
mod comparison;
mod functions;
pub mod history;
mod join;
pub mod layouts;
pub mod paper;
pub mod profile;
mod runs;
mod study;
mod survey;

pub(crate) use character::{character_page, Section};
pub(crate) use study::{study_page, StudyText};
pub(crate) use survey::survey_page;

use crate::Result;
use kerntune_compare::number::{fixed, grouped};
use kerntune_compare::{Comparison, Outcome, Verdict};
use kerntune_profile::Profile;
use maud::{html, Markup, PreEscaped, DOCTYPE};
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

/// A whole page; `policy` is a Content-Security-Policy.
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
    // Control characters are not allowed in HTML, and of no use to a reader.
    page.0.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "\u{fffd}") + "\n"
}

fn footer(written: &str) -> Markup {
    html! { footer { "Written by " (written) "." } }
}

/// What is too wide for a small screen moves by itself.
fn scroll(label: &str, content: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (content) } }
}

/// A mark for figures of a front-end model.
fn model_tag(is_model: bool) -> Markup {
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
        // The totals are said by the tiles.
        @if verdict.outcome != Outcome::Unchanged { (comparison::tiles(&verdict)) }
    }
}

/// A figure of a profile: instructions of an exact one (`1.41 M`), time of another (`1.41 ms`).
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

/// A minus sign as wide as the plus sign, in place of the hyphen before a figure.
fn minus(figure: &str) -> String {
    match figure.strip_prefix('-') {
        Some(rest) => format!("\u{2212}{rest}"),
        None => figure.into(),
    }
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
