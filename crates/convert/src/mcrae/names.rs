//! Names files: which tag stands for what.

use std::collections::HashMap;
use std::fmt;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A function: an even tag at its entry, the next one at its exit.
    Function,
    /// `!`: a function in which the processor goes from one process to another.
    ContextSwitch,
    /// `~`: a function whose own time is idle. McRae's files have none: there the idle loop was within the context
    /// switch; Linux has a thread for it.
    Idle,
    /// `=`: a point inside of a function, with one tag.
    Inline,
}

impl Kind {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::ContextSwitch => "context-switch",
            Self::Idle => "idle",
            Self::Inline => "inline",
        }
    }

    /// How a names file writes it after the tag.
    pub fn modifier(self) -> &'static str {
        match self {
            Self::Function => "",
            Self::ContextSwitch => "!",
            Self::Idle => "~",
            Self::Inline => "=",
        }
    }
}

/// A line of a names file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The function, or the name of the point.
    pub name: String,
    /// The tag of the entry, or of the point.
    pub tag: u16,
    /// What it stands for.
    pub kind: Kind,
    /// File and line that say so.
    pub place: Place,
}

impl Name {
    /// Its greatest tag.
    pub fn last_tag(&self) -> u16 {
        match self.kind {
            Kind::Inline => self.tag,
            // Even, so that there is a next one.
            Kind::Function | Kind::ContextSwitch | Kind::Idle => self.tag | 1,
        }
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As the caller named the file.
    pub file: String,
    /// From 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What a tag says. Holds the number of the name in [`Names::all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A function begins.
    Entry(usize),
    /// A function ends.
    Exit(usize),
    /// A point is passed.
    Point(usize),
}

/// What can be wrong with names files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// A line that is none of the format's.
    #[error("{place}: `{text}`: {reason}; a line is NAME/TAG, with ! after the tag of a context switch, = after that of an inline trigger and ~ after that of a function that waits for work")]
    Line {
        /// Where.
        place: Place,
        /// The line.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that has a line already.
    #[error("{second}: {name} has a line already, at {first}; keep one of them")]
    NameTwice {
        /// The name.
        name: String,
        /// Where it stands first.
        first: Place,
        /// Where it stands again.
        second: Place,
    },
    /// A tag that stands for something already.
    #[error("{second}: tag {tag} of {name} is that of {other} already, at {first}; build what has one of them with another tag")]
    TagTwice {
        /// The tag, entry or exit.
        tag: u16,
        /// Whose it is.
        name: String,
        /// Whose it was.
        other: String,
        /// Where it stands first.
        first: Place,
        /// Where it stands again.
        second: Place,
    },
    /// Tags are used up.
    #[error("there is no tag left for {name}: the greatest is 65535; begin another names file, with tags of its own, for another part of the code")]
    Full {
        /// Who wants one.
        name: String,
    },
    /// A name that is in the file as something else.
    #[error("{place}: {name} is there as {found}, not as {wanted}; give it another name or change the line")]
    OtherKind {
        /// The name.
        name: String,
        /// Where it stands.
        place: Place,
        /// What it is there.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// Not a name.
    #[error("`{0}` cannot be a name: it is empty or has white space, `/` or `#` in it")]
    BadName(String),
    /// Two names that are one in C.
    #[error("{0} and {1} are the same word in C: rename one of them")]
    SameWord(String, String),
}

/// One or several names files together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    all: Vec<Name>,
    by_tag: HashMap<u16, Role>,
    by_name: HashMap<String, usize>,
}

impl Names {
    /// Reads files, each with the name that stands for it in errors, as if they were one. Empty lines
    /// and what follows a `#` at the beginning of a line are for people.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, NamesError> {
        let mut names = Self::default();
        for (file, text) in files {
            for (number, line) in text.lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let place = Place { file: file.to_owned(), line: number + 1 };
                names.add(parse_line(line, place)?)?;
            }
        }
        Ok(names)
    }

    /// The names in the order of their lines.
    pub fn all(&self) -> &[Name] {
        &self.all
    }

    /// What a tag says.
    pub fn role(&self, tag: u16) -> Option<Role> {
        self.by_tag.get(&tag).copied()
    }

    /// The line of a name.
    pub fn named(&self, name: &str) -> Option<&Name> {
        self.all.get(*self.by_name.get(name)?)
    }

    /// Adds one, if nothing has its name or tags.
    pub(super) fn add(&mut self, name: Name) -> Result<(), NamesError> {
        if let Some(other) = self.named(&name.name) {
            let (first, second) = (other.place.clone(), name.place);
            return Err(NamesError::NameTwice { name: name.name, first, second });
        }
        let number = self.all.len();
        let roles = match name.kind {
            Kind::Inline => vec![(name.tag, Role::Point(number))],
            _ => vec![(name.tag, Role::Entry(number)), (name.last_tag(), Role::Exit(number))],
        };
        for (tag, _) in &roles {
            if let Some(Role::Entry(other) | Role::Exit(other) | Role::Point(other)) = self.role(*tag) {
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

fn parse_line(line: &str, place: Place) -> Result<Name, NamesError> {
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
        "" => Kind::Function,
        "!" => Kind::ContextSwitch,
        "=" => Kind::Inline,
        "~" => Kind::Idle,
        _ => return Err(wrong("there is more than one modifier")),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("the tag is not a decimal number"));
    }
    let tag: u16 = digits.parse().map_err(|_| wrong("the tag is above 65535"))?;
    if kind != Kind::Inline && tag % 2 != 0 {
        return Err(wrong("the entry tag of a function is even, the next one is its exit"));
    }
    Ok(Name { name: name.to_owned(), tag, kind, place })
}

/// Whether it can stand in a names file.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '#']) && !name.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample of the paper.
    const PAPER: &str =
        "main/502\nhardclock/510\ngatherstats/512\nsoftclock/514\ntimeout/516\nuntimeout/518\nswtch/600!\nMGET/1002=\n";

    fn error(files: &[(&str, &str)]) -> String {
        Names::parse(files.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn the_papers_sample_is_read() {
        let names = Names::parse([("kernel.names", PAPER)]).unwrap();
        assert_eq!(names.all().len(), 8);
        assert_eq!(names.role(510), Some(Role::Entry(1)));
        assert_eq!(names.role(511), Some(Role::Exit(1)));
        assert_eq!(names.role(601), Some(Role::Exit(6)));
        assert_eq!(names.all()[6].kind, Kind::ContextSwitch);
        assert_eq!((names.role(1002), names.role(1003)), (Some(Role::Point(7)), None));
        assert_eq!(names.named("swtch").unwrap().place.to_string(), "kernel.names:7");
    }

    #[test]
    fn several_files_are_one_and_lines_for_people_are_passed_over() {
        let names = Names::parse([("a", "# mine\n\nf/2\r\n"), ("b", " g/4 !\n")]);
        // White space between tag and modifier is no number.
        assert!(names.is_err());
        let names = Names::parse([("a", "# mine\n\nf/2\r\n"), ("b", " g/4!\n")]).unwrap();
        assert_eq!(names.all()[1].place, Place { file: "b".into(), line: 1 });
    }

    #[test]
    fn duplicates_and_overlaps_name_both_places() {
        let text = error(&[("a", "f/2\n"), ("b", "g/4\n\nf/6\n")]);
        assert!(text.contains("b:3") && text.contains("a:1"), "{text}");
        let text = error(&[("a", "f/2\nx/3=\n")]);
        assert!(text.contains("a:2") && text.contains("a:1") && text.contains("tag 3 of x"), "{text}");
        let text = error(&[("a", "x/3=\nf/2\n")]);
        assert!(text.contains("tag 3 of f is that of x"), "{text}");
        // An inline tag may be odd, and need not leave its neighbour free.
        assert!(Names::parse([("a", "x/3=\ny/4=\nz/5=\n")]).is_ok());
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
            ("main/65536", "above 65535"),
            ("main/503", "even"),
            ("main/502!=", "more than one"),
            ("main/502==", "more than one"),
        ] {
            let text = error(&[("n", &format!("ok/2\n{line}\n"))]);
            assert!(text.contains("n:2") && text.contains(reason), "{line}: {text}");
        }
        assert_eq!(Names::parse([("n", "last/65534\n")]).unwrap().role(65535), Some(Role::Exit(0)));
    }
}
