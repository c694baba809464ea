//! Context switches, migrations, and waits for a CPU or a lock.

use super::event::{CharacterInput, EventCount};
use crate::locks::kind;
use crate::scheduling::reason;
use kerntune_profile::{FunctionIndex, SwitchKind};
use kerntune_table::share;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Numbers of context switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SwitchCounts {
    pub all: EventCount,
    pub voluntary: EventCount,
    pub preempted: EventCount,
    /// Voluntary switches from the idle task to a runnable thread.
    pub from_idle: EventCount,
    /// Switches by the function that called the scheduler and by kind, most first; [`IDLE_TASK`]
    /// for those of the idle task.
    pub reasons: Vec<EventCount>,
}

/// Reason of switches from the idle task.
pub(crate) const IDLE_TASK: &str = "[idle task]";

/// Waits and migrations of threads on several CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SchedulingFigures {
    /// Waits of runnable threads for a CPU.
    pub waits: EventCount,
    pub wait_ns: u64,
    pub avg_ns: Option<u64>,
    pub longest_ns: u64,
    /// Migrations between CPUs, by reason.
    pub migrations: Vec<EventCount>,
}

/// Lock that was waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ContendedLock {
    pub kind: &'static str,
    pub name: Option<String>,
    /// Innermost open function outside of locking code.
    pub caller: Option<String>,
    pub waits: u64,
    pub wait_ns: u64,
}

/// Waits for locks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct LockFigures {
    /// Time in functions that wait for locks, and spin.
    #[serde(rename = "waiting")]
    pub waiting_ns: u64,
    pub percent_busy: f64,
    /// Number of waits; `None` on one CPU, where waits are not recorded.
    pub waits: Option<u64>,
    /// Sum of the waits' durations, including time in which other threads ran.
    pub wait_ns: u64,
    /// Locks with the longest waits.
    pub locks: Vec<ContendedLock>,
}

pub(crate) fn switches(of: &CharacterInput) -> SwitchCounts {
    let tables = &of.profile.tables;
    let mut kinds: BTreeMap<SwitchKind, u64> = BTreeMap::new();
    let mut reasons: BTreeMap<(Option<&str>, SwitchKind), u64> = BTreeMap::new();
    for row in tables.switches.iter().filter(|row| of.scope.contains(row.region)) {
        // `init_idle` (kernel/sched/core.c) gives idle tasks this name.
        let is_idle = row.from.starts_with("swapper/") && row.kind == SwitchKind::Voluntary;
        let reason = match is_idle {
            true => Some(IDLE_TASK),
            false => row.reason.known().map(|function| tables.name(function)),
        };
        for sum in [kinds.entry(row.kind).or_default(), reasons.entry((reason, row.kind)).or_default()] {
            *sum = sum.saturating_add(row.count);
        }
    }
    let of_kind = |kind| kinds.get(&kind).copied().unwrap_or(0);
    let (voluntary, preempted) = (of_kind(SwitchKind::Voluntary), of_kind(SwitchKind::Preempted));
    let from_idle = reasons.get(&(Some(IDLE_TASK), SwitchKind::Voluntary)).copied().unwrap_or(0);
    let count = |name: &str, count| EventCount::new(name, "", count, of.rates);
    let mut reasons: Vec<EventCount> = reasons
        .into_iter()
        .map(|((reason, kind), count)| {
            EventCount::new(reason.unwrap_or("[no function open]"), kind.as_str(), count, of.rates)
        })
        .collect();
    reasons.sort_by_key(|row| Reverse(row.count));
    SwitchCounts {
        all: count("context switches", voluntary.saturating_add(preempted)),
        voluntary: count("voluntary", voluntary),
        preempted: count("preempted", preempted),
        from_idle: count("from the idle task", from_idle),
        reasons,
    }
}

pub(crate) fn scheduling(of: &CharacterInput) -> Option<SchedulingFigures> {
    let tables = &of.profile.tables;
    if tables.cpus.is_empty() && tables.delays.is_empty() {
        return None;
    }
    let (mut waits, mut wait_ns, mut longest_ns) = (0u64, 0u64, 0);
    for row in tables.delays.iter().filter(|row| of.scope.contains(row.region)) {
        waits = waits.saturating_add(row.count);
        wait_ns = wait_ns.saturating_add(row.delay_ticks.get());
        longest_ns = longest_ns.max(row.max_ticks.get());
    }
    let mut migrations: BTreeMap<&str, u64> = BTreeMap::new();
    for row in tables.migrations.iter().filter(|row| of.scope.contains(row.region)) {
        let function = row.reason.known().map(|function| tables.name(function));
        let sum = migrations.entry(reason(function)).or_default();
        *sum = sum.saturating_add(row.count);
    }
    let mut migrations: Vec<EventCount> = migrations
        .into_iter()
        .map(|(why, count)| EventCount::new(why, "migration", count, of.rates))
        .collect();
    migrations.sort_by_key(|row| Reverse(row.count));
    Some(SchedulingFigures {
        waits: EventCount::new("waits for a CPU", "", waits, of.rates),
        wait_ns,
        avg_ns: wait_ns.saturating_add(waits / 2).checked_div(waits),
        longest_ns,
        migrations,
    })
}

/// Number of locks that are listed.
const MAX_LOCKS: usize = 10;

pub(crate) fn locks(of: &CharacterInput) -> LockFigures {
    let tables = &of.profile.tables;
    let is_waiting = |function: FunctionIndex| kind(tables.name(function)).is_some();
    let waiting_ns = tables
        .functions
        .iter()
        .filter(|row| of.scope.contains(row.region) && is_waiting(row.function))
        .fold(0, |sum: u64, row| sum.saturating_add(row.self_ticks.get()));
    let mut sums: BTreeMap<(&'static str, &str, Option<&str>), [u64; 2]> = BTreeMap::new();
    for row in tables.locks.iter().filter(|row| of.scope.contains(row.region)) {
        let caller = row.caller.known().map(|function| tables.name(function));
        let [waits, ns] = sums
            .entry((kind(tables.name(row.function)).unwrap_or("lock"), row.name.as_str(), caller))
            .or_default();
        *waits = waits.saturating_add(row.count);
        *ns = ns.saturating_add(row.wait_ticks.get());
    }
    let sum = |which: usize| sums.values().fold(0, |sum: u64, counts| sum.saturating_add(counts[which]));
    let (waits, wait_ns) = (sum(0), sum(1));
    let mut locks: Vec<ContendedLock> = sums
        .into_iter()
        .map(|((kind, name, caller), [waits, wait_ns])| ContendedLock {
            kind,
            name: (!name.is_empty()).then(|| name.into()),
            caller: caller.map(Into::into),
            waits,
            wait_ns,
        })
        .collect();
    locks.sort_by_key(|row| Reverse((row.wait_ns, row.waits)));
    locks.truncate(MAX_LOCKS);
    LockFigures {
        waiting_ns,
        percent_busy: share(waiting_ns, of.totals.busy_ticks.get()),
        waits: (!tables.cpus.is_empty() || !tables.lock_paths.is_empty()).then_some(waits),
        wait_ns,
        locks,
    }
}
