//! How alike two workloads are: how much of their time goes the same way.
//!
//! Time is divided among names (functions, system calls, parts of the kernel); a name's share is its time by that of all of them. The
//! similarity is the sum over all names of the smaller of both shares, in per cent: 100 if all shares are equal, 0 if no name
//! has time in both, the same whichever comes first. It is one minus half the sum of the differences (the total variation
//! distance).

use super::facts::Character;
use super::split::{is_user, Group};
use kerntune_profile::{source_name, Profile, Scope};
use serde::Serialize;
use std::collections::BTreeMap;

/// Time by name.
pub(crate) type Shares = BTreeMap<String, u64>;

/// How much of two divisions of time is the same, in per cent; none if one has no time.
fn overlap(a: &Shares, b: &Shares) -> Option<f64> {
    let sum = |shares: &Shares| shares.values().map(|ns| u128::from(*ns)).sum::<u128>();
    let (of_a, of_b) = (sum(a), sum(b));
    if of_a == 0 || of_b == 0 {
        return None;
    }
    // In whole numbers, so that what is equal is 100 % and not a little less.
    let scaled = |ns: u64, by: u128| u128::from(ns).saturating_mul(by);
    let same = a.iter().map(|(name, ns)| {
        let other = b.get(name).copied().unwrap_or(0);
        scaled(*ns, of_b).min(scaled(other, of_a))
    });
    let same = same.fold(0, u128::saturating_add);
    Some((100.0 * (same as f64 / of_a.saturating_mul(of_b) as f64)).clamp(0.0, 100.0))
}

/// How a profile's time is divided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub functions: Shares,
    pub syscalls: Shares,
    pub subsystems: Shares,
    pub split: Shares,
}

/// How alike the times of two profiles are divided, per cent each; none where one of them has no such time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Similarity {
    /// Net time of the kernel's functions, paired by the names that they have in the source.
    pub functions: Option<f64>,
    /// Time of system calls, with all that they call.
    pub syscalls: Option<f64>,
    /// Net time of the kernel's functions by the directory of their source.
    pub subsystems: Option<f64>,
    /// Elapsed time: user code, kernel, hard interrupts, softirqs, idle.
    pub split: Option<f64>,
}

impl Spent {
    /// The same scope as the character's.
    pub fn of(profile: &Profile, scope: &Scope, character: &Character) -> Self {
        let tables = &profile.tables;
        let mut functions = Shares::new();
        for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
            let symbol = tables.symbols.get(row.function.get() as usize);
            if let Some(symbol) = symbol.filter(|symbol| !is_user(profile, symbol)) {
                let sum = functions.entry(source_name(&symbol.name).0.to_owned()).or_default();
                *sum = sum.saturating_add(row.net_ns.get());
            }
        }
        let syscalls = character.syscalls.calls.iter();
        let group = |group: Group| {
            (group.word().to_owned(), u64::try_from(character.group_ns(group)).unwrap_or_default())
        };
        Self {
            functions,
            syscalls: syscalls.map(|call| (call.name.clone(), call.elapsed_ns)).collect(),
            subsystems: character.subsystems.iter().map(|row| (row.group.clone(), row.net_ns)).collect(),
            split: Group::ALL.into_iter().map(group).collect(),
        }
    }

    /// How alike two are.
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

    fn shares(all: &[(&str, u64)]) -> Shares {
        all.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect()
    }

    #[test]
    fn the_smaller_shares_are_added_up() {
        let a = shares(&[("tcp_ack", 50), ("tcp_sendmsg", 30), ("schedule", 20)]);
        let b = shares(&[("tcp_ack", 100), ("vfs_read", 300), ("schedule", 100)]);
        // 20 % of each, tcp_ack and schedule.
        assert_eq!(overlap(&a, &b), Some(40.0));
        assert_eq!(overlap(&a, &shares(&[("vfs_read", 1)])), Some(0.0));
        assert_eq!(overlap(&a, &shares(&[("tcp_ack", 0)])), None);
        assert_eq!(overlap(&a, &Shares::new()), None);
        let large = shares(&[("a", u64::MAX), ("b", u64::MAX)]);
        assert_eq!(overlap(&large, &large), Some(100.0));
    }

    fn any_shares() -> impl Strategy<Value = Shares> {
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
