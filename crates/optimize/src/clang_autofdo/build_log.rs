//! What Clang said about the profile in the log of the tuned build.
//!
//! The sentences are those of `llvm/lib/Transforms/IPO/SampleProfile.cpp` (`emitCoverageRemarks` and
//! `runOnFunction`), Clang 19. Kbuild runs compilers side by side, so that each line is judged by itself.

use std::collections::BTreeSet;

/// A function in the source, and how much of its profile was applied to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Applied {
    pub file: String,
    pub line: u32,
    /// Samples that found their place.
    pub used: u64,
    /// Samples that the profile has for it.
    pub available: u64,
}

/// The findings of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BuildLog {
    /// Each function once, though an inline function of a header may be compiled in many objects. System calls
    /// are several functions at one line, so that the numbers belong to what tells them apart.
    pub applied: BTreeSet<Applied>,
    /// Functions whose profile was put aside for want of debug information.
    pub not_used: BTreeSet<String>,
}

impl BuildLog {
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

/// `warning: mm/slub.c:4: 104 of 105 available profile samples (99%) were applied [-Wbackend-plugin]`.
fn applied(line: &str) -> Option<Applied> {
    let (before, rest) = line.split_once(" available profile samples (")?;
    rest.contains("were applied").then_some(())?;
    let (place, numbers) = before.rsplit_once(": ")?;
    let (used, available) = numbers.split_once(" of ")?;
    let (used, available) = (used.parse().ok()?, available.parse().ok()?);
    let place = place.rsplit_once("warning: ").map_or(place, |(_, place)| place);
    let (file, line) = place.rsplit_once(':')?;
    Some(Applied { file: file.to_string(), line: line.parse().ok()?, used, available })
}

/// `warning: No debug information found in function f: Function profile not used`.
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
        // Sentences of Clang 19.1.7.
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
        let found = BuildLog::parse(log);
        assert_eq!(found.applied.len(), 4);
        let slub = Applied { file: "/s/mm/slub.c".into(), line: 40, used: 104, available: 105 };
        assert!(found.applied.contains(&slub));
        assert_eq!(found.not_used.into_iter().collect::<Vec<_>>(), ["helper"]);
        assert_eq!(BuildLog::parse("  LD      vmlinux.o\n"), BuildLog::default());
    }

    proptest! {
        #[test]
        fn any_log_is_read(text in "(\\PC*|[^\n]*:[0-9]*: [0-9]{1,30} of [0-9]* available profile samples \\(x%\\) were applied\n)*") {
            let _ = BuildLog::parse(&text);
        }
    }
}
