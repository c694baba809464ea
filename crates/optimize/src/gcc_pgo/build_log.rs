//! Parser of GCC's messages about the profile in the log of the tuned build.
//!
//! The messages come from `gcc/coverage.cc`, the same from GCC 10 to 15. Kbuild runs compilers in
//! parallel, so each line is parsed without the lines around it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Function as GCC's diagnostics name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DiagnosticLocation {
    pub file: String,
    pub line: u32,
    pub name: String,
}

/// Transformations by value counters that GCC made: `gcc/value-prof.cc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ValueTransforms {
    /// Known targets of indirect calls, to be called directly if a later pass finds them frequent
    /// enough.
    pub calls: u64,
    /// Divisions with a special case for the usual divisor, by a mask or by subtraction.
    pub divisions: u64,
    /// Operations on memory with a special case for the usual size.
    pub sizes: u64,
}

/// Findings of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GccLog {
    /// Objects that were compiled, each once: `kernel/fork.o`.
    pub compiled: BTreeSet<String>,
    /// Objects whose `.gcda` GCC did not find, or found to be of another version.
    pub without_profile: BTreeSet<String>,
    /// Functions whose counts GCC refused, with the number of objects that reported so.
    pub refused: BTreeMap<DiagnosticLocation, u32>,
    /// Idents of functions with inconsistent records.
    pub corrupted: BTreeSet<u32>,
    /// Functions that are missing in their object's profile.
    pub not_in_profile: u64,
    /// Functions that were matched though their source moved.
    pub moved: u64,
    /// Transformations by value counters, if GCC was asked to report them.
    pub transformed: ValueTransforms,
}

impl GccLog {
    /// Parses the log of a build in directory `build_path`.
    pub fn parse(log: &str, build_path: &str) -> Self {
        let mut found = Self::default();
        for line in log.lines() {
            found.line(line, build_path);
        }
        found
    }

    fn line(&mut self, line: &str, build_path: &str) {
        if let Some(object) = compiled_object(line) {
            self.compiled.insert(object.to_string());
        } else if line.contains("profile for function ") && line.contains(" not found in profile data") {
            self.not_in_profile += 1;
        } else if line.contains("the profile data may be out of date") {
            self.moved += 1;
        } else if let Some(name) = between(line, "the control flow of function ", " does not match")
            .or_else(|| between(line, "number of counters in profile data for function ", " does not match"))
        {
            if let Some((file, line)) = location(line) {
                *self.refused.entry(DiagnosticLocation { file, line, name }).or_default() += 1;
            }
        } else if let Some(ident) = after(line, "profile data for function ")
            .and_then(|rest| rest.split_once(" is corrupted")?.0.parse().ok())
        {
            self.corrupted.insert(ident);
        } else if let Some(done) = after(line, ": optimized: ") {
            self.transformed.line(done);
        } else if let Some(file) = refused_file(line) {
            self.without_profile.insert(object_of(&file, build_path));
        }
    }
}

impl ValueTransforms {
    fn line(&mut self, done: &str) {
        if done.starts_with("Indirect call -> direct call ") {
            self.calls += 1;
        } else if let Some(what) = done.strip_prefix("Transformation done: ") {
            if what.contains("stringop") {
                self.sizes += 1;
            } else {
                self.divisions += 1;
            }
        }
    }
}

/// Parses `  CC      kernel/fork.o` and `  CC [M]  net/x.o`.
fn compiled_object(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("  CC ")?.trim_start();
    let object = rest.strip_prefix("[M]").unwrap_or(rest).trim();
    (object.ends_with(".o") && !object.contains(' ')).then_some(object)
}

/// Returns the `.gcda` that GCC could not use as a whole.
fn refused_file(line: &str) -> Option<String> {
    if let Some((before, _)) = line.split_once(" profile count data file not found") {
        return quoted(before);
    }
    let marks = [" is version ", " is not a gcov data file", " is corrupted"];
    let mark = marks.iter().find(|m| line.contains(**m) && line.contains(".gcda"))?;
    quoted(line.split_once(*mark)?.0)
}

/// Returns the last quoted word, for any quotes of GCC's locale.
fn quoted(text: &str) -> Option<String> {
    let text = text.strip_suffix(['\'', '’', '"'])?;
    let start = text.rfind(['\'', '‘', '"'])?;
    Some(text[start..].trim_start_matches(['\'', '‘', '"']).to_string())
}

