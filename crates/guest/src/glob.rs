//! Patterns of a shell's words, expanded to the files of this machine (POSIX.1-2024, Shell Command Language, 2.14).

use std::path::{Path, PathBuf};

/// Paths that one pattern may stand for.
const PATHS_MAX: usize = 65_536;

/// The paths that a pattern stands for, sorted; none if it matches nothing. A backslash takes the meaning from a character.
/// A pattern without `/` at its beginning is relative to `directory`, and so are its paths.
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

/// Whether a name is one of those that a pattern stands for. Only the last `*` is ever tried again, so that it takes no more than
/// the product of both lengths.
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

/// Characters of the pattern that stand for this one of the name.
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

/// Of what stands after `[`: its length with the `]`, and whether it has the character. None if no `]` ends it.
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
