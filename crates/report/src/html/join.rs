//! Pairing of functions of two kernels.

use crate::inlining::{unite, InlineMoves};
use crate::view::ScopeView;
use crate::Result;
use kerntune_profile::{difference, source_name, FunctionTotals, Profile, Ticks};
use std::collections::{BTreeMap, BTreeSet};

/// One function of the source in both kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JoinedFunction {
    pub name: String,
    pub before: Option<FunctionTotals>,
    pub after: Option<FunctionTotals>,
    /// Functions that count as this one because one of the kernels inlines them.
    pub with: BTreeSet<String>,
}

impl JoinedFunction {
    /// Returns the weight for selecting rows: the larger self time of both.
    fn weight(&self) -> u64 {
        [&self.before, &self.after]
            .into_iter()
            .flatten()
            .map(|totals| totals.self_ticks.get())
            .max()
            .unwrap_or(0)
    }
}

/// Pairs the functions of both profiles, heaviest first.
pub(super) fn join(before: &Profile, after: &Profile) -> Result<Vec<JoinedFunction>> {
    let mut sides: BTreeMap<String, [Option<FunctionTotals>; 2]> = BTreeMap::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for row in ScopeView::new(profile, None)?.functions {
            let (name, is_cold_part) = source_name(&row.name);
            // A jump enters the cold part of a function: its time counts, its entries are not
            // calls.
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
        .map(|(name, [before, after])| JoinedFunction {
            with: with.remove(&name).unwrap_or_default(),
            name,
            before,
            after,
        })
        .collect();
    joined.sort_by_key(|row| std::cmp::Reverse(row.weight()));
    Ok(joined)
}

/// Adds the figures of inlined functions to their callers; returns the names that each caller
/// received.
fn count_inlined(
    sides: &mut BTreeMap<String, [Option<FunctionTotals>; 2]>,
    profiles: [&Profile; 2],
) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = difference(profiles[0], profiles[1]);
    unite(&mut found);
    let name = |row: usize| source_name(&found.functions[row].name).0.to_string();
    let figure = |value: i128| u64::try_from(value).unwrap_or_default();
    let mut with: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for moved in InlineMoves::find(profiles, &found, [None, None]).list {
        let (function, into) = (name(moved.function), name(moved.into));
        for side in 0..2 {
            let (calls, net) = (figure(moved.calls[side]), Ticks(figure(moved.self_ticks[side])));
            if let Some(of) = sides.get_mut(&function).map(|sides| &mut sides[side]) {
                if let Some(totals) = of {
                    totals.calls = totals.calls.saturating_sub(calls);
                    totals.self_ticks = Ticks(totals.self_ticks.get().saturating_sub(net.get()));
                }
                *of = of.take().filter(|totals| totals.calls > 0 || totals.self_ticks.get() > 0);
            }
            if let Some(Some(totals)) = sides.get_mut(&into).map(|sides| &mut sides[side]) {
                totals.self_ticks = Ticks(totals.self_ticks.get().saturating_add(net.get()));
            }
        }
        if function != into {
            with.entry(into).or_default().insert(function);
        }
    }
    with
}
