//! What is wrong with a workload file, and where.

use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The dotted path of the key, e.g. `measured.step[1].region`; empty for a syntax error.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Whether it need not be wrong: an image is built all the same.
    pub warning: bool,
}

impl Problem {
    pub(crate) fn at(text: &str, span: Option<Range<usize>>, key: &str, message: String) -> Self {
        let (line, column) = position(text, span.map_or(0, |s| s.start));
        Self { line, column, key: key.to_owned(), message, help: None, warning: false }
    }

    pub(crate) fn warning(mut self) -> Self {
        self.warning = true;
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// `LINE:COLUMN: KEY: MESSAGE (HELP)`; the path is the caller's to put in front. The file is another's: its control characters
/// are shown, and do nothing to a terminal.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if self.warning {
            f.write_str("warning: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", escaped(&self.key))?;
        }
        write!(f, "{}", escaped(&self.message))?;
        match &self.help {
            Some(help) => write!(f, " ({})", escaped(help)),
            None => Ok(()),
        }
    }
}

/// The text with each control character as its escape.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
        shown
    })
}

/// Line and column, both from 1, of a byte offset; an offset past the end is the end.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The candidate that `word` was probably meant to be.
pub(crate) fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(3) / 3).min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let text = "a = 1\nb = \"ü\" # x\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, 6), (2, 1));
        assert_eq!(position(text, text.find('#').unwrap()), (2, 9));
        assert_eq!(position(text, 12), (2, 6));
        assert_eq!(position(text, 9999), (3, 1));
    }

    #[test]
    fn control_characters_are_shown() {
        let problem = Problem::at("", None, "a\u{7}", "\u{1b}[31mred".into()).help("\r\u{9b}x").warning();
        assert_eq!(problem.to_string(), "1:1: warning: a\\u{7}: \\u{1b}[31mred (\\r\\u{9b}x)");
    }

    #[test]
    fn the_nearest_word_is_suggested_only_if_near() {
        let keys = ["region", "operations", "command"];
        assert_eq!(meant("comand", keys), Some("command"));
        assert_eq!(meant("operation", keys), Some("operations"));
        assert_eq!(meant("colour", keys), None);
    }
}
