//! Context switches, migrations, waits for a CPU and for locks.

use super::event::{Count, Of};
use crate::locks::kind;
use crate::scheduling::reason;
use crate::view::share;
use kerntune_profile::{FunctionIndex, SwitchKind};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Context switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Switches {
    pub all: Count,
    pub voluntary: Count,
    pub preempted: Count,
    /// Those of `voluntary` in which the idle task gave the CPU to a thread that can run.
    pub from_idle: Count,
    /// By the function that called the scheduler and the kind, most first; [`IDLE_TASK`] for those of the idle task.
    pub reasons: Vec<Count>,
}

/// The reason of switches from the idle task.
pub(crate) const IDLE_TASK: &str = "[idle task]";

/// What several CPUs make of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Scheduling {
    /// Waits of threads that could run for a CPU.
    pub waits: Count,
    pub wait_ns: u64,
    pub avg_ns: Option<u64>,
    pub longest_ns: u64,
    /// By why a thread went to another CPU.
    pub migrations: Vec<Count>,
}

/// A lock that was waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Lock {
    pub kind: &'static str,
    pub name: Option<String>,
    /// On whose behalf.
    pub caller: Option<String>,
    pub waits: u64,
    pub wait_ns: u64,
}

/// Locks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Locks {
    /// Time in functions that wait for locks, and spin.
    #[serde(rename = "waiting")]
    pub waiting_ns: u64,
    pub percent_busy: f64,
    /// Waits, on several CPUs; none on one, where they are not recorded.
    pub waits: Option<u64>,
    /// How long they took together, whoever ran meanwhile.
    pub wait_ns: u64,
    /// Those with the longest waits.
    pub locks: Vec<Lock>,
}

pub(crate) fn switches(of: &Of) -> Switches {
    let tables = &of.profile.tables;
    let mut kinds: BTreeMap<SwitchKind, u64> = BTreeMap::new();
    let mut reasons: BTreeMap<(Option<&str>, SwitchKind), u64> = BTreeMap::new();
    for row in tables.switches.iter().filter(|row| of.scope.contains(row.region)) {
        // `init_idle` (kernel/sched/core.c) calls them so.
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
    let count = |name: &str, count| Count::new(name, "", count, of.rates);
    let mut reasons: Vec<Count> = reasons
        .into_iter()
        .map(|((reason, kind), count)| {
            Count::new(reason.unwrap_or("[no function open]"), kind.word(), count, of.rates)
        })
        .collect();
    reasons.sort_by_key(|row| Reverse(row.count));
    Switches {
        all: count("context switches", voluntary.saturating_add(preempted)),
        voluntary: count("voluntary", voluntary),
        preempted: count("preempted", preempted),
        from_idle: count("from the idle task", from_idle),
        reasons,
    }
}

pub(crate) fn scheduling(of: &Of) -> Option<Scheduling> {
    let tables = &of.profile.tables;
    if tables.cpus.is_empty() {
        return None;
    }
    let (mut waits, mut wait_ns, mut longest_ns) = (0u64, 0u64, 0);
    for row in tables.delays.iter().filter(|row| of.scope.contains(row.region)) {
        waits = waits.saturating_add(row.count);
        wait_ns = wait_ns.saturating_add(row.delay_ns.get());
        longest_ns = longest_ns.max(row.max_ns.get());
    }
    let mut migrations: BTreeMap<&str, u64> = BTreeMap::new();
    for row in tables.migrations.iter().filter(|row| of.scope.contains(row.region)) {
        let function = row.reason.known().map(|function| tables.name(function));
        let sum = migrations.entry(reason(function)).or_default();
        *sum = sum.saturating_add(row.count);
    }
    let mut migrations: Vec<Count> =
        migrations.into_iter().map(|(why, count)| Count::new(why, "migration", count, of.rates)).collect();
    migrations.sort_by_key(|row| Reverse(row.count));
    Some(Scheduling {
        waits: Count::new("waits for a CPU", "", waits, of.rates),
        wait_ns,
        avg_ns: wait_ns.saturating_add(waits / 2).checked_div(waits),
        longest_ns,
        migrations,
    })
}

/// Locks that are listed.
const LOCKS: usize = 10;

pub(crate) fn locks(of: &Of) -> Locks {
    let tables = &of.profile.tables;
    let is_waiting = |function: FunctionIndex| kind(tables.name(function)).is_some();
    let waiting_ns = tables
        .functions
        .iter()
        .filter(|row| of.scope.contains(row.region) && is_waiting(row.function))
        .fold(0, |sum: u64, row| sum.saturating_add(row.net_ns.get()));
    let mut sums: BTreeMap<(&'static str, &str, Option<&str>), [u64; 2]> = BTreeMap::new();
    for row in tables.locks.iter().filter(|row| of.scope.contains(row.region)) {
        let caller = row.caller.known().map(|function| tables.name(function));
        let [waits, ns] = sums
            .entry((kind(tables.name(row.function)).unwrap_or("lock"), row.name.as_str(), caller))
            .or_default();
        *waits = waits.saturating_add(row.count);
        *ns = ns.saturating_add(row.wait_ns.get());
    }
    let sum = |which: usize| sums.values().fold(0, |sum: u64, counts| sum.saturating_add(counts[which]));
    let (waits, wait_ns) = (sum(0), sum(1));
    let mut locks: Vec<Lock> = sums
        .into_iter()
        .map(|((kind, name, caller), [waits, wait_ns])| Lock {
            kind,
            name: (!name.is_empty()).then(|| name.into()),
            caller: caller.map(Into::into),
            waits,
            wait_ns,
        })
        .collect();
    locks.sort_by_key(|row| Reverse((row.wait_ns, row.waits)));
    locks.truncate(LOCKS);
    Locks {
        waiting_ns,
        percent_busy: share(waiting_ns, of.totals.busy_ns.get()),
        waits: (!tables.cpus.is_empty()).then_some(waits),
        wait_ns,
        locks,
    }
}
