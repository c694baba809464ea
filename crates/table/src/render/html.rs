//! HTML for a page.
//!
//! Columns that begin aligned have the class `text`, heads of the others `number`; a table is in a
//! `div` of the class `scroll`, so that wide ones scroll by themselves. Names come first: they stay
//! visible on a narrow screen.

use crate::columns::Alignment;
use crate::document::{DocumentPart, TextDetail};
use crate::{Document, TableRows};
use maud::{html, Markup};

/// Renders lines as preformatted text and tables as tables, with all rows.
pub fn html(document: &Document) -> Markup {
    let mut blocks: Vec<Markup> = Vec::new();
    let mut lines = String::new();
    for part in &document.parts {
        match part {
            DocumentPart::Field(..) | DocumentPart::Text(_, _, TextDetail::Verbose) => {}
            DocumentPart::Text(_, text, _) => lines += text,
            DocumentPart::Table(of) if of.is_hidden() => {}
            DocumentPart::Table(of) => {
                blocks.push(preformatted(&std::mem::take(&mut lines)));
                blocks.push(table(&**of));
            }
        }
    }
    blocks.push(preformatted(&lines));
    html! { @for block in &blocks { (block) } }
}

fn preformatted(lines: &str) -> Markup {
    html! { @if !lines.trim().is_empty() { pre { (lines.trim_matches('\n')) } } }
}

fn table(table: &dyn TableRows) -> Markup {
    let specs: Vec<_> = table.specs().into_iter().filter(|spec| spec.head.is_some()).collect();
    let is_text = |at: usize| specs[at].alignment == Alignment::Left;
    let (mut order, numbers): (Vec<usize>, Vec<usize>) = (0..specs.len()).partition(|&at| is_text(at));
    order.extend(numbers);
    let head = |at: usize| specs[at].head.as_deref().unwrap_or_default().replace('\n', " ");
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.key()) {
            table {
                @if !table.title().1.is_empty() { caption { (table.title().1) } }
                thead {
                    tr {
                        @for &at in &order {
                            th scope="col" class={ @if is_text(at) { "text" } @else { "number" } }
                                title=[(!specs[at].help.is_empty()).then_some(specs[at].help)] { (head(at)) }
                        }
                    }
                }
                tbody {
                    @for cells in table.cells(usize::MAX) {
                        @if !cells.is_empty() {
                            tr {
                                @for &at in &order {
                                    td class=[is_text(at).then_some("text")] { (cells[at].0) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
