//! Expands shell patterns to files of this machine (POSIX.1-2024, Shell Command Language, 2.14).

use std::path::{Path, PathBuf};

/// Largest number of paths that a pattern may expand to.
const PATHS_MAX: usize = 65_536;

/// Returns the sorted paths that a pattern matches. A backslash quotes a character. Relative
/// patterns start at `directory`, and give relative paths.
pub(crate) fn expand(pattern: &str, directory: &Path) -> Vec<PathBuf> {
    let absolute = pattern.starts_with('/');
    let mut found = vec![PathBuf::from(if absolute { "/" } else { "" })];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let part: Vec<char> = part.chars().collect();
        let mut next = Vec::new();
        for base in &found {
            match is_pattern(&part) {
                false => {
                    let path = base.join(unescaped(&part));
                    next.extend(directory.join(&path).symlink_metadata().is_ok().then_some(path));
                }
                true => {
                    let entries = std::fs::read_dir(directory.join(base)).into_iter().flatten().flatten();
                    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
                    let hidden = part.first() == Some(&'.');
                    next.extend(
                        names
                            .filter(|name| hidden || !name.starts_with('.'))
                            .filter(|name| matches(&part, &name.chars().collect::<Vec<_>>()))
                            .map(|name| base.join(name)),
                    );
                }
            }
            if next.len() > PATHS_MAX {
                return Vec::new();
            }
        }
        found = next;
    }
    found.sort();
    found
}

fn is_pattern(part: &[char]) -> bool {
    let mut chars = part.iter();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

fn unescaped(part: &[char]) -> String {
    let (mut text, mut chars) = (String::new(), part.iter());
    while let Some(c) = chars.next() {
        text.push(if *c == '\\' { *chars.next().unwrap_or(c) } else { *c });
    }
    text
}

/// Checks whether a name matches a pattern. Backtracks only to the last `*`, so that the time is
/// bounded by the product of both lengths.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut here, mut star) = (0, 0, None);
    while here < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, here));
            at += 1;
            continue;
        }
        match one(&pattern[at..], name[here]) {
            Some(length) => {
                at += length;
                here += 1;
            }
            None => match &mut star {
                Some((after, from)) => {
                    *from += 1;
                    (at, here) = (*after + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// Returns the length of the pattern's first element if that matches the character.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', literal, ..] => (*literal == c).then_some(2),
        ['[', rest @ ..] => match set(rest, c) {
            Some((length, found)) => found.then_some(length + 1),
            None => (c == '[').then_some(1),
        },
        [literal, ..] => (*literal == c).then_some(1),
        [] => None,
    }
}

/// Parses a bracket expression after `[`: returns its length, `]` included, and whether it has the
/// character. `None` if no `]` ends it.
fn set(rest: &[char], c: char) -> Option<(usize, bool)> {
    let negated = matches!(rest.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let first = at;
    let mut found = false;
    loop {
        match (rest.get(at)?, rest.get(at + 1), rest.get(at + 2)) {
            (']', ..) if at > first => return Some((at + 1, found != negated)),
            (from, Some('-'), Some(to)) if *to != ']' => {
                found |= (*from..=*to).contains(&c);
                at += 3;
            }
            (literal, ..) => {
                found |= *literal == c;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_as_a_shell_does() {
        let is = |pattern: &str, name: &str| {
            matches(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        for (pattern, name) in [
            ("*.txt", "a.txt"),
            ("a*b*c", "axxbyyc"),
            ("?b", "ab"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("*", ""),
            ("\\*", "*"),
            ("[", "["),
            ("[]]", "]"),
            ("a[b", "a[b"),
            ("ü?", "üö"),
        ] {
            assert!(is(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.txt", "a.tx"), ("?", ""), ("[a-c]", "d"), ("[!a]", "a"), ("\\*", "a"), ("a", "ab")]
        {
            assert!(!is(pattern, name), "{pattern} {name}");
        }
        assert!(!is(&"*a".repeat(60), &"b".repeat(2000)));
    }

    #[test]
    fn patterns_are_expanded_from_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1.txt", "2.txt", ".3.txt", "x y.txt", "a*b"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/4.txt"), "").unwrap();
        let of = |pattern: &str| {
            expand(pattern, dir.path()).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("*.txt"), ["1.txt", "2.txt", "x y.txt"]);
        assert_eq!(of("*/*.txt"), ["sub/4.txt"]);
        assert_eq!(of("a\\*b"), ["a*b"]);
        assert_eq!(of("nothing*"), [""; 0]);
        let absolute = format!("{}/[12].*", dir.path().display());
        assert_eq!(expand(&absolute, Path::new("/")).len(), 2);
    }
}
