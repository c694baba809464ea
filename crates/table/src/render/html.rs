//! HTML for a page.
//!
//! Columns that begin aligned have the class `text`, heads of the others `number`; a table is in a
//! `div` of the class `scroll`, so that wide ones scroll by themselves.

use crate::columns::Alignment;
use crate::document::{Detail, Part};
use crate::{Document, TableRows};
use maud::{html, Markup};

/// Renders lines as preformatted text and tables as tables, with all rows.
pub fn html(document: &Document) -> Markup {
    html! {
        @for part in &document.parts {
            @match part {
                Part::Field(..) => {}
                Part::Text(_, _, Detail::Verbose) => {}
                Part::Text(_, text, _) => @if !text.trim().is_empty() { pre { (text.trim_matches('\n')) } }
                Part::Table(of) => @if !of.is_hidden() { (table(&**of)) }
            }
        }
    }
}

fn table(table: &dyn TableRows) -> Markup {
    let specs: Vec<_> = table.specs().into_iter().filter(|spec| spec.head.is_some()).collect();
    let is_text = |alignment| alignment == Alignment::Left;
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.key()) {
            table {
                @if !table.title().1.is_empty() { caption { (table.title().1) } }
                thead {
                    tr {
                        @for spec in &specs {
                            th scope="col" class={ @if is_text(spec.alignment) { "text" } @else { "number" } }
                                title=[(!spec.help.is_empty()).then_some(spec.help)] {
                                (spec.head.as_deref().unwrap_or_default().replace('\n', " "))
                            }
                        }
                    }
                }
                tbody {
                    @for cells in table.cells(usize::MAX) {
                        tr {
                            @for (cell, spec) in cells.iter().zip(&specs) {
                                td class=[is_text(spec.alignment).then_some("text")] { (cell.0) }
                            }
                        }
                    }
                }
            }
        }
    }
}
