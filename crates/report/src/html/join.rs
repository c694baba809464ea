//! Functions of two kernels side by side.

use crate::inlining::{unite, Moves};
use crate::view::View;
use crate::Result;
use kerntune_profile::{difference, source_name, FunctionTotals, Nanoseconds, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// One function of the source in both kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    pub name: String,
    pub before: Option<FunctionTotals>,
    pub after: Option<FunctionTotals>,
    /// Functions that are inlined in it in one kernel only, and count as it in both.
    pub with: BTreeSet<String>,
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
    let mut with = count_inlined(&mut sides, [before, after]);
    let mut joined: Vec<_> = sides
        .into_iter()
        .filter(|(_, sides)| sides.iter().any(Option::is_some))
        .map(|(name, [before, after])| Joined {
            with: with.remove(&name).unwrap_or_default(),
            name,
            before,
            after,
        })
        .collect();
    joined.sort_by_key(|row| std::cmp::Reverse(row.weight()));
    Ok(joined)
}

/// Gives callers what is inlined in them in one of the kernels; their names with what they got.
fn count_inlined(
    sides: &mut BTreeMap<String, [Option<FunctionTotals>; 2]>,
    profiles: [&Profile; 2],
) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = difference(profiles[0], profiles[1]);
    unite(&mut found);
    let name = |row: usize| source_name(&found.functions[row].name).0.to_string();
    let figure = |value: i128| u64::try_from(value).unwrap_or_default();
    let mut with: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for moved in Moves::find(profiles, &found, [None, None]).list {
        let (function, into) = (name(moved.function), name(moved.into));
        for side in 0..2 {
            let (calls, net) = (figure(moved.calls[side]), Nanoseconds(figure(moved.net_ns[side])));
            if let Some(of) = sides.get_mut(&function).map(|sides| &mut sides[side]) {
                if let Some(totals) = of {
                    totals.calls = totals.calls.saturating_sub(calls);
                    totals.net_ns = Nanoseconds(totals.net_ns.get().saturating_sub(net.get()));
                }
                *of = of.take().filter(|totals| totals.calls > 0 || totals.net_ns.get() > 0);
            }
            if let Some(Some(totals)) = sides.get_mut(&into).map(|sides| &mut sides[side]) {
                totals.net_ns = Nanoseconds(totals.net_ns.get().saturating_add(net.get()));
            }
        }
        if function != into {
            with.entry(into).or_default().insert(function);
        }
    }
    with
}
