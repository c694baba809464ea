//! How text is dressed for where it goes.

/// Where text goes. [`Style::PLAIN`] is for files and pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour (SGR escape sequences).
    pub color: bool,
    /// Columns of the terminal: lines longer than that are cut in their last column.
    pub width: Option<usize>,
}

impl Style {
    /// No colour, nothing cut.
    pub const PLAIN: Style = Style { color: false, width: None };
}

impl Default for Style {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// What a piece of text is; what colour that has is said here and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Head,
    Faint,
    Good,
    Bad,
}

// SGR codes (ECMA-48).
const END: &str = "0";
const HEAD: &str = "1";
const FAINT: &str = "2";
const GOOD: &str = "32";
const BAD: &str = "31";
/// What `kerntune doctor` paints what it warns of.
const WARN: &str = "33";
const CODES: [&str; 6] = [END, HEAD, FAINT, GOOD, BAD, WARN];

impl Style {
    /// `text` in its colour. `text` must be ours: it is not looked at.
    pub(crate) fn paint(self, role: Role, text: &str) -> String {
        let code = match role {
            _ if !self.color || text.is_empty() => return text.into(),
            Role::Plain => return text.into(),
            Role::Head => HEAD,
            Role::Faint => FAINT,
            Role::Good => GOOD,
            Role::Bad => BAD,
        };
        format!("\x1b[{code}m{text}\x1b[{END}m")
    }
}

/// A name from somebody's file with its control characters escaped as in JSON (`\u001b`): it must not steer the terminal, nor break
/// a table's line.
pub fn printable(name: &str) -> String {
    escaped(name, |_| 0)
}

/// The same for whole texts and JSON documents: newlines, tabs and, with `color`, our own colours stay.
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

/// `text` with control characters and those that reverse the direction of text escaped, but for what `ours` says: how
/// many bytes at the beginning of what it is shown stay as they are.
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
    fn colour_only_when_asked() {
        assert_eq!(Style::PLAIN.paint(Role::Good, "-1 %"), "-1 %");
        let colour = Style { color: true, width: None };
        assert_eq!(colour.paint(Role::Good, "-1 %"), "\x1b[32m-1 %\x1b[0m");
        assert_eq!(colour.paint(Role::Good, ""), "");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n\u{9b}m\u{202e}é"), "a\\u001b[2Jb\\u000a\\u009bm\\u202eé");
    }

    #[test]
    fn texts_keep_their_lines_and_our_colours_only() {
        let text =
            format!("{}\t\x1b[31;8mx\r\n", Style { color: true, width: None }.paint(Role::Good, "-1 %"));
        assert_eq!(printable_text(&text, true), "\x1b[32m-1 %\x1b[0m\t\\u001b[31;8mx\\u000d\n");
        assert!(!printable_text(&text, false).contains('\x1b'));
    }
}
