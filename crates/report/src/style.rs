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

impl Style {
    /// `text` in its colour. `text` must be ours: it is not looked at.
    pub(crate) fn paint(self, role: Role, text: &str) -> String {
        let code = match role {
            _ if !self.color || text.is_empty() => return text.into(),
            Role::Plain => return text.into(),
            Role::Head => "1",
            Role::Faint => "2",
            Role::Good => "32",
            Role::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Control characters out of names that come from other people's files, so that they cannot
/// write to the terminal what they like.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
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
        assert_eq!(printable("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
