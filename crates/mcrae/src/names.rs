//! Names files, which assign tags to functions and points.

use kerntune_trace::TagLayout;
use std::collections::HashMap;
use std::fmt;

/// Kind of a name in a names file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagKind {
    /// Function: an even tag at its entry, the next one at its exit.
    Function,
    /// `!`: function in which the processor switches between processes.
    ContextSwitch,
    /// `~`: function whose self time is idle time. McRae's files have none: there the idle loop was
    /// within the context switch; Linux has a thread for it.
    Idle,
    /// `=`: point inside a function, with one tag.
    Inline,
}

impl TagKind {
    /// Returns the name of the kind in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::ContextSwitch => "context-switch",
            Self::Idle => "idle",
            Self::Inline => "inline",
        }
    }

    /// Returns the modifier after the tag in a names file.
    pub fn modifier(self) -> &'static str {
        match self {
            Self::Function => "",
            Self::ContextSwitch => "!",
            Self::Idle => "~",
            Self::Inline => "=",
        }
    }
}

/// Line of a names file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagName {
    /// Name of the function or point.
    pub name: String,
    /// Tag of the entry, or of the point.
    pub tag: u64,
    /// Kind of the name.
    pub kind: TagKind,
    /// File and line of the definition.
    pub place: FileLine,
}

impl TagName {
    /// Returns the greatest tag of the name: a function's exit.
    pub fn last_tag(&self) -> u64 {
        match self.kind {
            TagKind::Inline => self.tag,
            // The entry's tag is even, so the exit's fits.
            TagKind::Function | TagKind::ContextSwitch | TagKind::Idle => self.tag | 1,
        }
    }
}

/// Line of a file, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    /// Name of the file, as the caller gave it.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Meaning of a tag, with the index of its name in [`TagNames::all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagRole {
    /// Entry of a function.
    Entry(usize),
    /// Exit of a function.
    Exit(usize),
    /// Passage of a point.
    Point(usize),
}

/// Defect of names files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum NamesError {
    #[error("{place}: `{text}`: {reason}; a line is NAME/TAG, with ! after the tag of a context switch, = after that of an inline trigger and ~ after that of a function that waits for work")]
    Line { place: FileLine, text: String, reason: String },
    #[error("{second}: {name} has a line already, at {first}; keep one of them")]
    NameTwice { name: String, first: FileLine, second: FileLine },
    #[error("{second}: tag {tag} of {name} is that of {other} already, at {first}; build what has one of them with another tag")]
    TagTwice { tag: u64, name: String, other: String, first: FileLine, second: FileLine },
    #[error("there is no tag left for {name}: the greatest of {bits} bits is {max}; give more bits (--tag-bits), or begin another names file, with tags of its own, for another part of the code")]
    Full { name: String, bits: u32, max: u64 },
    #[error("{place}: tag {tag} of {name} is above {max}, the greatest of {bits} bits: give the width of the records (--tag-bits)")]
    Wide { place: FileLine, name: String, tag: u64, bits: u32, max: u64 },
    #[error("tag {tag} of {name} is above {max}: kt_tags.h sends at most 32 bits")]
    NoHeader { name: String, tag: u64, max: u64 },
    #[error("{place}: {name} is there as {found}, not as {wanted}; give it another name or change the line")]
    OtherKind { name: String, place: FileLine, found: &'static str, wanted: &'static str },
    #[error("`{0}` cannot be a name: it is empty or has white space, `/` or `#` in it")]
    BadName(String),
    #[error("{0} and {1} are the same word in C: rename one of them")]
    SameWord(String, String),
}

/// Names of one or several names files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagNames {
    all: Vec<TagName>,
    by_tag: HashMap<u64, TagRole>,
    by_name: HashMap<String, usize>,
}

impl TagNames {
    /// Parses files as if they were one. Each has a name for errors. Empty lines and lines that
    /// begin with `#` are ignored.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, NamesError> {
        let mut names = Self::default();
        for (file, text) in files {
            for (number, line) in text.lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let place = FileLine { file: file.to_owned(), line: number + 1 };
                names.add(parse_line(line, place)?)?;
            }
        }
        Ok(names)
    }

    /// Returns the names in the order of their lines.
    pub fn all(&self) -> &[TagName] {
        &self.all
    }

    /// Returns the meaning of a tag.
    pub fn role(&self, tag: u64) -> Option<TagRole> {
        self.by_tag.get(&tag).copied()
    }

    /// Finds a name.
    pub fn named(&self, name: &str) -> Option<&TagName> {
        self.all.get(*self.by_name.get(name)?)
    }

    /// Checks that every tag fits into records of this layout.
    ///
    /// # Errors
    /// [`NamesError::Wide`] for the first that does not.
    pub fn check_width(&self, layout: TagLayout) -> Result<(), NamesError> {
        let max = layout.max_tag();
        match self.all.iter().find(|name| name.last_tag() > max) {
            None => Ok(()),
            Some(wide) => Err(NamesError::Wide {
                place: wide.place.clone(),
                name: wide.name.clone(),
                tag: wide.last_tag(),
                bits: layout.tag_bits(),
                max,
            }),
        }
    }

    /// Adds a name, unless its name or a tag is in use.
    pub(super) fn add(&mut self, name: TagName) -> Result<(), NamesError> {
        if let Some(other) = self.named(&name.name) {
            let (first, second) = (other.place.clone(), name.place);
            return Err(NamesError::NameTwice { name: name.name, first, second });
        }
        let number = self.all.len();
        let roles = match name.kind {
            TagKind::Inline => vec![(name.tag, TagRole::Point(number))],
            _ => vec![(name.tag, TagRole::Entry(number)), (name.last_tag(), TagRole::Exit(number))],
        };
        for (tag, _) in &roles {
            if let Some(TagRole::Entry(other) | TagRole::Exit(other) | TagRole::Point(other)) =
                self.role(*tag)
            {
                let other = &self.all[other];
                return Err(NamesError::TagTwice {
                    tag: *tag,
                    name: name.name,
                    other: other.name.clone(),
                    first: other.place.clone(),
                    second: name.place,
                });
            }
        }
        self.by_tag.extend(roles);
        self.by_name.insert(name.name.clone(), number);
        self.all.push(name);
        Ok(())
    }
}

