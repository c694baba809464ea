//! Evidence of the profile in the linked kernel: code that ran stands together.
//!
//! With a profile GCC puts functions that ran often into `.text.hot`, which the kernel's linker
//! script keeps in one piece before the rest. Without one they stand where their source files are
//! linked, so that as many of those that never ran come before as behind them. If a kernel is
//! compiled for size where the training did not run, functions without counts and parts of others
//! (`NAME.cold`) are in `.text.unlikely`, in one piece behind the rest.

use super::ObjectCounts;
use crate::share::{share, share_in_front};
use kerntune_kernel::Symbols;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Share of all counts that the functions that ran often hold. GCC moves those to the front
/// (`--param hot-bb-count-ws-permille`), and leaves what ran seldom.
const HOT_SHARE: f64 = 0.99;

/// Placement of a group of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ColdPlacement {
    /// Functions of the group among the cold parts.
    pub among_cold: u64,
    /// Functions of the group in `.text` with a unique name.
    pub of: u64,
}

impl ColdPlacement {
    /// Returns the share among the cold parts, 0 to 1; 0 for an empty group.
    pub fn share(self) -> f64 {
        share(self.among_cold, self.of)
    }
}

/// Placement of cold code in one kernel's image.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ColdCodeEvidence {
    /// `NAME.cold` parts of functions.
    pub cold_parts: u64,
    /// Bytes of `.text` covered by functions.
    pub text_bytes: u64,
    /// Functions that never ran in the training.
    pub never_ran: ColdPlacement,
    /// Functions that ran in the training.
    pub ran: ColdPlacement,
    /// Share of the pairs of a function that ran often ([`HOT_SHARE`]) and one that never ran in
    /// which the former comes first, 0 to 1; about 0.5 if the profile is not used. 0 without such
    /// pairs.
    #[serde(default)]
    pub ran_in_front: f64,
}

impl ColdCodeEvidence {
    /// Examines a kernel, given the counts of the training.
    pub(super) fn of(symbols: &Symbols, counts: &[ObjectCounts]) -> Self {
        let functions = symbols.functions();
        let mut cold: Vec<u64> =
            functions.iter().filter(|f| is_cold_part(&f.name)).map(|f| f.address).collect();
        cold.sort_unstable();
        let mut evidence = ColdCodeEvidence {
            cold_parts: cold.len() as u64,
            text_bytes: symbols.text_bytes(),
            ..ColdCodeEvidence::default()
        };
        let cold = region(&cold);
        // Init code follows in sections of its own, which no profile moves.
        let end_of_text = symbols.address_of("_etext").unwrap_or(u64::MAX);
        let addresses = unique(functions.iter().map(|f| (f.name.as_str(), f.address)));
        let all = counts.iter().flat_map(|o| &o.functions);
        let (mut ran, mut never) = (Vec::new(), Vec::new());
        for (name, total) in unique(all.map(|f| (f.name.as_str(), f.total))) {
            let Some(address) = addresses.get(name).copied().filter(|a| *a < end_of_text) else { continue };
            let placement = match total {
                0 => &mut evidence.never_ran,
                _ => &mut evidence.ran,
            };
            placement.of += 1;
            placement.among_cold += u64::from(cold.is_some_and(|(from, to)| (from..=to).contains(&address)));
            match total {
                0 => never.push(address),
                _ => ran.push((total, address)),
            }
        }
        evidence.ran_in_front = share_in_front(&hot(ran), never);
        evidence
    }
}

/// Returns the addresses of the fewest functions that hold [`HOT_SHARE`] of all counts, given the
/// count and address of each.
fn hot(mut ran: Vec<(u64, u64)>) -> Vec<u64> {
    ran.sort_unstable_by_key(|(total, address)| (Reverse(*total), *address));
    let all: u128 = ran.iter().map(|(total, _)| u128::from(*total)).sum();
    let mut left = all as f64 * HOT_SHARE;
    let is_hot = |(total, _): &(u64, u64)| {
        let wanted = left > 0.0;
        left -= *total as f64;
        wanted
    };
    ran.into_iter().take_while(is_hot).map(|(_, address)| address).collect()
}

/// Returns the address range of the cold parts. A few may lie elsewhere (hand-written ones, other
/// sections), so the outer 2 % on either side are ignored.
fn region(cold: &[u64]) -> Option<(u64, u64)> {
    let margin = cold.len() / 50;
    Some((*cold.get(margin)?, *cold.get(cold.len().checked_sub(1 + margin)?)?))
}

/// Returns the values whose name occurs once.
fn unique<'a>(pairs: impl Iterator<Item = (&'a str, u64)>) -> HashMap<&'a str, u64> {
    let mut seen: HashMap<&str, Option<u64>> = HashMap::new();
    for (name, value) in pairs {
        seen.entry(name).and_modify(|v| *v = None).or_insert(Some(value));
    }
    seen.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Recognizes `f.cold` and `f.cold.3`.
