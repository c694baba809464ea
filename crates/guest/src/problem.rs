//! Problems of workload files, with their positions.

use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// A problem of a workload file or `guard.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Dotted path of the key, such as `measured.step[1].region`; empty for a syntax error.
    pub key: String,
    /// Description of the problem.
    pub message: String,
    /// Advice on what to do.
    pub help: Option<String>,
    /// True for a warning: an image can be built all the same.
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

/// Formats as `LINE:COLUMN: KEY: MESSAGE (HELP)`; callers prepend the path. Control characters are
/// escaped, since the file may be hostile to terminals.
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

/// Escapes control characters.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
        shown
    })
}

/// Returns the line and column, both from 1, of a byte offset; offsets past the end count as the
/// end.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Returns the candidate that `word` was probably meant to be.
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
        assert_eq!(meant("color", keys), None);
    }
}
