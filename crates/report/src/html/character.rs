//! The page of a workload's character.

use super::{footer, scroll, CSS, SCRIPT};
use crate::columns::{Side, Table};
use maud::{html, Markup, PreEscaped};

/// A section of a page.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// For links.
    pub id: &'static str,
    pub title: String,
    /// Before the table: what its figures are.
    pub about: Vec<String>,
    pub table: Option<Table>,
    /// Below the table.
    pub notes: Vec<String>,
}

impl Section {
    pub fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), about: Vec::new(), table: None, notes: Vec::new() }
    }
}

/// `lines` say what it is of, `words` what stands out.
pub(crate) fn character_page(
    title: &str,
    lines: &[String],
    words: &[String],
    sections: &[Section],
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

fn table(of: &Table) -> Markup {
    let is_text = |at: usize| of.heads.get(at).is_some_and(|(_, side)| *side == Side::Left);
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