fn is_cold_part(name: &str) -> bool {
    name.rsplit_once(".cold").is_some_and(|(whole, rest)| {
        !whole.is_empty() && rest.trim_start_matches('.').bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::super::gcno::GcnoFile;
    use super::super::request::PARTIAL_TRAINING;
    use super::*;
    use kerntune_convert::gcda::{summarize, Gcda};
    use std::fmt::Write;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    /// Source with forty functions that run, each with a part that does not, and forty that do not
    /// run.
    fn source() -> String {
        let mut text = String::from("int puts(const char *);\nint sink;\n");
        let mut calls = String::new();
        for i in 0..40 {
            let body = format!(
                "(int x) {{ if (x == -{i}) {{ puts(\"a\"); sink = x; puts(\"b\"); sink += {i}; }} \
                 for (int k = 0; k < x % 7; k++) sink ^= k * {i}; }}"
            );
            writeln!(text, "__attribute__((noipa)) void ran{i}{body}").unwrap();
            writeln!(text, "__attribute__((noipa)) void never{i}{body}").unwrap();
            writeln!(calls, "\t\tran{i}(r);\n\t\tif (c > 9) never{i}(r);").unwrap();
        }
        // Baselines, too, have cold parts: code declared as unlikely.
        text.push_str("__attribute__((cold)) void fail(void);\nvoid fail(void) { puts(\"f\"); }\n");
        text.push_str("int known(int x) { if (x > 1000) fail(); return x + sink; }\n");
        write!(text, "int main(int c, char **v) {{\n\tfor (int r = 1; r < 200; r++) {{\n{calls}\t}}\n")
            .unwrap();
        text.push_str("\treturn known(c) == 1;\n}\n");
        text
    }

    fn gcc(dir: &Path, args: &[&str]) {
        assert!(Command::new("gcc").current_dir(dir).args(args).status().unwrap().success());
    }

    fn evidence(dir: &Path, flags: &[&str], counts: &[ObjectCounts]) -> ColdCodeEvidence {
        let common = ["-O2", "-Wno-missing-profile", "all.c", "-o", "image"];
        gcc(dir, &[flags, &common[..]].concat());
        ColdCodeEvidence::of(&Symbols::load(&dir.join("image")).unwrap(), counts)
    }

    #[test]
    fn the_image_tells_a_profile_that_took_from_one_that_was_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join("all.c"), source()).unwrap();
        gcc(dir, &["-O2", "-fprofile-arcs", "-ftest-coverage", "all.c", "-o", "image"]);
        let (gcda, gcno) = (dir.join("image-all.gcda"), dir.join("image-all.gcno"));
        assert!(Command::new(dir.join("image")).current_dir(dir).status().is_ok());
        let mut profile = Gcda::parse(&fs::read(&gcda).unwrap()).unwrap();
        let notes = GcnoFile::parse(&fs::read(gcno).unwrap()).unwrap();
        let counts = [ObjectCounts::join("all.o".into(), &profile, &notes).unwrap()];

        let base = evidence(dir, &[], &counts);
        assert!(base.never_ran.of >= 40 && base.never_ran.share() < 0.1, "{base:?}");
        assert!((0.3..0.7).contains(&base.ran_in_front), "{base:?}");

        // As a kernel exports it: GCC ignores the profile silently.
        profile.summary = None;
        fs::write(&gcda, profile.to_bytes()).unwrap();
        let ignored = evidence(dir, &["-fprofile-use"], &counts);
        assert_eq!((ignored.cold_parts, ignored.never_ran), (base.cold_parts, base.never_ran), "{ignored:?}");
        let partial = ["-fprofile-use", PARTIAL_TRAINING];
        assert_eq!(evidence(dir, &partial, &counts).ran_in_front, base.ran_in_front);

        profile.set_summary(1, summarize([&profile]).sum_max);
        fs::write(&gcda, profile.to_bytes()).unwrap();
        let tuned = evidence(dir, &["-fprofile-use"], &counts);
        assert!(tuned.cold_parts >= 40 && base.cold_parts < 10, "{tuned:?}");
        assert!(tuned.never_ran.share() > 0.9 && tuned.ran.share() < 0.1, "{tuned:?}");
        // What did not run is where it is without a profile.
        let tuned = evidence(dir, &partial, &counts);
        assert!(tuned.never_ran.share() < 0.1 && tuned.ran_in_front > 0.9, "{tuned:?}");
    }

    #[test]
    fn what_ran_often_holds_nearly_all_counts() {
        assert_eq!(hot(vec![(1, 10), (900, 20), (99, 30)]), [20, 30]);
        assert_eq!(hot(vec![(5, 10), (5, 20)]), [10, 20]);
        assert_eq!(hot(vec![(u64::MAX, 10), (1, 20)]), [10]);
        assert!(hot(Vec::new()).is_empty());
    }

    #[test]
    fn cold_parts_are_known_by_name() {
        assert!(is_cold_part("fork.cold") && is_cold_part("fork.cold.12"));
        assert!(!is_cold_part("fork") && !is_cold_part("x.coldest") && !is_cold_part(".cold"));
    }

    #[test]
    fn an_image_without_cold_parts_has_nothing_to_say() {
        assert_eq!(ColdCodeEvidence::of(&Symbols::default(), &[]), ColdCodeEvidence::default());
        assert_eq!(ColdPlacement::default().share(), 0.0);
    }
}
