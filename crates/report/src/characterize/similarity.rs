//! Similarity of two workloads: the share of their time that is spent alike.
//!
//! Time is divided among names (functions, system calls, subsystems); a name's share is its time
//! divided by that of all names. The similarity is the sum over all names of the smaller of both
//! shares, in per cent: 100 if all shares are equal, 0 if no name has time in both. It is
//! symmetric, and equals one minus half the sum of the absolute differences (one minus the total
//! variation distance).

use super::facts::WorkloadCharacter;
use super::split::PartGroup;
use crate::view::is_user;
use kerntune_profile::{source_name, Profile, RegionScope};
use serde::Serialize;
use std::collections::BTreeMap;

/// Time by name of a function, system call or subsystem.
pub(crate) type TimeByName = BTreeMap<String, u64>;

/// Returns the similarity of two divisions of time, in per cent; `None` if one has no time.
fn overlap(a: &TimeByName, b: &TimeByName) -> Option<f64> {
    let sum = |shares: &TimeByName| shares.values().map(|ns| u128::from(*ns)).sum::<u128>();
    let (of_a, of_b) = (sum(a), sum(b));
    if of_a == 0 || of_b == 0 {
        return None;
    }
    // Integer arithmetic, so that equal divisions give exactly 100 %.
    let scaled = |ns: u64, by: u128| u128::from(ns).saturating_mul(by);
    let same = a.iter().map(|(name, ns)| {
        let other = b.get(name).copied().unwrap_or(0);
        scaled(*ns, of_b).min(scaled(other, of_a))
    });
    let same = same.fold(0, u128::saturating_add);
    Some((100.0 * (same as f64 / of_a.saturating_mul(of_b) as f64)).clamp(0.0, 100.0))
}

/// Division of a profile's time by function, system call, subsystem, and part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TimeDivision {
    pub functions: TimeByName,
    pub syscalls: TimeByName,
    pub subsystems: TimeByName,
    pub split: TimeByName,
}

/// Similarity of two profiles by several divisions of time, in per cent; `None` where one profile
/// lacks such times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Similarity {
    /// By self time of kernel functions, paired by their names in the source.
    pub functions: Option<f64>,
    /// By total time of system calls.
    pub syscalls: Option<f64>,
    /// By self time of kernel functions, by source directory.
    pub subsystems: Option<f64>,
    /// By elapsed time: user code, kernel, hard interrupts, softirqs, idle.
    pub split: Option<f64>,
}

impl TimeDivision {
    /// Adds up the times of a profile; `scope` must be the character's.
    pub fn of(profile: &Profile, scope: &RegionScope, character: &WorkloadCharacter) -> Self {
        let tables = &profile.tables;
        let mut functions = TimeByName::new();
        for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
            let symbol = tables.symbols.get(row.function.get() as usize);
            if let Some(symbol) = symbol.filter(|symbol| !is_user(profile, symbol)) {
                let sum = functions.entry(source_name(&symbol.name).0.to_owned()).or_default();
                *sum = sum.saturating_add(row.self_ticks.get());
            }
        }
        let syscalls = character.syscalls.calls.iter();
        let group = |group: PartGroup| {
            (group.name().to_owned(), u64::try_from(character.group_ns(group)).unwrap_or_default())
        };
        Self {
            functions,
            syscalls: syscalls.map(|call| (call.name.clone(), call.elapsed_ns)).collect(),
            subsystems: character.subsystems.iter().map(|row| (row.group.clone(), row.self_ticks)).collect(),
            split: PartGroup::ALL.into_iter().map(group).collect(),
        }
    }

    /// Computes the similarity of two divisions.
    pub fn similarity(&self, other: &Self) -> Similarity {
        Similarity {
            functions: overlap(&self.functions, &other.functions),
            syscalls: overlap(&self.syscalls, &other.syscalls),
            subsystems: overlap(&self.subsystems, &other.subsystems),
            split: overlap(&self.split, &other.split),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares(all: &[(&str, u64)]) -> TimeByName {
        all.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect()
    }

    #[test]
    fn the_smaller_shares_are_added_up() {
        let a = shares(&[("tcp_ack", 50), ("tcp_sendmsg", 30), ("schedule", 20)]);
        let b = shares(&[("tcp_ack", 100), ("vfs_read", 300), ("schedule", 100)]);
        // 20 % each for tcp_ack and schedule.
        assert_eq!(overlap(&a, &b), Some(40.0));
        assert_eq!(overlap(&a, &shares(&[("vfs_read", 1)])), Some(0.0));
        assert_eq!(overlap(&a, &shares(&[("tcp_ack", 0)])), None);
        assert_eq!(overlap(&a, &TimeByName::new()), None);
        let large = shares(&[("a", u64::MAX), ("b", u64::MAX)]);
        assert_eq!(overlap(&large, &large), Some(100.0));
    }

    fn any_shares() -> impl Strategy<Value = TimeByName> {
        proptest::collection::btree_map("[a-e]", prop_oneof![0..1_000u64, any::<u64>()], 0..6)
    }

    proptest! {
        #[test]
        fn similarity_is_symmetric_between_0_and_100_and_whole_with_itself(a in any_shares(), b in any_shares()) {
            prop_assert_eq!(overlap(&a, &b), overlap(&b, &a));
            if let Some(percent) = overlap(&a, &b) {
                prop_assert!((0.0..=100.0).contains(&percent));
            }
            if a.values().any(|ns| *ns > 0) {
                prop_assert_eq!(overlap(&a, &a), Some(100.0));
            }
        }
    }
}
