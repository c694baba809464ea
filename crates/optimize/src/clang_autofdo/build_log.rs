//! Parser of Clang's messages about the profile in the log of the tuned build.
//!
//! The messages come from `llvm/lib/Transforms/IPO/SampleProfile.cpp` (`emitCoverageRemarks` and
//! `runOnFunction`), Clang 19. Kbuild runs compilers in parallel, so each line is parsed by itself.

use std::collections::BTreeSet;

/// Function in the source, with the samples of its profile that were applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AppliedSamples {
    pub file: String,
    pub line: u32,
    /// Samples that were applied.
    pub used: u64,
    /// Samples that the profile has for the function.
    pub available: u64,
}

/// Findings of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClangLog {
    /// Functions with applied samples, each once, though an inline function of a header may be
    /// compiled into many objects. The numbers are part of the key, because several functions
    /// (system calls) can be at one line.
    pub applied: BTreeSet<AppliedSamples>,
    /// Functions whose profile was not used for lack of debug information.
    pub not_used: BTreeSet<String>,
}

impl ClangLog {
    pub fn parse(log: &str) -> Self {
        let mut found = Self::default();
        for line in log.lines() {
            if let Some(applied) = applied(line) {
                found.applied.insert(applied);
            } else if let Some(name) = not_used(line) {
                found.not_used.insert(name.to_string());
            }
        }
        found
    }
}

/// Parses `warning: mm/slub.c:4: 104 of 105 available profile samples (99%) were applied
/// [-Wbackend-plugin]`.
fn applied(line: &str) -> Option<AppliedSamples> {
    let (before, rest) = line.split_once(" available profile samples (")?;
    rest.contains("were applied").then_some(())?;
    let (place, numbers) = before.rsplit_once(": ")?;
    let (used, available) = numbers.split_once(" of ")?;
    let (used, available) = (used.parse().ok()?, available.parse().ok()?);
    let place = place.rsplit_once("warning: ").map_or(place, |(_, place)| place);
    let (file, line) = place.rsplit_once(':')?;
    Some(AppliedSamples { file: file.to_string(), line: line.parse().ok()?, used, available })
}

/// Parses `warning: No debug information found in function f: Function profile not used`.
fn not_used(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("No debug information found in function ")?;
    rest.split_once(": Function profile not used").map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_of_clangs_sentences_is_understood() {
        // Messages of Clang 19.1.7.
        let log = "\
  CC      mm/slub.o
warning: /s/mm/slub.c:40: 104 of 105 available profile samples (99%) were applied [-Wbackend-plugin]
warning: /s/include/linux/list.h:150: 7 of 7 available profile samples (100%) were applied [-Wbackend-plugin]
2 warnings generated.
warning: /s/include/linux/list.h:150: 7 of 7 available profile samples (100%) were applied [-Wbackend-plugin]
warning: /s/fs/read_write.c:9: 3 of 5 available profile samples (60%) were applied [-Wbackend-plugin]
warning: /s/fs/read_write.c:9: 5 of 5 available profile samples (100%) were applied [-Wbackend-plugin]
warning: /s/mm/a.c: No debug information found in function helper: Function profile not used [-Wbackend-plugin]
/s/a.c:1:1: warning: unused variable 'profile' [-Wunused]
";
        let found = ClangLog::parse(log);
        assert_eq!(found.applied.len(), 4);
        let slub = AppliedSamples { file: "/s/mm/slub.c".into(), line: 40, used: 104, available: 105 };
        assert!(found.applied.contains(&slub));
        assert_eq!(found.not_used.into_iter().collect::<Vec<_>>(), ["helper"]);
        assert_eq!(ClangLog::parse("  LD      vmlinux.o\n"), ClangLog::default());
    }

    proptest! {
        #[test]
        fn any_log_is_read(text in "(\\PC*|[^\n]*:[0-9]*: [0-9]{1,30} of [0-9]* available profile samples \\(x%\\) were applied\n)*") {
            let _ = ClangLog::parse(&text);
        }
    }
}
