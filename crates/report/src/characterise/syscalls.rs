//! The mix of system calls, by the kernel's functions that do them.

use super::event::{has_entries, Event, Rates};
use super::split::is_user;
use crate::sampled;
use crate::system_calls::system_call;
use kerntune_profile::{FunctionTotals, How, Profile, Scope};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Which system calls there were.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Syscalls {
    /// How often the kernel was entered by one; none where entries are not counted.
    pub entries: Option<u64>,
    /// Calls of the functions that do them: what `calls` sums to; none where calls are not counted.
    pub dispatched: Option<u64>,
    /// By name, most time first.
    pub calls: Vec<Event>,
}

impl Syscalls {
    /// Entries that came to no function of a system call, or the other way round; none where one of them is not known.
    pub fn difference(&self) -> Option<i128> {
        Some(i128::from(self.entries?) - i128::from(self.dispatched?))
    }

    /// How many there were.
    pub fn count(&self) -> Option<u64> {
        self.entries.or(self.dispatched)
    }
}

/// The mix, entered and done within `scope`.
pub(crate) fn syscalls(profile: &Profile, scope: &Scope, rates: &Rates) -> Syscalls {
    let tables = &profile.tables;
    let kernel = || tables.symbols.iter().filter(|symbol| !is_user(profile, symbol));
    // Of a system call without arguments the inner name is another name of the outer function; else the outer calls it.
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
        Event::new(profile, name, count, (totals.ended, totals.elapsed_ns.get()), rates)
    };
    let mut calls: Vec<Event> = by_name.into_iter().map(call).collect();
    calls.sort_by(|a, b| {
        let key = |event: &Event| Reverse((event.elapsed_ns, event.count));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    let entered = tables.arcs.iter().filter(|arc| arc.how == How::Syscall && scope.contains(arc.region));
    let entries = entered.fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
    let measured = profile.manifest.sampled.is_none() && has_entries(profile);
    Syscalls {
        entries: measured.then_some(entries),
        dispatched: counted.then(|| calls.iter().filter_map(|call| call.count).fold(0, u64::saturating_add)),
        calls,
    }
}
