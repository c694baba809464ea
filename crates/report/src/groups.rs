//! Groups of kernel functions: by source directory, or by a user's groups file.

use crate::pattern::{is_below, matches};
use crate::{Error, Result};
use kerntune_profile::{FunctionIndex, Symbol};

/// Top-level directories that are divided one level deeper by default.
const DEEP_DIRECTORIES: [&str; 8] = ["arch", "drivers", "fs", "kernel", "net", "security", "sound", "tools"];
/// Group of functions without a known source file.
pub(crate) const NO_SOURCE: &str = "[no source known]";
/// Group of functions that no line of a groups file matches.
pub(crate) const OTHER: &str = "[other]";

/// Rule that assigns functions to groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grouping {
    /// By source directory, this many path components deep. `None` means two below `arch`,
    /// `drivers`, `fs`, `kernel`, `net`, `security` and `sound`, and one elsewhere.
    Directory(Option<usize>),
    /// By a user's groups file.
    File(GroupsFile),
}

impl Default for Grouping {
    fn default() -> Self {
        Grouping::Directory(None)
    }
}

/// Groups file: lines of `name: pattern pattern …`, of which the first match decides. A pattern
/// with a `/` names a directory or file of the source (or is a glob over them); any other pattern
/// names functions (`*`, `?`). `#` begins a comment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupsFile {
    groups: Vec<(String, Vec<String>)>,
}

impl GroupsFile {
    /// Parses the text of a groups file; `origin` is the file's name, for error messages.
    ///
    /// # Errors
    /// [`Error::Groups`] with the number of the first line that is not a group.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let mut groups = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |reason: &'static str| Error::Groups { origin: origin.into(), line: number, reason };
            let (name, patterns) =
                line.split_once(':').ok_or_else(|| wrong("there is no colon after a group's name"))?;
            let patterns: Vec<String> = patterns.split_whitespace().map(Into::into).collect();
            match name.trim() {
                "" => return Err(wrong("the group has no name")),
                name if name.starts_with('[') => return Err(wrong("names in brackets are kerntune's own")),
                _ if patterns.is_empty() => return Err(wrong("the group has no patterns")),
                name => groups.push((name.to_string(), patterns)),
            }
        }
        match groups.is_empty() {
            true => Err(Error::Groups { origin: origin.into(), line: 1, reason: "there is no group in it" }),
            false => Ok(Self { groups }),
        }
    }

    fn of(&self, symbol: &Symbol) -> Option<&str> {
        let fits = |pattern: &String| match pattern.contains('/') {
            false => matches(pattern, &symbol.name),
            true => symbol.place().is_some_and(|place| is_below(place, pattern)),
        };
        self.groups.iter().find(|(_, patterns)| patterns.iter().any(fits)).map(|(name, _)| name.as_str())
    }
}

impl Grouping {
    /// Returns the group of a function.
    pub(crate) fn of(&self, symbols: &[Symbol], function: FunctionIndex) -> String {
        let Some(symbol) = symbols.get(function.get() as usize) else { return NO_SOURCE.into() };
        match self {
            Grouping::File(groups) => groups.of(symbol).unwrap_or(OTHER).into(),
            Grouping::Directory(depth) => {
                let file = symbol.file.as_deref().filter(|_| symbol.is_kernel());
                let place = file.and_then(|file| directory(file, *depth));
                place.or_else(|| symbol.module.clone()).unwrap_or_else(|| NO_SOURCE.into())
            }
        }
    }
}

