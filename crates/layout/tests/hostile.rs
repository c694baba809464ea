//! Damaged model files: each is rejected with a reason, or gives a working model.

use kerntune_layout::{CpuMode, FrontEnd, FrontEndConfig, TakenBranch};
use kerntune_trace::counts::BranchKind;
use proptest::prelude::*;

/// Words that model files need, and words that they must not contain.
const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "3",
    "7",
    "64",
    "96",
    "4096",
    "2097152",
    "1048577",
    "9223372036854775807",
    "1e308",
    "nan",
    "inf",
    "\"x\"",
    "true",
    "[]",
    "{}",
    "[l2]",
    "[branch]",
    "[branch.btb]",
    "[branch.btb_l2]",
    "[branch.indirect]",
    "[cycles]",
    "[direction]",
    "kind = \"static\"",
    "kind = \"tage\"",
    "history = 64",
    "ways = 5",
    "entries = 6656",
    "size_bytes = 1310720",
    "return_stack = 2",
    "l2_miss = 1",
    "misprediction = 1",
    "=",
    "\n",
    "\u{0}",
];

/// Generates a built-in file with some words replaced.
fn broken() -> impl Strategy<Value = String> {
    let names: Vec<String> = FrontEndConfig::built_in()
        .flat_map(|name| ["", "+gshare", "+tage+next-line"].map(|parts| format!("{name}{parts}")))
        .collect();
    let change = (any::<prop::sample::Index>(), prop::sample::select(WORDS), any::<bool>());
    (prop::sample::select(names), prop::collection::vec(change, 0..4)).prop_map(|(name, changes)| {
        let text = FrontEndConfig::named(&name).unwrap().to_toml();
        let lines = text.lines();
        let mut words: Vec<&str> = lines.flat_map(|line| line.split(' ').chain(["\n"])).collect();
        for (at, word, insert) in changes {
            let at = at.index(words.len());
            match insert {
                true => words.insert(at, word),
                false => words[at] = word,
            }
        }
        words.join(" ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_file_is_refused_or_makes_a_machine_that_runs(text in broken()) {
        let config = match FrontEndConfig::parse(&text) {
            Err(error) => {
                prop_assert!(error.to_string().starts_with("front-end model"), "{}", error);
                return Ok(());
            }
            Ok(config) => config,
        };
        prop_assert_eq!(&FrontEndConfig::parse(&config.to_toml()).unwrap(), &config);
        let mut front_end = FrontEnd::new(&config).unwrap();
        use BranchKind::*;
        for at in 0..200u64 {
            let start = 0xffff_ffff_8100_0000 + at * 97;
            front_end.fetch(start, start + at, CpuMode::Kernel, 0);
            for kind in [Conditional, Jump, IndirectJump, Call, IndirectCall, Return] {
                let branch = TakenBranch { source: start + at, after: start + at + 5, target: start, kind };
                front_end.branch(&branch, CpuMode::User, at % 3);
            }
            front_end.not_taken(start, start + at, CpuMode::User, at % 3);
        }
        let branches = 200 * 7;
        let counted = front_end.second_level_counts().map_or(0, |counts| {
            let user = counts.user;
            user.btb_l2_hits + user.btb_misses + user.mispredictions + user.direction_mispredictions
        });
        prop_assert!(counted <= branches, "each branch is one event at most: {}", counted);
        let parts = config.branch.is_some() || config.l2.is_some() || config.direction.is_some();
        prop_assert_eq!(parts, front_end.second_level_counts().is_some());
    }
}
