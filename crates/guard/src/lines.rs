//! Finds functions in source files, and their lines that differ between two kernels (pure).
//!
//! Debug information would change the kernel, so functions are found in the text: kernel code
//! starts definitions at the beginning of a line and ends them with a brace there.

use serde::Serialize;
use std::ops::Range;

/// Longer functions are compared as sets of lines, since the exact comparison is quadratic.
const MAX_COMPARED_LINES: usize = 1_200;
/// Largest number of lines to list for a function.
pub const SHOWN: usize = 6;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceLine {
    /// Line number, from 1.
    pub line: usize,
    /// Text without leading and trailing blanks.
    pub text: String,
}

/// Location and changed lines of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FunctionLocation {
    /// Path of the file from the top of the source.
    pub file: String,
    /// First line of the function in the new kernel, or in the base kernel if the new one lacks it.
    pub line: usize,
    /// Lines of the new kernel only, with their numbers there; at most six.
    pub added: Vec<SourceLine>,
    /// Lines of the base kernel only, with their numbers there; at most six.
    pub removed: Vec<SourceLine>,
    /// True if the lines are elsewhere in the file: something inlined into the function changed.
    pub beside: bool,
}

/// Finds `function` in a file; `texts` are those of the base and the new kernel, if available.
pub fn locate_function(file: &str, function: &str, texts: [Option<&str>; 2]) -> Option<FunctionLocation> {
    let extents = texts.map(|text| Some((text?, extent(text?, function)?)));
    let line = extents[1].as_ref().or(extents[0].as_ref())?.1.start + 1;
    let mut location = FunctionLocation { file: file.into(), line, ..FunctionLocation::default() };
    if let (Some(base), Some(new)) = (&extents[0], &extents[1]) {
        let bodies = [lines(base.0, base.1.clone()), lines(new.0, new.1.clone())];
        (location.removed, location.added) = changed(&bodies[0], &bodies[1]);
        if location.removed.is_empty() && location.added.is_empty() {
            let whole = [lines(base.0, 0..usize::MAX), lines(new.0, 0..usize::MAX)];
            (location.removed, location.added) = changed(&whole[0], &whole[1]);
            location.beside = !(location.removed.is_empty() && location.added.is_empty());
        }
    }
    location.added.truncate(SHOWN);
    location.removed.truncate(SHOWN);
    Some(location)
}

fn lines(text: &str, extent: Range<usize>) -> Vec<SourceLine> {
    let numbered = text.lines().enumerate().skip(extent.start).take(extent.len());
    numbered.map(|(at, text)| SourceLine { line: at + 1, text: text.trim().to_owned() }).collect()
}

/// Returns the lines of a function's definition, from 0. Definitions by macros
/// (`SYSCALL_DEFINE3(read, …)`) count as well.
fn extent(text: &str, function: &str) -> Option<Range<usize>> {
    let all: Vec<&str> = text.lines().collect();
    let begins = |line: &str| {
        let defines = !line.starts_with([' ', '\t', '#', '/', '*', '}']) && !line.trim_end().ends_with(';');
        defines
            && (calls(line, function) || system_call(function).is_some_and(|name| defines_call(line, name)))
    };
    for (at, _) in all.iter().enumerate().filter(|(_, line)| begins(line)) {
        // In a definition the opening brace comes before any semicolon.
        let open =
            (at..all.len().min(at + 12)).find(|&line| all[line].starts_with('{') || all[line].ends_with('{'));
        let declared = (at..all.len().min(at + 12)).find(|&line| all[line].trim_end().ends_with(';'));
        let Some(open) = open.filter(|open| declared.is_none_or(|end| end > *open)) else { continue };
        let end = (open..all.len()).find(|&line| all[line].starts_with('}'))?;
        return Some(at..end + 1);
    }
    None
}

/// Checks whether the line contains `function(` as a whole word.
fn calls(line: &str, function: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(function).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + function.len()..]);
        !before.ends_with(word) && after.starts_with('(')
    })
}

