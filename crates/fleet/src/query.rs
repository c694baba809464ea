//! Sums by group, without another program.

use crate::place::Key;
use crate::{Entry, Result};
use kerntune_profile::FunctionTotals;
use kerntune_work::interrupt;
use serde::Serialize;
use std::collections::BTreeMap;

/// Profiles that have the asked levels in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The levels' values, in the order in which they were asked for.
    pub values: Vec<String>,
    /// How many profiles.
    pub profiles: u64,
    /// The first day.
    pub first: String,
    /// The last day.
    pub last: String,
    /// Time inside regions; virtual time of exact profiles.
    pub elapsed_ns: u64,
    /// What `busy` and figures of the function are: `instructions` or `ns`; none if some profiles are exact and others are not.
    pub unit: Option<&'static str>,
    /// What code took.
    pub busy: u64,
    /// Events that the profiles were made from.
    pub events: u64,
    /// Events that were seen and not kept.
    pub lost_events: u64,
    /// What a function did in all of them, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionFigures>,
}

/// What a function did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FunctionFigures {
    /// In how many profiles it ran.
    pub profiles: u64,
    /// Calls that were made.
    pub calls: u64,
    /// What the function itself took.
    #[serde(rename = "self")]
    pub own: u64,
    /// The same with its callees, of the calls that ended.
    pub elapsed: u64,
}

impl FunctionFigures {
    fn add(&mut self, totals: &FunctionTotals) {
        self.calls = self.calls.saturating_add(totals.calls);
        self.own = self.own.saturating_add(totals.net_ns.get());
        self.elapsed = self.elapsed.saturating_add(totals.elapsed_ns.get());
    }
}

/// Sums by the values of `by`, and of all functions of one name if it is given: then every profile is read, one at a time.
///
/// # Errors
/// A file that is damaged, by its name; an interrupt.
pub fn query(entries: &[Entry], by: &[Key], function: Option<&str>) -> Result<Vec<Group>> {
    let mut groups: BTreeMap<Vec<String>, Group> = BTreeMap::new();
    for entry in entries {
        interrupt::check()?;
        let (manifest, tables) = match function {
            Some(_) => entry.load().map(|profile| (profile.manifest, Some(profile.tables)))?,
            None => (entry.manifest()?, None),
        };
        let values: Vec<String> = by.iter().map(|&key| entry.place.get(key).to_owned()).collect();
        let date = entry.place.get(Key::Date);
        let unit = if manifest.exact { "instructions" } else { "ns" };
        let group = groups.entry(values.clone()).or_insert_with(|| Group {
            values,
            profiles: 0,
            first: date.to_owned(),
            last: date.to_owned(),
            elapsed_ns: 0,
            unit: Some(unit),
            busy: 0,
            events: 0,
            lost_events: 0,
            function: function.map(|_| FunctionFigures::default()),
        });
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut group.profiles, 1);
        add(&mut group.elapsed_ns, manifest.elapsed_ns.get());
        group.unit = group.unit.filter(|known| *known == unit);
        add(&mut group.busy, manifest.busy_ns.get());
        add(&mut group.events, manifest.events);
        add(&mut group.lost_events, manifest.lost_events);
        group.first = group.first.as_str().min(date).to_owned();
        group.last = group.last.as_str().max(date).to_owned();
        if let (Some(figures), Some(tables), Some(name)) = (&mut group.function, &tables, function) {
            let totals = tables.totals(|_| true);
            let mut any = false;
            for totals in totals.iter().filter(|totals| tables.name(totals.function) == name) {
                any = true;
                figures.add(totals);
            }
            figures.profiles += u64::from(any);
        }
    }
    Ok(groups.into_values().collect())
}
