//! Where in the source a function is, and which of its lines are others in the second of two kernels. Pure.
//!
//! A kernel is built without debug information, which would make it another build. So a function is looked for in the text of
//! its file: C's definitions in the kernel begin at the beginning of a line and end with a brace there.

use serde::Serialize;
use std::ops::Range;

/// Lines of one function longer than this are not compared one with each.
const MOST: usize = 1_200;
/// Lines that are shown of a function.
pub const SHOWN: usize = 6;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number, from 1.
    pub line: usize,
    /// What it says, without the blanks at both ends.
    pub text: String,
}

/// Where a function that changed is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file, from the top of the source.
    pub file: String,
    /// The line at which it begins, in the new kernel, or else in the base kernel.
    pub line: usize,
    /// Its lines that the base kernel does not have, with their numbers in the new one; no more than six.
    pub added: Vec<Line>,
    /// Its lines that the new kernel does not have, with their numbers in the base kernel; no more than six.
    pub removed: Vec<Line>,
    /// Whether these lines are not its own but others of its file: something that is inlined into it changed.
    pub beside: bool,
}

/// Where `function` is in a file, of which both kernels' texts are given as far as they are there.
pub fn place(file: &str, function: &str, texts: [Option<&str>; 2]) -> Option<Place> {
    let extents = texts.map(|text| Some((text?, extent(text?, function)?)));
    let line = extents[1].as_ref().or(extents[0].as_ref())?.1.start + 1;
    let mut place = Place { file: file.into(), line, ..Place::default() };
    if let (Some(base), Some(new)) = (&extents[0], &extents[1]) {
        let bodies = [lines(base.0, base.1.clone()), lines(new.0, new.1.clone())];
        (place.removed, place.added) = changed(&bodies[0], &bodies[1]);
        if place.removed.is_empty() && place.added.is_empty() {
            let whole = [lines(base.0, 0..usize::MAX), lines(new.0, 0..usize::MAX)];
            (place.removed, place.added) = changed(&whole[0], &whole[1]);
            place.beside = !(place.removed.is_empty() && place.added.is_empty());
        }
    }
    place.added.truncate(SHOWN);
    place.removed.truncate(SHOWN);
    Some(place)
}

fn lines(text: &str, extent: Range<usize>) -> Vec<Line> {
    let numbered = text.lines().enumerate().skip(extent.start).take(extent.len());
    numbered.map(|(at, text)| Line { line: at + 1, text: text.trim().to_owned() }).collect()
}

/// The lines of a function's definition, from 0. A macro that defines it (`SYSCALL_DEFINE3(read, …)`) is one, too.
fn extent(text: &str, function: &str) -> Option<Range<usize>> {
    let all: Vec<&str> = text.lines().collect();
    let begins = |line: &str| {
        let defines = !line.starts_with([' ', '\t', '#', '/', '*', '}']) && !line.trim_end().ends_with(';');
        defines
            && (calls(line, function) || system_call(function).is_some_and(|name| defines_call(line, name)))
    };
    for (at, _) in all.iter().enumerate().filter(|(_, line)| begins(line)) {
        // The brace that opens it comes before anything that ends a declaration.
        let open =
            (at..all.len().min(at + 12)).find(|&line| all[line].starts_with('{') || all[line].ends_with('{'));
        let declared = (at..all.len().min(at + 12)).find(|&line| all[line].trim_end().ends_with(';'));
        let Some(open) = open.filter(|open| declared.is_none_or(|end| end > *open)) else { continue };
        let end = (open..all.len()).find(|&line| all[line].starts_with('}'))?;
        return Some(at..end + 1);
    }
    None
}

/// Whether the line has `function(`, as a word of its own.
fn calls(line: &str, function: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(function).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + function.len()..]);
        !before.ends_with(word) && after.starts_with('(')
    })
}

/// `read` of `__x64_sys_read`, `__do_sys_read` and `__se_sys_read`.
fn system_call(function: &str) -> Option<&str> {
    ["__x64_sys_", "__do_sys_", "__se_sys_"].into_iter().find_map(|head| function.strip_prefix(head))
}

fn defines_call(line: &str, name: &str) -> bool {
    let inner = line.strip_prefix("SYSCALL_DEFINE").and_then(|rest| rest.split_once('('));
    inner.is_some_and(|(_, rest)| rest.split([',', ')']).next().is_some_and(|word| word.trim() == name))
}

