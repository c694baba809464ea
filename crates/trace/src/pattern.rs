//! Patterns for functions, by name or source path (pure).

use wildmatch::WildMatch;

/// A pattern for functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionPattern {
    /// Function name with `*` and `?`. It is also that of the copies that a compiler makes
    /// (`NAME.constprop.0`).
    Name(String),
    /// Path of a source file or directory from the top of the source tree, with `*` and `?`.
    Path(String),
    /// Name of a source file without its directory.
    File(String),
}

impl FunctionPattern {
    /// Parses a pattern: `tcp_*` is a name, anything with a slash (`net/`, `net/ipv4/tcp.c`) a
    /// path, and `tcp.c` a file.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text.contains('/') {
            Self::Path(text.trim_matches('/').to_string())
        } else if [".c", ".S", ".h"].iter().any(|end| text.ends_with(end)) {
            Self::File(text.to_string())
        } else {
            Self::Name(text.to_string())
        }
    }

    /// Checks whether the pattern matches a function with these names, from that source file.
    pub fn matches<'a>(&self, mut names: impl Iterator<Item = &'a str>, file: Option<&str>) -> bool {
        match self {
            Self::Name(pattern) => names.any(|name| {
                // No function in C has a point in its name.
                let source = name.split_once('.').map_or(name, |(source, _)| source);
                glob(pattern, name) || glob(pattern, source)
            }),
            Self::File(pattern) => {
                file.is_some_and(|file| glob(pattern, file.rsplit('/').next().unwrap_or(file)))
            }
            // A directory matches everything below it.
            Self::Path(pattern) => file.is_some_and(|file| {
                let ends = file.match_indices('/').map(|(end, _)| end).chain([file.len()]);
                ends.into_iter().any(|end| glob(pattern, &file[..end]))
            }),
        }
    }
}

/// Matches with `*` (any characters) and `?` (one character).
fn glob(pattern: &str, text: &str) -> bool {
    WildMatch::new(pattern).matches(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_meant() {
        let file = Some("net/ipv4/tcp.c");
        let matches =
            |pattern: &str| FunctionPattern::parse(pattern).matches(["tcp_push", "alias"].into_iter(), file);
        for yes in [
            "tcp_*",
            "alias",
            "tcp_pus?",
            "net/",
            "net/ipv4",
            "net/ipv4/tcp.c",
            "tcp.c",
            "net/*/tcp*",
            "*/ipv4",
        ] {
            assert!(matches(yes), "{yes}");
        }
        for no in ["tcp", "ne/", "net/ipv", "ipv4/", "net/ipv4/tc", "cp.c", "tcp_push?", "/", ""] {
            assert!(!matches(no), "{no}");
        }
        assert!(!FunctionPattern::parse("net/").matches(["a"].into_iter(), None));
        let of_copy = |pattern: &str| {
            FunctionPattern::parse(pattern).matches(["tcp_push.constprop.0"].into_iter(), None)
        };
        assert!(of_copy("tcp_push") && of_copy("*push") && of_copy("tcp_push.constprop.?"));
        assert!(!of_copy("tcp_push.isra.0") && !of_copy("constprop"));
    }

    /// The definition of matching.
    fn simple(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.first(), text.first()) {
            (None, _) => text.is_empty(),
            (Some(b'*'), None) => simple(&pattern[1..], text),
            (Some(b'*'), Some(_)) => simple(&pattern[1..], text) || simple(pattern, &text[1..]),
            (Some(b'?'), Some(_)) => simple(&pattern[1..], &text[1..]),
            (Some(a), Some(b)) => a == b && simple(&pattern[1..], &text[1..]),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn globs_are_as_defined(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(glob(&pattern, &text), simple(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