fn parse_line(line: &str, place: FileLine) -> Result<TagName, NamesError> {
    let wrong = |reason: &str| NamesError::Line {
        place: place.clone(),
        text: line.to_owned(),
        reason: reason.to_owned(),
    };
    let (name, value) = line.rsplit_once('/').ok_or_else(|| wrong("there is no `/`"))?;
    let (name, value) = (name.trim(), value.trim());
    if !is_name(name) {
        return Err(wrong("the name is empty or has white space, `/` or `#` in it"));
    }
    let digits = value.trim_end_matches(['!', '=', '~']);
    let kind = match &value[digits.len()..] {
        "" => TagKind::Function,
        "!" => TagKind::ContextSwitch,
        "=" => TagKind::Inline,
        "~" => TagKind::Idle,
        _ => return Err(wrong("there is more than one modifier")),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("the tag is not a decimal number"));
    }
    let tag: u64 = digits.parse().map_err(|_| wrong("the tag has more than 64 bits"))?;
    if kind != TagKind::Inline && tag % 2 != 0 {
        return Err(wrong("the entry tag of a function is even, the next one is its exit"));
    }
    Ok(TagName { name: name.to_owned(), tag, kind, place })
}

/// Checks whether a text can be a name in a names file.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '#']) && !name.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample of the paper.
    const PAPER: &str =
        "main/502\nhardclock/510\ngatherstats/512\nsoftclock/514\ntimeout/516\nuntimeout/518\nswtch/600!\nMGET/1002=\n";

    fn error(files: &[(&str, &str)]) -> String {
        TagNames::parse(files.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn the_papers_sample_is_read() {
        let names = TagNames::parse([("kernel.names", PAPER)]).unwrap();
        assert_eq!(names.all().len(), 8);
        assert_eq!(names.role(510), Some(TagRole::Entry(1)));
        assert_eq!(names.role(511), Some(TagRole::Exit(1)));
        assert_eq!(names.role(601), Some(TagRole::Exit(6)));
        assert_eq!(names.all()[6].kind, TagKind::ContextSwitch);
        assert_eq!((names.role(1002), names.role(1003)), (Some(TagRole::Point(7)), None));
        assert_eq!(names.named("swtch").unwrap().place.to_string(), "kernel.names:7");
    }

    #[test]
    fn several_files_are_one_and_lines_for_people_are_passed_over() {
        let names = TagNames::parse([("a", "# mine\n\nf/2\r\n"), ("b", " g/4 !\n")]);
        // White space between tag and modifier is an error.
        assert!(names.is_err());
        let names = TagNames::parse([("a", "# mine\n\nf/2\r\n"), ("b", " g/4!\n")]).unwrap();
        assert_eq!(names.all()[1].place, FileLine { file: "b".into(), line: 1 });
    }

    #[test]
    fn duplicates_and_overlaps_name_both_places() {
        let text = error(&[("a", "f/2\n"), ("b", "g/4\n\nf/6\n")]);
        assert!(text.contains("b:3") && text.contains("a:1"), "{text}");
        let text = error(&[("a", "f/2\nx/3=\n")]);
        assert!(text.contains("a:2") && text.contains("a:1") && text.contains("tag 3 of x"), "{text}");
        let text = error(&[("a", "x/3=\nf/2\n")]);
        assert!(text.contains("tag 3 of f is that of x"), "{text}");
        // An inline tag may be odd, and the next tag may be in use.
        assert!(TagNames::parse([("a", "x/3=\ny/4=\nz/5=\n")]).is_ok());
    }

    #[test]
    fn lines_that_are_none_are_told_with_their_place() {
        for (line, reason) in [
            ("main", "no `/`"),
            ("/502", "name"),
            ("a b/502", "white space"),
            ("main/", "decimal"),
            ("main/-2", "decimal"),
            ("main/0x10", "decimal"),
            ("main/18446744073709551616", "64 bits"),
            ("main/503", "even"),
            ("main/502!=", "more than one"),
            ("main/502==", "more than one"),
        ] {
            let text = error(&[("n", &format!("ok/2\n{line}\n"))]);
            assert!(text.contains("n:2") && text.contains(reason), "{line}: {text}");
        }
        let names = TagNames::parse([("n", "f/2\nlast/65534\nwide/65536\n")]).unwrap();
        assert_eq!((names.role(65535), names.role(65537)), (Some(TagRole::Exit(1)), Some(TagRole::Exit(2))));
        let error = names.check_width(TagLayout::MCRAE).unwrap_err().to_string();
        assert!(error.contains("n:3: tag 65537 of wide is above 65535"), "{error}");
        assert_eq!(names.check_width(TagLayout::new(17, 24, 1).unwrap()), Ok(()));
    }
}