/// Lines that only the first has, and those that only the second has: what is no part of the longest common sequence.
fn changed(base: &[Line], new: &[Line]) -> (Vec<Line>, Vec<Line>) {
    let same = |a: &Line, b: &Line| a.text == b.text;
    let head = base.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
    let tail =
        base[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| same(a, b)).count();
    let (base, new) = (&base[head..base.len() - tail], &new[head..new.len() - tail]);
    if base.len() > MOST || new.len() > MOST {
        let only = |these: &[Line], those: &[Line]| -> Vec<Line> {
            let known: std::collections::HashSet<&str> =
                those.iter().map(|line| line.text.as_str()).collect();
            these.iter().filter(|line| !known.contains(line.text.as_str())).cloned().collect()
        };
        return (said(only(base, new)), said(only(new, base)));
    }
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (base.len() + 1) * width];
    for a in (0..base.len()).rev() {
        for b in (0..new.len()).rev() {
            longest[a * width + b] = match same(&base[a], &new[b]) {
                true => longest[(a + 1) * width + b + 1] + 1,
                false => longest[(a + 1) * width + b].max(longest[a * width + b + 1]),
            };
        }
    }
    let (mut a, mut b, mut removed, mut added) = (0, 0, Vec::new(), Vec::new());
    while a < base.len() || b < new.len() {
        if a < base.len() && b < new.len() && same(&base[a], &new[b]) {
            (a, b) = (a + 1, b + 1);
        } else if b == new.len()
            || a < base.len() && longest[(a + 1) * width + b] >= longest[a * width + b + 1]
        {
            removed.push(base[a].clone());
            a += 1;
        } else {
            added.push(new[b].clone());
            b += 1;
        }
    }
    (said(removed), said(added))
}

/// Without empty lines and braces.
fn said(mut lines: Vec<Line>) -> Vec<Line> {
    lines.retain(|line| line.text.contains(char::is_alphanumeric));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "int other(int a);\n\nstatic int\nsend(struct sock *sk,\n     int size)\n{\n\tint ret;\n\n\tlock(sk);\n\tret = put(sk);\n\treturn ret;\n}\n\nSYSCALL_DEFINE3(read, int, fd)\n{\n\treturn ksys_read(fd);\n}\n";

    fn numbers(lines: &[Line]) -> Vec<(usize, &str)> {
        lines.iter().map(|line| (line.line, line.text.as_str())).collect()
    }

    #[test]
    fn a_function_is_found_with_the_lines_that_changed() {
        let new = BASE
            .replace("\tlock(sk);\n", "\tplanted();\n\tlock(sk);\n\tagain();\n")
            .replace("return ret;", "return 0;");
        let found = place("net/s.c", "send", [Some(BASE), Some(&new)]).unwrap();
        assert_eq!((found.file.as_str(), found.line, found.beside), ("net/s.c", 4, false));
        assert_eq!(numbers(&found.added), [(9, "planted();"), (11, "again();"), (13, "return 0;")]);
        assert_eq!(numbers(&found.removed), [(11, "return ret;")]);
        let same = place("net/s.c", "send", [Some(BASE), Some(BASE)]).unwrap();
        assert!(same.added.is_empty() && same.removed.is_empty() && !same.beside);
        assert_eq!(place("net/s.c", "send", [None, Some(&new)]).unwrap().added, []);
    }

    #[test]
    fn system_calls_are_found_by_their_macro_and_what_is_inlined_beside() {
        let found = place("fs/r.c", "__x64_sys_read", [Some(BASE), Some(BASE)]).unwrap();
        assert_eq!(found.line, 14);
        let new = BASE.replace("ret = put(sk)", "ret = put_more(sk)");
        let found = place("fs/r.c", "__x64_sys_read", [Some(BASE), Some(&new)]).unwrap();
        assert_eq!((found.beside, numbers(&found.added)), (true, vec![(10, "ret = put_more(sk);")]));
    }

    #[test]
    fn what_is_no_definition_is_none() {
        for function in ["other", "put", "lock", "nothing", "end"] {
            assert_eq!(place("a.c", function, [Some(BASE), Some(BASE)]), None, "{function}");
        }
        assert_eq!(place("a.c", "f", [Some(""), Some("f(")]), None);
    }
}
