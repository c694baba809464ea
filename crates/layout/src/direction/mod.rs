//! Predictors of the direction of conditional branches, as configured in a model file.
//!
//! A predictor gets each conditional branch in execution order, taken or not, and returns its
//! prediction. Branches are identified by address and address space. As in hardware, kernel and
//! user code share one history of outcomes.

mod counter;
mod gshare;
mod tage;

use gshare::Gshare;
use serde::{Deserialize, Serialize};
use tage::Tage;

/// Predictor of the direction of conditional branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum DirectionConfig {
    /// Static rule: backward branches are taken, forward ones are not.
    Static {},
    /// Counters indexed by the branch's address and the last outcomes (McFarling, "Combining Branch
    /// Predictors", WRL TN-36, 1993).
    Gshare {
        /// Number of two-bit counters, a power of two.
        entries: u64,
        /// Number of last outcomes in the index.
        history: u64,
    },
    /// Tagged tables, indexed by histories of growing length (Seznec and Michaud, "A case for
    /// (partially) TAgged GEometric history length branch prediction", JILP 8, 2006).
    Tage {
        /// Number of two-bit counters in the table without history, a power of two.
        base_entries: u64,
        /// Number of tagged tables.
        tables: u64,
        /// Number of entries in each tagged table, a power of two.
        entries: u64,
        /// Width of a tag in bits.
        tag_bits: u64,
        /// Number of outcomes in the first tagged table's index.
        min_history: u64,
        /// Number of outcomes in the last tagged table's index. Those of the tables between grow in
        /// a geometric series.
        max_history: u64,
    },
}

/// Upper bounds; larger values are taken for mistakes in the model file.
const MAX_ENTRIES: u64 = 1 << 20;
const MAX_TABLES: u64 = 32;
const MAX_HISTORY: u64 = 4096;

impl DirectionConfig {
    /// Returns key, value and rule of the first invalid value; `None` if all are valid.
    pub(crate) fn fault(&self) -> Option<(&'static str, u64, String)> {
        let table = |value: u64| value.is_power_of_two() && value <= MAX_ENTRIES;
        let entries = || format!("must be a power of two up to {MAX_ENTRIES}");
        match *self {
            Self::Static {} => None,
            Self::Gshare { entries: size, .. } if !table(size) => {
                Some(("direction.entries", size, entries()))
            }
            Self::Gshare { history, .. } if history > 63 => {
                Some(("direction.history", history, "must be 0 to 63 outcomes".into()))
            }
            Self::Gshare { .. } => None,
            Self::Tage { base_entries, tables, entries: size, tag_bits, min_history, max_history } => {
                let range = |max: u64, of: &str| format!("must be 1 to {max} {of}");
                let faults = [
                    (!table(base_entries), "direction.base_entries", base_entries, entries()),
                    (!table(size) || size < 2, "direction.entries", size, entries()),
                    (
                        !(1..=MAX_TABLES).contains(&tables),
                        "direction.tables",
                        tables,
                        range(MAX_TABLES, "tables"),
                    ),
                    (
                        !(4..=16).contains(&tag_bits),
                        "direction.tag_bits",
                        tag_bits,
                        "must be 4 to 16 bits".into(),
                    ),
                    (
                        !(1..=MAX_HISTORY).contains(&max_history),
                        "direction.max_history",
                        max_history,
                        range(MAX_HISTORY, "outcomes"),
                    ),
                    (
                        !(1..=max_history).contains(&min_history),
                        "direction.min_history",
                        min_history,
                        format!("must be 1 to max_history = {max_history}"),
                    ),
                ];
                faults.into_iter().find(|fault| fault.0).map(|(_, key, value, rule)| (key, value, rule))
            }
        }
    }
}

/// Direction predictor with its learned state.
#[derive(Debug, Clone)]
pub(crate) enum DirectionPredictor {
    Static,
    Gshare(Gshare),
    Tage(Box<Tage>),
}

impl DirectionPredictor {
    /// Creates an untrained predictor from a validated configuration.
    pub(crate) fn new(config: &DirectionConfig) -> Self {
        match *config {
            DirectionConfig::Static {} => Self::Static,
            DirectionConfig::Gshare { entries, history } => Self::Gshare(Gshare::new(entries, history)),
            DirectionConfig::Tage { base_entries, tables, entries, tag_bits, min_history, max_history } => {
                let histories = tage::histories(tables, min_history, max_history);
                Self::Tage(Box::new(Tage::new(base_entries, entries, tag_bits as u32, &histories)))
            }
        }
    }

