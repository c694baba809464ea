//! Markdown, for documents and for `$GITHUB_STEP_SUMMARY`.

use crate::columns::Alignment;
use crate::document::{DocumentPart, TextDetail};
use crate::number::grouped;
use crate::{Document, TableRows};

/// Renders lines as a code block and tables as tables of GitHub's Markdown.
pub fn markdown(document: &Document) -> String {
    let mut out = String::new();
    let mut lines = String::new();
    for part in &document.parts {
        match part {
            DocumentPart::Field(..) => {}
            DocumentPart::Text(_, _, TextDetail::Verbose) => {}
            DocumentPart::Text(_, text, _) => lines += text,
            DocumentPart::Table(table) if table.is_hidden() => {}
            DocumentPart::Table(of) => {
                flush(&mut out, &mut lines);
                out += &table(&**of);
            }
        }
    }
    flush(&mut out, &mut lines);
    out
}

fn flush(out: &mut String, lines: &mut String) {
    let text = std::mem::take(lines);
    let text = text.trim_matches('\n');
    if !text.is_empty() {
        *out += &format!("```\n{text}\n```\n\n");
    }
}

fn table(table: &dyn TableRows) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let specs: Vec<_> = table.specs().into_iter().filter(|spec| spec.head.is_some()).collect();
    let mut out = match table.title().1 {
        "" => String::new(),
        title => format!("{}\n\n", escaped(title)),
    };
    out += &line(specs.iter().map(|spec| escaped(spec.head.as_deref().unwrap_or_default())).collect());
    let rule = |alignment| match alignment {
        Alignment::Left => "---",
        Alignment::Right => "---:",
    };
    out += &line(specs.iter().map(|spec| rule(spec.alignment).into()).collect());
    for cells in table.cells(table.shown()).into_iter().filter(|cells| !cells.is_empty()) {
        out += &line(cells.iter().map(|cell| escaped(&cell.0)).collect());
    }
    let (noun, rest) = table.rest();
    if rest > 0 {
        out += &format!("\n{}\n", format!("{} more {noun}", grouped(rest as u64)).trim_end());
    }
    out + "\n"
}

/// Escapes what would end a cell or be read as markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\n' => out.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '<' | '[' | ']' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}
