//! Sums by group, without an SQL engine.

use crate::location::PartitionKey;
use crate::{FleetEntry, Result};
use kerntune_profile::{FunctionTotals, NamedFunctions};
use kerntune_work::interrupt;
use serde::Serialize;
use std::collections::BTreeMap;

/// Sums of profiles with equal values of the requested levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileGroup {
    /// Values of the levels, in the order requested.
    pub values: Vec<String>,
    /// Number of profiles.
    pub profiles: u64,
    /// First day.
    pub first: String,
    /// Last day.
    pub last: String,
    /// Time inside regions; virtual time of exact profiles.
    pub elapsed_ns: u64,
    /// Unit of `busy` and of the function's figures: `instructions` or `ns`; `None` if exact and
    /// other profiles are mixed.
    pub unit: Option<&'static str>,
    /// Busy time, in `unit`.
    pub busy: u64,
    /// Number of events that the profiles were made from.
    pub events: u64,
    /// Number of events that were lost.
    pub lost_events: u64,
    /// Sums of a function, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionFigures>,
}

/// Sums of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FunctionFigures {
    /// Number of profiles in which it ran.
    pub profiles: u64,
    /// Number of calls.
    pub calls: u64,
    /// Self time, in the group's unit.
    #[serde(rename = "self")]
    pub own: u64,
    /// Total time of the calls that ended, with callees, in the group's unit.
    pub elapsed: u64,
}

impl FunctionFigures {
    fn add(&mut self, totals: &FunctionTotals) {
        self.calls = self.calls.saturating_add(totals.calls);
        self.own = self.own.saturating_add(totals.self_ticks.get());
        self.elapsed = self.elapsed.saturating_add(totals.total_ticks.get());
    }
}

/// Sums up profiles by the values of `by`. If `function` is given, also sums up all functions of
/// this name, which reads tables of every profile, one profile at a time.
///
/// # Errors
/// A damaged file, by its name; an interrupt.
pub fn query(
    entries: &[FleetEntry],
    by: &[PartitionKey],
    function: Option<&str>,
) -> Result<Vec<ProfileGroup>> {
    let mut groups: BTreeMap<Vec<String>, ProfileGroup> = BTreeMap::new();
    let mut named = function.map(NamedFunctions::new);
    for entry in entries {
        interrupt::check()?;
        let manifest = entry.manifest()?;
        let values: Vec<String> = by.iter().map(|&key| entry.location.get(key).to_owned()).collect();
        let date = entry.location.get(PartitionKey::Date);
        let unit = if manifest.exact { "instructions" } else { "ns" };
        let group = groups.entry(values.clone()).or_insert_with(|| ProfileGroup {
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
        add(&mut group.elapsed_ns, manifest.elapsed_ticks.get());
        group.unit = group.unit.filter(|known| *known == unit);
        add(&mut group.busy, manifest.busy_ticks.get());
        add(&mut group.events, manifest.events);
        add(&mut group.lost_events, manifest.lost_events);
        group.first = group.first.as_str().min(date).to_owned();
        group.last = group.last.as_str().max(date).to_owned();
        if let (Some(figures), Some(named)) = (&mut group.function, &mut named) {
            let totals = named.totals(&entry.path, &manifest)?;
            figures.profiles += u64::from(!totals.is_empty());
            totals.iter().for_each(|totals| figures.add(totals));
        }
    }
    Ok(groups.into_values().collect())
}
