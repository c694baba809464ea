//! Page of a study's tables.

use super::findings::findings_rows;
use super::survey_page::section;
use crate::StudyOutcome;
use kerntune_report::html::{document, scroll};
use maud::html;

/// Content of the page, made by [`super::study`].
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
    let head = html! {
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
    };
    let content = html! {
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
    };
    document(&outcome.title, &head, &content, commands, written)
}
