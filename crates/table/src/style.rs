//! Terminal styling: colors, width, and escaping of untrusted text.

/// Styling of text for its destination. Use [`Style::PLAIN`] for files and pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Colors text with SGR escape sequences.
    pub color: bool,
    /// Width of the terminal in columns; tables cut their last column to it. `None` cuts nothing.
    pub width: Option<usize>,
    /// Prints remarks in full, not in a line each.
    pub verbose: bool,
}

impl Style {
    /// No colors, no cutting, short remarks.
    pub const PLAIN: Style = Style { color: false, width: None, verbose: false };
}

impl Default for Style {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// Role of a piece of text; decides its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// Default color.
    Plain,
    /// Heading.
    Head,
    /// Remark.
    Faint,
    /// Improvement.
    Good,
    /// Regression or fault.
    Bad,
}

// SGR codes (ECMA-48).
const END: &str = "0";
const HEAD: &str = "1";
const FAINT: &str = "2";
const GOOD: &str = "32";
const BAD: &str = "31";
/// SGR code of warnings in `kerntune doctor`.
const WARN: &str = "33";
const CODES: [&str; 6] = [END, HEAD, FAINT, GOOD, BAD, WARN];

impl Style {
    /// Colors `text` by its role. `text` is not escaped and must be trusted.
    pub fn paint(self, role: TextRole, text: &str) -> String {
        let code = match role {
            _ if !self.color || text.is_empty() => return text.into(),
            TextRole::Plain => return text.into(),
            TextRole::Head => HEAD,
            TextRole::Faint => FAINT,
            TextRole::Good => GOOD,
            TextRole::Bad => BAD,
        };
        format!("\x1b[{code}m{text}\x1b[{END}m")
    }
}

/// Escapes control characters in an untrusted name as in JSON (`\u001b`), so that it can neither
/// control the terminal nor break a table's line.
pub fn printable(name: &str) -> String {
    escaped(name, |_| 0)
}

/// Escapes control characters in whole texts and JSON documents. Newlines, tabs and, with `color`,
/// our own color codes stay.
pub fn printable_text(text: &str, color: bool) -> String {
    escaped(text, |rest| match rest.as_bytes()[0] {
        b'\n' | b'\t' => 1,
        b'\x1b' if color => CODES
            .iter()
            .map(|code| format!("\x1b[{code}m"))
            .find(|ours| rest.starts_with(ours))
            .map_or(0, |ours| ours.len()),
        _ => 0,
    })
}

/// Escapes control characters and bidirectional overrides in `text`. `ours` returns how many bytes
/// at the beginning of its argument stay as they are.
fn escaped(text: &str, ours: impl Fn(&str) -> usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let reverses = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let kept = if c.is_control() || reverses { ours(rest) } else { c.len_utf8() };
        match kept {
            0 => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                rest = &rest[c.len_utf8()..];
            }
            kept => {
                out.push_str(&rest[..kept]);
                rest = &rest[kept..];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_only_when_asked() {
        assert_eq!(Style::PLAIN.paint(TextRole::Good, "-1 %"), "-1 %");
        let color = Style { color: true, ..Style::PLAIN };
        assert_eq!(color.paint(TextRole::Good, "-1 %"), "\x1b[32m-1 %\x1b[0m");
        assert_eq!(color.paint(TextRole::Good, ""), "");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n\u{9b}m\u{202e}é"), "a\\u001b[2Jb\\u000a\\u009bm\\u202eé");
    }

    #[test]
    fn texts_keep_their_lines_and_our_colors_only() {
        let text = format!(
            "{}\t\x1b[31;8mx\r\n",
            Style { color: true, ..Style::PLAIN }.paint(TextRole::Good, "-1 %")
        );
        assert_eq!(printable_text(&text, true), "\x1b[32m-1 %\x1b[0m\t\\u001b[31;8mx\\u000d\n");
        assert!(!printable_text(&text, false).contains('\x1b'));
    }
}
