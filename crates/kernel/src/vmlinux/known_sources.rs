//! Source files of a kernel without debug information: by function names known from other kernels,
//! and by link order.
//!
//! A kernel's code is linked in the order of its directories (`Makefile`, `built-in.a`). So a
//! function between two functions of one directory belongs to that directory, whatever its name;
//! its file is then shown as `?`. So does what is around a single function of another directory between
//! two of one. `data/anchors.tsv` has the first and the last global function of
//! each file of one kernel, which is enough to find most directories of another one;
//! `examples/anchors.rs` of `kerntune-symbols` wrote it.

use crate::vmlinux::source_map::SourceMap;
use crate::KernelFunction;
use std::collections::{BTreeMap, HashMap};

/// Source files with some of their functions.
const ANCHORS: &str = include_str!("../../data/anchors.tsv");
/// The kernel from which the anchors come.
pub const ANCHORS_OF: &str = "Linux 6.12.117";
/// Name of a file of which only the directory is known.
const UNKNOWN: &str = "?";
/// Directories whose subdirectories are parts of the kernel.
const DEEP: [&str; 8] = ["arch", "drivers", "fs", "kernel", "net", "security", "sound", "tools"];

/// Returns pairs of a function's name and its file.
pub fn anchors() -> impl Iterator<Item = (&'static str, &'static str)> {
    ANCHORS.lines().filter(|line| !line.starts_with('#')).flat_map(|line| {
        let mut words = line.split('\t');
        let file = words.next().unwrap_or_default();
        words.map(move |name| (name, file))
    })
}

/// Result of [`infer`]: counts for judging its accuracy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InferredDirectories {
    /// Functions that got the directory of both neighbors.
    pub functions: usize,
    /// Functions with a known file whose neighbors have a common directory.
    pub checked: usize,
    /// Functions of `checked` whose file is in that directory.
    pub right: usize,
}

/// Infers the directory of functions between two functions of one directory. `files` are the known
/// files of the functions of the kernel's image, in the order of addresses.
pub fn infer(files: &mut [Option<String>]) -> InferredDirectories {
    let known: Vec<usize> = (0..files.len()).filter(|at| place(files[*at].as_deref()).is_some()).collect();
    let mut inferred = InferredDirectories::default();
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
    // A function that was moved to another file since, or that is alone in a section.
    for triple in known.windows(3) {
        let [first, stray, last] = [triple[0], triple[1], triple[2]];
        let [before, at, after] = [first, stray, last].map(|at| place(files[at].as_deref()));
        if let Some(directory) = before.filter(|_| before == after && before != at) {
            let file = format!("{directory}/{UNKNOWN}");
            found.extend([(first + 1..stray, file.clone()), (stray + 1..last, file)]);
        }
    }
    for (range, file) in found {
        for slot in files[range].iter_mut().filter(|slot| slot.is_none()) {
            inferred.functions += 1;
            *slot = Some(file.clone());
        }
    }
    inferred
}

/// Returns a file's directory; `None` for a name alone.
fn place(file: Option<&str>) -> Option<&str> {
    file?.rsplit_once('/').map(|(directory, _)| directory)
}

/// Returns the longest common directory of both files, if it is a specific part of the kernel.
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
    // `kernel/fork.c` is in no subdirectory: its own directory is the most specific one.
    let whole = a == b;
    (whole || depth >= needed).then(|| &a[..length])
}

/// Returns the file of each function by its name; `None` for names with several files. `names` has
/// `None` for a function that is not of the image.
pub fn by_name<'a, 'b>(
    names: impl IntoIterator<Item = Option<&'b str>>,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Option<String>> {
    let mut files: HashMap<&str, Option<&str>> = HashMap::new();
    for (name, file) in pairs {
        let known = files.entry(name).or_insert(Some(file));
        *known = known.filter(|known| *known == file);
    }
    let find = |name: Option<&str>| files.get(whole(name?)).copied().flatten().map(String::from);
    names.into_iter().map(find).collect()
}

/// Checks whether only the directory of an inferred file is known.
pub(crate) fn is_directory_only(file: &str) -> bool {
    file.rsplit_once('/').is_some_and(|(_, name)| name == UNKNOWN)
}

/// Finds source files of an image's functions, which are sorted by address, by the anchors.
pub(crate) fn of_image(functions: &[KernelFunction]) -> SourceMap {
    let mut files = by_name(functions.iter().map(|function| Some(function.name.as_str())), anchors());
    infer(&mut files);
    let mut ranges = BTreeMap::new();
    let mut last = None;
    for (function, file) in functions.iter().zip(files) {
        if last.as_ref() != Some(&file) {
            ranges.insert(function.address, file.clone());
            last = Some(file);
        }
    }
    SourceMap { ranges }
}

/// Returns a function's name without the suffixes of compilers for clones and parts (`.isra.0`,
/// `.cold`, `.llvm.1234`).
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
    fn a_stray_function_does_not_divide_a_directory() {
        let of =
            ["kernel/sched/fair.c", "", "kernel/time/tick-sched.c", "", "kernel/sched/core.c", "", "mm/a.c"];
        let mut files = of.map(|file| Some(file.to_string()).filter(|file| !file.is_empty()));
        assert_eq!(infer(&mut files).functions, 2);
        assert_eq!(
            [1, 2, 3, 5].map(|at| files[at].as_deref()),
            [Some("kernel/sched/?"), Some("kernel/time/tick-sched.c"), Some("kernel/sched/?"), None]
        );
    }

    #[test]
    fn the_order_is_held_against_what_is_known() {
        let mut files: Vec<Option<String>> =
            ["mm/a.c", "mm/b.c", "mm/c.c", "block/x.c", "mm/d.c"].map(|file| Some(file.to_string())).to_vec();
        let inferred = infer(&mut files);
        assert_eq!((inferred.checked, inferred.right, inferred.functions), (2, 1, 0));
    }

    #[test]
    fn functions_of_an_image_have_files_of_anchors_and_directories_between_them() {
        let function =
            |address, name: &str| KernelFunction { name: name.into(), address, ..Default::default() };
        let known: Vec<_> = anchors().filter(|(_, file)| file.starts_with("net/ipv4/tcp")).collect();
        let [(first, first_file), .., (last, last_file)] = known[..] else { panic!("{known:?}") };
        let functions: Vec<_> = [first, "of_another_version", last, "behind_all"]
            .into_iter()
            .enumerate()
            .map(|(at, name)| function(16 * at as u64, name))
            .collect();
        let map = of_image(&functions);
        assert_eq!((map.path(0), map.path(32)), (Some(first_file), Some(last_file)));
        assert_eq!((map.path(16), map.path(48)), (Some("net/ipv4/?"), None));
        assert!(is_directory_only("net/ipv4/?") && !is_directory_only("net/ipv4/tcp.c"));
    }

    #[test]
    fn anchors_are_pairs_of_names_and_files() {
        let all: Vec<_> = anchors().collect();
        assert!(all.len() > 1_000);
        assert!(all.iter().all(|(name, file)| file.contains('/') && !name.is_empty() && !name.contains(' ')));
        assert!(all.iter().any(|(_, file)| *file == "net/ipv4/tcp_input.c"));
    }
}
