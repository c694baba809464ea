//! Text for a terminal.

use crate::document::{rest_line, DocumentPart, TextDetail};
use crate::table::aligned;
use crate::{Document, Style, TextRole};

/// Renders the lines and tables of a document.
pub fn text(document: &Document, style: Style) -> String {
    let hidden = if style.verbose { TextDetail::Brief } else { TextDetail::Verbose };
    let mut out = String::new();
    for part in &document.parts {
        match part {
            DocumentPart::Field(..) => {}
            DocumentPart::Text(_, _, detail) if *detail == hidden => {}
            DocumentPart::Text(role, text, _) => out += &painted(style, *role, text),
            DocumentPart::Table(table) if table.is_hidden() => {}
            DocumentPart::Table(table) => {
                if table.has_gap() {
                    out.push('\n');
                }
                let (role, title) = table.title();
                if !title.is_empty() {
                    out += &(style.paint(role, title) + "\n");
                }
                out += &aligned(&**table, table.shown()).render(style);
                let (noun, rest) = table.rest();
                if rest > 0 {
                    out += &painted(style, TextRole::Faint, &rest_line(rest, noun));
                }
            }
        }
    }
    out
}

/// Paints text, but not the newline at its end.
fn painted(style: Style, role: TextRole, text: &str) -> String {
    match text.strip_suffix('\n') {
        Some(line) if role != TextRole::Plain => style.paint(role, line) + "\n",
        _ => style.paint(role, text),
    }
}
