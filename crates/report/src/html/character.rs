//! Page of a workload's characterization.

use super::{footer, scroll, CSS, SCRIPT};
use kerntune_table::columns::{Alignment, TextTable};
use maud::{html, Markup, PreEscaped};

/// Section of a page.
#[derive(Debug, Clone)]
pub(crate) struct PageSection {
    /// Anchor for links.
    pub id: &'static str,
    pub title: String,
    /// Explanations before the table.
    pub about: Vec<String>,
    pub table: Option<TextTable>,
    /// Remarks below the table.
    pub notes: Vec<String>,
}

impl PageSection {
    pub fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), about: Vec::new(), table: None, notes: Vec::new() }
    }
}

/// Renders the page; `lines` identify the profile, `words` describe notable figures.
pub(crate) fn character_page(
    title: &str,
    lines: &[String],
    words: &[String],
    sections: &[PageSection],
    notes: &[String],
    written: &str,
) -> String {
    let body = html! {
        body {
            header {
                h1 { (title) }
                @for line in lines { p.quiet { (line) } }
                div.lead { @for sentence in words { p { (sentence) } } }
                @for note in notes { p.note { (note) } }
                nav aria-label="Contents" {
                    @for section in sections { a href={ "#" (section.id) } { (section.title) } }
                }
            }
            main {
                @for section in sections {
                    section id=(section.id) {
                        h2 { (section.title) }
                        @for line in &section.about { p.quiet { (line) } }
                        @if let Some(of) = &section.table { (scroll(&section.title, &table(of))) }
                        @for line in &section.notes { p { (line) } }
                    }
                }
            }
            (footer(written))
            script { (PreEscaped(SCRIPT)) }
        }
    };
    super::page(title, None, &[CSS], &body)
}

fn table(of: &TextTable) -> Markup {
    let is_text = |at: usize| of.heads.get(at).is_some_and(|(_, side)| *side == Alignment::Left);
    html! {
        table.long {
            thead {
                tr {
                    @for (at, (head, _)) in of.heads.iter().enumerate() {
                        th.text[is_text(at)].number[!is_text(at)] scope="col" { (head.replace('\n', " ")) }
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