/// Returns `read` for `__x64_sys_read`, `__do_sys_read` and `__se_sys_read`.
fn system_call(function: &str) -> Option<&str> {
    ["__x64_sys_", "__do_sys_", "__se_sys_"].into_iter().find_map(|head| function.strip_prefix(head))
}

fn defines_call(line: &str, name: &str) -> bool {
    let inner = line.strip_prefix("SYSCALL_DEFINE").and_then(|rest| rest.split_once('('));
    inner.is_some_and(|(_, rest)| rest.split([',', ')']).next().is_some_and(|word| word.trim() == name))
}

/// Returns the lines that only the first and only the second has, by the longest common
/// subsequence.
fn changed(base: &[SourceLine], new: &[SourceLine]) -> (Vec<SourceLine>, Vec<SourceLine>) {
    let same = |a: &SourceLine, b: &SourceLine| a.text == b.text;
    let head = base.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
    let tail =
        base[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| same(a, b)).count();
    let (base, new) = (&base[head..base.len() - tail], &new[head..new.len() - tail]);
    if base.len() > MAX_COMPARED_LINES || new.len() > MAX_COMPARED_LINES {
        let only = |these: &[SourceLine], those: &[SourceLine]| -> Vec<SourceLine> {
            let known: std::collections::HashSet<&str> =
                those.iter().map(|line| line.text.as_str()).collect();
            these.iter().filter(|line| !known.contains(line.text.as_str())).cloned().collect()
        };
        return (drop_trivial(only(base, new)), drop_trivial(only(new, base)));
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
    (drop_trivial(removed), drop_trivial(added))
}

/// Drops empty lines and lone braces.
fn drop_trivial(mut lines: Vec<SourceLine>) -> Vec<SourceLine> {
    lines.retain(|line| line.text.contains(char::is_alphanumeric));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "int other(int a);\n\nstatic int\nsend(struct sock *sk,\n     int size)\n{\n\tint ret;\n\n\tlock(sk);\n\tret = put(sk);\n\treturn ret;\n}\n\nSYSCALL_DEFINE3(read, int, fd)\n{\n\treturn ksys_read(fd);\n}\n";

    fn numbers(lines: &[SourceLine]) -> Vec<(usize, &str)> {
        lines.iter().map(|line| (line.line, line.text.as_str())).collect()
    }

    #[test]
    fn a_function_is_found_with_the_lines_that_changed() {
        let new = BASE
            .replace("\tlock(sk);\n", "\tplanted();\n\tlock(sk);\n\tagain();\n")
            .replace("return ret;", "return 0;");
        let found = locate_function("net/s.c", "send", [Some(BASE), Some(&new)]).unwrap();
        assert_eq!((found.file.as_str(), found.line, found.beside), ("net/s.c", 4, false));
        assert_eq!(numbers(&found.added), [(9, "planted();"), (11, "again();"), (13, "return 0;")]);
        assert_eq!(numbers(&found.removed), [(11, "return ret;")]);
        let same = locate_function("net/s.c", "send", [Some(BASE), Some(BASE)]).unwrap();
        assert!(same.added.is_empty() && same.removed.is_empty() && !same.beside);
        assert_eq!(locate_function("net/s.c", "send", [None, Some(&new)]).unwrap().added, []);
    }

    #[test]
    fn system_calls_are_found_by_their_macro_and_what_is_inlined_beside() {
        let found = locate_function("fs/r.c", "__x64_sys_read", [Some(BASE), Some(BASE)]).unwrap();
        assert_eq!(found.line, 14);
        let new = BASE.replace("ret = put(sk)", "ret = put_more(sk)");
        let found = locate_function("fs/r.c", "__x64_sys_read", [Some(BASE), Some(&new)]).unwrap();
        assert_eq!((found.beside, numbers(&found.added)), (true, vec![(10, "ret = put_more(sk);")]));
    }

    #[test]
    fn what_is_no_definition_is_none() {
        for function in ["other", "put", "lock", "nothing", "end"] {
            assert_eq!(locate_function("a.c", function, [Some(BASE), Some(BASE)]), None, "{function}");
        }
        assert_eq!(locate_function("a.c", "f", [Some(""), Some("f(")]), None);
    }
}
