//! HTML for a page.

use crate::columns::Alignment;
use crate::document::Part;
use crate::{Document, TableRows};
use maud::{html, Markup};

/// Renders lines as preformatted text and tables as tables; `class="n"` marks numbers.
pub fn html(document: &Document) -> Markup {
    html! {
        @for part in &document.parts {
            @match part {
                Part::Field(..) => {}
                Part::Text(_, text) => @if !text.trim().is_empty() { pre { (text.trim_matches('\n')) } }
                Part::Table(of) => @if !of.is_hidden() { (table(&**of)) }
            }
        }
    }
}

fn table(table: &dyn TableRows) -> Markup {
    let specs: Vec<_> = table.specs().into_iter().filter(|spec| spec.head.is_some()).collect();
    let class = |alignment| (alignment == Alignment::Right).then_some("n");
    html! {
        div.wide {
            table {
                @if !table.title().1.is_empty() { caption { (table.title().1) } }
                thead {
                    tr {
                        @for spec in &specs {
                            th scope="col" class=[class(spec.alignment)]
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
                                td class=[class(spec.alignment)] { (cell.0) }
                            }
                        }
                    }
                }
            }
        }
    }
}
