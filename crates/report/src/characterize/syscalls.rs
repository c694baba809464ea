//! Mix of system calls, by the kernel functions that implement them.

use super::event::{has_entries, EventStats, RateBase};
use crate::sampled;
use crate::view::is_user;
use kerntune_profile::{system_call, CallKind, FunctionTotals, Profile, RegionScope};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Counts and times of system calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct SyscallFigures {
    /// Number of system call entries; `None` if entries are not counted.
    pub entries: Option<u64>,
    /// Calls of the implementing functions, the sum of `calls`; `None` if calls are not counted.
    pub dispatched: Option<u64>,
    /// System calls by name, most time first.
    pub calls: Vec<EventStats>,
}

impl SyscallFigures {
    /// Returns entries minus dispatched calls; `None` if one of them is unknown.
    pub fn difference(&self) -> Option<i128> {
        Some(i128::from(self.entries?) - i128::from(self.dispatched?))
    }

    /// Returns the number of system calls.
    pub fn count(&self) -> Option<u64> {
        self.entries.or(self.dispatched)
    }
}

/// Collects the system calls within `scope`.
pub(crate) fn syscalls(profile: &Profile, scope: &RegionScope, rates: &RateBase) -> SyscallFigures {
    let tables = &profile.tables;
    let kernel = || tables.symbols.iter().filter(|symbol| !is_user(profile, symbol));
    // A system call without arguments has one function under both names; otherwise the outer
    // function calls the inner.
    let outer: BTreeSet<String> = kernel()
        .filter_map(|symbol| system_call(&symbol.name))
        .filter(|(_, is_inner)| !is_inner)
        .map(|(name, _)| name)
        .collect();
    let mut by_name: BTreeMap<String, FunctionTotals> = BTreeMap::new();
    for totals in tables.totals(|region| scope.contains(region)) {
        let symbol = tables.symbols.get(totals.function.get() as usize);
        let Some(symbol) = symbol.filter(|symbol| !is_user(profile, symbol)) else { continue };
        let Some((name, is_inner)) = system_call(&symbol.name) else { continue };
        if !is_inner || !outer.contains(&name) {
            by_name.entry(name).or_insert_with(|| FunctionTotals::none(totals.function)).add(&totals);
        }
    }
    let counted = sampled::has_calls(profile) && profile.manifest.capture.functions;
    let call = |(name, totals): (String, FunctionTotals)| {
        let count = sampled::calls_of(profile, totals.calls).filter(|_| counted);
        EventStats::new(profile, name, count, (totals.ended, totals.total_ticks.get()), rates)
    };
    let mut calls: Vec<EventStats> = by_name.into_iter().map(call).collect();
    calls.sort_by(|a, b| {
        let key = |event: &EventStats| Reverse((event.elapsed_ns, event.count));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    let entered = tables.arcs.iter().filter(|arc| arc.how == CallKind::Syscall && scope.contains(arc.region));
    let entries = entered.fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
    let measured = profile.manifest.sampled.is_none() && has_entries(profile);
    SyscallFigures {
        entries: measured.then_some(entries),
        dispatched: counted.then(|| calls.iter().filter_map(|call| call.count).fold(0, u64::saturating_add)),
        calls,
    }
}
