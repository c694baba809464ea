//! Page of a study's tables.

use super::survey::section;
use super::{footer, scroll, CSS, SCRIPT};
use crate::findings::findings_rows;
use kerntune_paper::StudyOutcome;
use maud::{html, PreEscaped};

/// Content of the page, made by [`crate::study`].
pub(crate) struct StudyText {
    pub headline: String,
    pub kernels: Vec<String>,
    pub heads: Vec<String>,
    /// Rows of cells of each table.
    pub tables: Vec<Vec<Vec<String>>>,
    pub legend: Vec<(&'static str, &'static str)>,
}

/// Renders the page. `commands` reproduce it; `written` names the writer and the date.
pub(crate) fn study_page(
    outcome: &StudyOutcome,
    text: &StudyText,
    commands: &[String],
    written: &str,
) -> String {
    let body = html! {
        body {
            header {
                h1 { (outcome.title) }
                p.quiet {
                    (outcome.authors) ", " (outcome.published) ". The paper measured on " (outcome.paper_machine)
                    "; here workload " b { (outcome.workload) } " runs on machine " b { (outcome.machine) } "."
                }
                div.lead {
                    p { (text.headline) }
                    p { (outcome.about) }
                    @for kernel in &text.kernels { p.quiet { (kernel) } }
                }
            }
            main {
                @if !outcome.findings.is_empty() { (section(&findings_rows(&outcome.findings))) }
                @for (table, rows) in outcome.tables.iter().zip(&text.tables) {
                    section {
                        h2 { (table.title) }
                        @if !table.about.is_empty() { p.quiet { (table.about) } }
                        (scroll(&table.title, &html! {
                            table {
                                thead { tr { @for head in &text.heads { th { (head) } } } }
                                tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
                            }
                        }))
                    }
                }
                dl.legend {
                    @for (word, says) in &text.legend { dt { (word) } dd { (says) } }
                    dt { (outcome.abstraction) }
                    dd { (outcome.functions.join(", ")) }
                }
                @if let Some(commands) = super::runs::commands(commands) { (commands) }
            }
            (footer(written))
            script { (PreEscaped(SCRIPT)) }
        }
    };
    super::page(&outcome.title, None, &[CSS], &body)
}