fn object_of(gcda: &str, build_path: &str) -> String {
    let below = gcda.strip_prefix(build_path).unwrap_or(gcda).trim_start_matches('/');
    format!("{}.o", below.strip_suffix(".gcda").unwrap_or(below))
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.split_once(mark).map(|(_, rest)| rest)
}

/// Returns the name between two phrases, without its quotes.
fn between(line: &str, before: &str, behind: &str) -> Option<String> {
    let (name, _) = after(line, before)?.split_once(behind)?;
    Some(name.trim_matches(['\'', '‘', '’', '"']).to_string())
}

/// Parses `FILE:LINE:COLUMN: warning: …`.
fn location(line: &str) -> Option<(String, u32)> {
    let (head, _) = line.split_once(": warning: ").or_else(|| line.split_once(": error: "))?;
    let mut parts = head.rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some((file.to_string(), line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_of_gccs_sentences_is_understood() {
        // Messages of GCC 12.2 in the locale C.
        let log = "\
  CC      kernel/fork.o
  CC [M]  drivers/net/veth.o
  CC      scripts/mod/empty.s
/b/kernel/fork.c: warning: '/w/build/kernel/fork.gcda' profile count data file not found [-Wmissing-profile]
/s/mm/slub.c:12:6: warning: profile for function 'set_freepointer' not found in profile data [-Wmissing-profile]
/s/mm/slub.c:40:13: warning: the control flow of function 'slab_free' does not match its profile data (counter 'arcs') [-Wcoverage-mismatch]
/s/include/linux/list.h:150:20: warning: number of counters in profile data for function 'list_add' does not match its profile data (counter 'arcs', expected 3 and have 4) [-Wcoverage-mismatch]
/s/include/linux/list.h:150:20: warning: number of counters in profile data for function 'list_add' does not match its profile data (counter 'arcs', expected 3 and have 4) [-Wcoverage-mismatch]
/s/mm/slub.c:1:1: warning: source locations for function 'f' have changed, the profile data may be out of date [-Wcoverage-mismatch]
cc1: warning: '/w/build/net/socket.gcda' is version 'B32*', expected version 'B22*'
/s/mm/a.c:1:1: error: profile data for function 4711 is corrupted
/s/mm/a.c:9:59: optimized: Transformation done: single value 8 stringop for BUILT_IN_MEMCPY
/s/mm/a.c:8:69: optimized: Transformation done: div/mod by constant 1000
/s/mm/a.c:6:52: optimized: Indirect call -> direct call f_3(D) => g (will resolve by ipa-profile)
/s/mm/a.c:6:52: optimized:  Inlined g/20 into call/13 which now has time 5.300000 and size 11, net change of -1.
  CC      kernel/fork.o
";
        let found = GccLog::parse(log, "/w/build");
        assert_eq!(found.compiled.iter().collect::<Vec<_>>(), ["drivers/net/veth.o", "kernel/fork.o"]);
        assert_eq!(found.without_profile.iter().collect::<Vec<_>>(), ["kernel/fork.o", "net/socket.o"]);
        let place =
            |file: &str, line, name: &str| DiagnosticLocation { file: file.into(), line, name: name.into() };
        assert_eq!(
            found.refused.into_iter().collect::<Vec<_>>(),
            [
                (place("/s/include/linux/list.h", 150, "list_add"), 2),
                (place("/s/mm/slub.c", 40, "slab_free"), 1)
            ]
        );
        assert_eq!((found.not_in_profile, found.moved), (1, 1));
        assert_eq!(found.corrupted.into_iter().collect::<Vec<_>>(), [4711]);
        assert_eq!(found.transformed, ValueTransforms { calls: 1, divisions: 1, sizes: 1 });
    }

    #[test]
    fn other_warnings_are_not_ours() {
        let log = "/s/a.c:1:1: warning: unused variable 'profile' [-Wunused]\n  LD      vmlinux.o\n\
                   a.o: warning: objtool: f() falls through to next function g()\n";
        assert_eq!(GccLog::parse(log, "/w/build"), GccLog::default());
    }

    proptest! {
        #[test]
        fn any_log_is_read(text in "(\\PC*|[^\n]*:[0-9]*: warning: the control flow of function '[^\n]*' does not match\n\
            |'[^\n]*' profile count data file not found|'x.gcda is corrupted|profile data for function [0-9]* is corrupted)*") {
            let _ = GccLog::parse(&text, "/w");
        }
    }
}