    /// Predicts whether the branch from `source` to `target` is taken, and then trains with the
    /// actual outcome `taken`.
    #[inline]
    pub(crate) fn guess(&mut self, source: u64, target: u64, taken: bool, salt: u64) -> bool {
        match self {
            Self::Static => target < source,
            Self::Gshare(gshare) => gshare.guess(source ^ salt, taken),
            Self::Tage(tage) => tage.guess(source ^ salt, taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const TEXT: u64 = 0xffff_ffff_8100_0000;

    /// Returns the number of mispredictions in the last half of these outcomes.
    pub(super) fn wrong(config: &str, outcomes: impl Iterator<Item = (u64, bool)> + Clone) -> usize {
        let config: DirectionConfig = toml::from_str(config).unwrap();
        assert_eq!(config.fault(), None);
        let mut direction = DirectionPredictor::new(&config);
        let half = outcomes.clone().count() / 2;
        let guesses = outcomes.map(|(branch, taken)| {
            let source = TEXT + branch * 24;
            direction.guess(source, source + 8, taken, 0) != taken
        });
        guesses.skip(half).filter(|wrong| *wrong).count()
    }

    pub(super) const TAGE: &str =
        "kind = \"tage\"\nbase_entries = 4096\ntables = 7\nentries = 512\ntag_bits = 12\n\
                                   min_history = 5\nmax_history = 130\n";
    pub(super) const GSHARE: &str = "kind = \"gshare\"\nentries = 4096\nhistory = 12\n";

    #[test]
    fn the_static_rule_looks_at_the_direction_alone() {
        let mut direction = DirectionPredictor::new(&DirectionConfig::Static {});
        for taken in [true, false] {
            assert!(direction.guess(TEXT + 64, TEXT, taken, 0));
            assert!(!direction.guess(TEXT, TEXT + 64, taken, 0));
        }
    }

    #[test]
    fn what_always_goes_one_way_is_learnt_at_once() {
        for config in [GSHARE, TAGE] {
            assert_eq!(wrong(config, (0..4000).map(|n| (n % 10, n % 10 < 5))), 0, "{config}");
        }
    }

    #[test]
    fn patterns_as_long_as_the_history_are_learnt_and_longer_ones_by_tage_alone() {
        let every = |period: u64| (0..40_000).map(move |n| (1, n % period == 0));
        assert_eq!((wrong(GSHARE, every(7)), wrong(TAGE, every(7))), (0, 0));
        // Twelve outcomes "not taken" can be followed by any of 29 states.
        assert!(wrong(GSHARE, every(41)) > 450);
        assert_eq!(wrong(TAGE, every(41)), 0);
    }

    #[test]
    fn a_branch_that_depends_on_another_is_learnt() {
        // The first branch is random; the second has the same outcome.
        let mut state = 1u64;
        let mut bits = Vec::new();
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bit = state >> 60 & 1 == 1;
            bits.extend([(1, bit), (2, bit)]);
        }
        for config in [GSHARE, TAGE] {
            let wrong = wrong(config, bits.iter().copied());
            // Half of the 10,000 random outcomes, and hardly any of those that follow them.
            assert!((4_500..6_000).contains(&wrong), "{config}: {wrong} of 20,000");
        }
    }

    #[test]
    fn two_predictors_of_one_stream_agree() {
        let stream = (0..50_000u64).map(|n| (n * n % 97, n * n % 7 < 3));
        assert_eq!(wrong(TAGE, stream.clone()), wrong(TAGE, stream));
    }

    #[test]
    fn what_makes_no_predictor_is_refused_with_its_key() {
        for (text, find, replace, key) in [
            (GSHARE, "4096", "4095", "direction.entries"),
            (GSHARE, "4096", "9000000000000", "direction.entries"),
            (GSHARE, "12", "64", "direction.history"),
            (TAGE, "4096", "0", "direction.base_entries"),
            (TAGE, "512", "1", "direction.entries"),
            (TAGE, "tables = 7", "tables = 0", "direction.tables"),
            (TAGE, "tables = 7", "tables = 33", "direction.tables"),
            (TAGE, "tag_bits = 12", "tag_bits = 17", "direction.tag_bits"),
            (TAGE, "= 130", "= 5000", "direction.max_history"),
            (TAGE, "min_history = 5", "min_history = 131", "direction.min_history"),
        ] {
            let config: DirectionConfig = toml::from_str(&text.replace(find, replace)).unwrap();
            assert_eq!(config.fault().map(|fault| fault.0), Some(key), "{find} -> {replace}");
        }
        for text in ["kind = \"perceptron\"\n", "kind = \"static\"\nentries = 4\n", "kind = \"gshare\"\n"] {
            assert!(toml::from_str::<DirectionConfig>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_smallest_and_the_largest_predictors_work() {
        let outcomes = (0..3000u64).map(|n| (n % 300, n % 3 == 0));
        for config in [
            "kind = \"gshare\"\nentries = 1\nhistory = 0\n",
            "kind = \"gshare\"\nentries = 1048576\nhistory = 63\n",
            "kind = \"tage\"\nbase_entries = 1\ntables = 1\nentries = 2\ntag_bits = 4\nmin_history = 1\nmax_history = 1\n",
            "kind = \"tage\"\nbase_entries = 1\ntables = 32\nentries = 4\ntag_bits = 16\nmin_history = 1\n\
             max_history = 4096\n",
        ] {
            assert!(wrong(config, outcomes.clone()) <= 1500);
        }
    }
}
