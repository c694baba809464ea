//! Functions of two kernels side by side.

use crate::view::View;
use crate::Result;
use kerntune_profile::{source_name, FunctionTotals, Profile};
use std::collections::BTreeMap;

/// One function of the source in both kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    pub name: String,
    pub before: Option<FunctionTotals>,
    pub after: Option<FunctionTotals>,
}

impl Joined {
    /// Its weight in the choice of what is shown: the greater net time of both.
    fn weight(&self) -> u64 {
        [&self.before, &self.after].into_iter().flatten().map(|totals| totals.net_ns.get()).max().unwrap_or(0)
    }
}

/// All functions of both, the heaviest first.
pub(super) fn join(before: &Profile, after: &Profile) -> Result<Vec<Joined>> {
    let mut sides: BTreeMap<String, [Option<FunctionTotals>; 2]> = BTreeMap::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for row in View::new(profile, None)?.functions {
            let (name, is_cold_part) = source_name(&row.name);
            // The cold part of a function is entered by a jump: its time counts, its entries are
            // not calls of the function.
            let totals = match is_cold_part {
                true => row.totals.without_calls(),
                false => row.totals,
            };
            let none = FunctionTotals::none(totals.function);
            sides.entry(name.into()).or_default()[side].get_or_insert(none).add(&totals);
        }
    }
    let mut joined: Vec<_> =
        sides.into_iter().map(|(name, [before, after])| Joined { name, before, after }).collect();
    joined.sort_by_key(|row| std::cmp::Reverse(row.weight()));
    Ok(joined)
}