/// Returns the first components of a path, without the file name; `None` for a bare file name.
fn directory(file: &str, depth: Option<usize>) -> Option<String> {
    let (directory, _) = file.rsplit_once('/')?;
    let first = directory.split('/').next()?;
    let depth = depth.unwrap_or(if DEEP_DIRECTORIES.contains(&first) { 2 } else { 1 }).max(1);
    Some(directory.split('/').take(depth).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::Address;

    fn symbol(name: &str, file: Option<&str>, module: Option<&str>) -> Symbol {
        Symbol {
            function: FunctionIndex(0),
            name: name.into(),
            address: Address(0),
            size: 0,
            file: file.map(Into::into),
            module: module.map(Into::into),
        }
    }

    fn group(grouping: &Grouping, name: &str, file: Option<&str>, module: Option<&str>) -> String {
        grouping.of(&[symbol(name, file, module)], FunctionIndex(0))
    }

    #[test]
    fn modules_are_in_the_directory_of_their_object() {
        let of = |address, file: Option<&str>, grouping: &Grouping| {
            let module = Symbol { address: Address(address), ..symbol("f", file, Some("nf_conntrack")) };
            grouping.of(&[module], FunctionIndex(0))
        };
        let (kernel, user) = (0xffff_ffff_c000_0000, 0x1000);
        let object = Some("net/netfilter/nf_conntrack.ko");
        let directories = Grouping::Directory(None);
        assert_eq!(of(kernel, object, &directories), "net/netfilter");
        assert_eq!(of(kernel, None, &directories), "nf_conntrack");
        assert_eq!(of(user, object, &directories), "nf_conntrack");
        let groups = Grouping::File(GroupsFile::parse("net: net/", "groups").unwrap());
        assert_eq!([kernel, user].map(|address| of(address, object, &groups)), ["net", OTHER]);
    }

    #[test]
    fn directories_are_as_deep_as_makes_sense() {
        let by = |depth, file| group(&Grouping::Directory(depth), "f", Some(file), None);
        for (file, expected) in [
            ("net/ipv4/tcp.c", "net/ipv4"),
            ("net/ipv4/netfilter/x.c", "net/ipv4"),
            ("net/socket.c", "net"),
            ("mm/kasan/report.c", "mm"),
            ("lib/iov_iter.c", "lib"),
            ("arch/x86/entry/entry_64.S", "arch/x86"),
            ("kernel/fork.c", "kernel"),
            ("kernel/sched/core.c", "kernel/sched"),
            ("tcp.c", NO_SOURCE),
        ] {
            assert_eq!(by(None, file), expected);
        }
        assert_eq!(by(Some(3), "arch/x86/entry/entry_64.S"), "arch/x86/entry");
        assert_eq!(by(Some(1), "net/ipv4/tcp.c"), "net");
        assert_eq!(by(Some(9), "net/ipv4/tcp.c"), "net/ipv4");
        let none = Grouping::default();
        assert_eq!(group(&none, "main", Some("main.c"), Some("/usr/bin/rr")), "/usr/bin/rr");
        assert_eq!(none.of(&[], FunctionIndex(3)), NO_SOURCE);
    }

    #[test]
    fn the_first_line_that_matches_counts() {
        let text = "# ours\nlocks: *_lock *spin* kernel/locking/\n\ntcp : net/ipv4/tcp*.c  # all of it\n\
                    network: net\nnet: net/ */rr\n";
        let groups = Grouping::File(GroupsFile::parse(text, "g").unwrap());
        let of = |name, file| group(&groups, name, Some(file), None);
        assert_eq!(of("_raw_spin_lock", "kernel/locking/spinlock.c"), "locks");
        assert_eq!(of("mutex_unlock_slow", "kernel/locking/mutex.c"), "locks");
        assert_eq!(of("tcp_ack", "net/ipv4/tcp_input.c"), "tcp");
        assert_eq!(of("ip_rcv", "net/ipv4/ip_input.c"), "net");
        assert_eq!(of("net", "mm/slub.c"), "network", "without a slash it is a function");
        assert_eq!(of("schedule", "kernel/sched/core.c"), OTHER);
        assert_eq!(group(&groups, "main", None, Some("/usr/bin/rr")), "net");
    }

    #[test]
    fn errors_have_line_numbers() {
        for (text, message) in [
            ("a: b\nnonsense\n", "groups.txt, line 2: there is no colon after a group's name"),
            ("a:\n", "groups.txt, line 1: the group has no patterns"),
            ("a: b\n\n: x\n", "groups.txt, line 3: the group has no name"),
            ("[idle]: x\n", "groups.txt, line 1: names in brackets are kerntune's own"),
            ("# nothing\n", "groups.txt, line 1: there is no group in it"),
        ] {
            assert_eq!(GroupsFile::parse(text, "groups.txt").unwrap_err().to_string(), message);
        }
    }
}
