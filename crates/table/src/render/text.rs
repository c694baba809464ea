//! Text for a terminal.

use crate::document::Part;
use crate::number::grouped;
use crate::table::aligned;
use crate::{Document, Style, TextRole};

/// Renders the lines and tables of a document.
pub fn text(document: &Document, style: Style) -> String {
    let mut out = String::new();
    for part in &document.parts {
        match part {
            Part::Field(..) => {}
            Part::Text(role, text) => match text.strip_suffix('\n') {
                Some(line) if *role != TextRole::Plain => out += &(style.paint(*role, line) + "\n"),
                _ => out += &style.paint(*role, text),
            },
            Part::Table(table) if table.is_hidden() => {}
            Part::Table(table) => {
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
                    let noun = if noun.is_empty() { String::new() } else { format!(" {noun}") };
                    let line = format!("{} more{noun} (--top)\n", grouped(rest as u64));
                    out += &style.paint(TextRole::Faint, &line);
                }
            }
        }
    }
    out
}
