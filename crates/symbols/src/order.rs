//! Source files of a kernel without debug information: by names that other kernels have, and by the order in which kernels
//! are linked.
//!
//! A kernel's code lies in the order of its directories (`Makefile`, `built-in.a`). So a function between two functions of
//! one directory is of that directory, whatever its name: only the directory is known then, and the file's name is `?`.
//! `data/anchors.tsv` has the first and the last global function of each file of one kernel, which is enough to know most
//! directories of another; `examples/anchors.rs` wrote it.

use crate::KernelFunction;
use std::collections::HashMap;

/// Files with functions of theirs.
const ANCHORS: &str = include_str!("../data/anchors.tsv");
/// The kernel that they are of.
pub(crate) const ANCHORS_OF: &str = "Linux 6.12.117";
/// The name of a file of which only the directory is known.
const UNKNOWN: &str = "?";
/// Directories whose own directories are parts of the kernel.
const DEEP: [&str; 8] = ["arch", "drivers", "fs", "kernel", "net", "security", "sound", "tools"];

/// Pairs of a function's name and its file.
pub(crate) fn anchors() -> impl Iterator<Item = (&'static str, &'static str)> {
    ANCHORS.lines().filter(|line| !line.starts_with('#')).flat_map(|line| {
        let mut words = line.split('\t');
        let file = words.next().unwrap_or_default();
        words.map(move |name| (name, file))
    })
}

/// How far the order of a kernel told directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inferred {
    /// Functions whose directory is that of both neighbours.
    pub functions: usize,
    /// Functions with a known file whose neighbours tell a directory, too.
    pub checked: usize,
    /// Of those the ones whose file is in that directory.
    pub right: usize,
}

/// Tells the directory of functions between two of one directory. `files` are those that are known; both are in the order of
/// the addresses, and of the kernel's image alone.
pub fn infer(files: &mut [Option<String>]) -> Inferred {
    let known: Vec<usize> = (0..files.len()).filter(|at| place(files[*at].as_deref()).is_some()).collect();
    let mut inferred = Inferred::default();
    for triple in known.windows(3) {
        let [before, at, after] = triple.iter().map(|at| files[*at].as_deref()).collect::<Vec<_>>()[..]
        else {
            continue;
        };
        if let (Some(between), Some(file)) = (common(before, after), at) {
            inferred.checked += 1;
            inferred.right +=
                usize::from(file.starts_with(between) && file[between.len()..].starts_with('/'));
        }
    }
    let mut found = Vec::new();
    for pair in known.windows(2) {
        let [first, last] = [pair[0], pair[1]];
        if let Some(directory) = common(files[first].as_deref(), files[last].as_deref()) {
            found.push((first + 1..last, format!("{directory}/{UNKNOWN}")));
        }
    }
    for (range, file) in found {
        for slot in &mut files[range] {
            inferred.functions += 1;
            *slot = Some(file.clone());
        }
    }
    inferred
}

/// A file's directory; none of a name alone.
fn place(file: Option<&str>) -> Option<&str> {
    file?.rsplit_once('/').map(|(directory, _)| directory)
}

/// The longest directory that both files are in, if it is a part of the kernel and not most of it.
fn common<'a>(a: Option<&'a str>, b: Option<&str>) -> Option<&'a str> {
    let (a, b) = (place(a)?, place(b)?);
    let mut length = 0;
    let mut depth = 0;
    for (one, other) in a.split('/').zip(b.split('/')) {
        if one != other {
            break;
        }
        length += one.len() + usize::from(depth > 0);
        depth += 1;
    }
    let needed = if a.split('/').next().is_some_and(|top| DEEP.contains(&top)) { 2 } else { 1 };
    // `kernel/fork.c` is in no directory below: its own is as deep as it gets.
    let whole = a == b;
    (whole || depth >= needed).then(|| &a[..length])
}

/// Files by name: of a name with several files none.
pub(crate) fn by_name<'a>(
    functions: &[KernelFunction],
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Option<String>> {
    let mut files: HashMap<&str, Option<&str>> = HashMap::new();
    for (name, file) in pairs {
        let known = files.entry(name).or_insert(Some(file));
        *known = known.filter(|known| *known == file);
    }
    let find = |function: &KernelFunction| {
        let found = files.get(whole(&function.name)).copied().flatten();
        found.filter(|_| function.module.is_none()).map(String::from)
    };
    functions.iter().map(find).collect()
}

/// A function's name without what a compiler adds to copies and pieces of it (`.isra.0`, `.cold`, `.llvm.1234`).
fn whole(name: &str) -> &str {
    name.split_once('.').map_or(name, |(whole, _)| if whole.is_empty() { name } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_two_of_a_directory_is_of_it() {
        let some = |file: &str| Some(file.to_string());
        let mut files = [
            some("net/ipv4/tcp.c"),
            None,
            some("net/ipv4/udp.c"),
            None,
            some("net/core/sock.c"),
            None,
            some("kernel/fork.c"),
            None,
            some("kernel/exit.c"),
            None,
            some("kernel/sched/core.c"),
        ];
        let inferred = infer(&mut files);
        assert_eq!((files[1].as_deref(), files[7].as_deref()), (Some("net/ipv4/?"), Some("kernel/?")));
        assert_eq!((files[3].as_deref(), files[5].as_deref(), files[9].as_deref()), (None, None, None));
        assert_eq!(inferred.functions, 2);
    }

    #[test]
    fn the_order_is_held_against_what_is_known() {
        let mut files: Vec<Option<String>> =
            ["mm/a.c", "mm/b.c", "mm/c.c", "block/x.c", "mm/d.c"].map(|file| Some(file.to_string())).to_vec();
        let inferred = infer(&mut files);
        assert_eq!((inferred.checked, inferred.right, inferred.functions), (2, 1, 0));
    }

    #[test]
    fn anchors_are_pairs_of_names_and_files() {
        let all: Vec<_> = anchors().collect();
        assert!(all.len() > 1_000);
        assert!(all.iter().all(|(name, file)| file.contains('/') && !name.is_empty() && !name.contains(' ')));
        assert!(all.iter().any(|(_, file)| *file == "net/ipv4/tcp_input.c"));
    }
}
