//! Page of a survey's findings, tables and figures.

use super::findings::SurveyRows;
use crate::SurveyOutcome;
use kerntune_report::html::{document, scroll};
use maud::{html, Markup};

/// Renders the page. `commands` reproduce it; `written` names the writer and the date.
pub(crate) fn survey_page(
    outcome: &SurveyOutcome,
    headline: &str,
    runs: &[String],
    tables: &[SurveyRows],
    legend: &[(&'static str, &'static str)],
    commands: &[String],
    written: &str,
) -> String {
    let head = html! {
        h1 { (outcome.title) }
        p.quiet {
            (outcome.authors) ", " (outcome.published) ". The paper measured on " (outcome.paper_machine) "."
        }
        div.lead {
            p { (headline) }
            p { (outcome.about) }
        }
    };
    let content = html! {
        @for of in tables { (section(of)) }
        @for of in &outcome.figures {
            section {
                h2 { (of.title) }
                @if !of.about.is_empty() { p.quiet { (of.about) } }
                (scroll(&of.title, &html! { pre { (of.text) } }))
            }
        }
        section {
            h2 { "Recordings" }
            @for run in runs { p.quiet { (run) } }
        }
        dl.legend { @for (word, says) in legend { dt { (word) } dd { (says) } } }
    };
    document(&outcome.title, &head, &content, commands, written)
}

/// Renders findings, or another table, as a section.
pub(super) fn section(of: &SurveyRows) -> Markup {
    html! {
        section {
            h2 { (of.title) }
            @if !of.about.is_empty() { p.quiet { (of.about) } }
            (scroll(&of.title, &table(of)))
        }
    }
}

fn table(of: &SurveyRows) -> Markup {
    let is_text = |at: usize| of.heads.get(at).is_some_and(|(_, number)| !number);
    html! {
        table.prose {
            thead {
                tr {
                    @for (at, (head, _)) in of.heads.iter().enumerate() {
                        th.text[is_text(at)].number[!is_text(at)] scope="col" { (head) }
                    }
                }
            }
            tbody {
                @for row in &of.rows {
                    tr { @for (at, cell) in row.iter().enumerate() { td.text[is_text(at)] { (cell) } } }
                }
            }
        }
    }
}
