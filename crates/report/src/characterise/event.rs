//! How often something happened, and what it took; what figures are of, and how they came about.

use crate::view::share;
use crate::{sampled, unit};
use kerntune_profile::{How, Profile, RegionStats, Scope, ScopeTotals};
use serde::{Deserialize, Serialize};

/// How figures came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Basis {
    /// Counted: repeats to the instruction.
    Exact,
    /// Of a front-end model.
    Model,
    /// Each time has the error of its samples.
    Sampled,
    /// As it was once: recorded where nothing repeats, or imported.
    Timed,
}

impl Basis {
    /// In tables and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Basis::Exact => "exact",
            Basis::Model => "model",
            Basis::Sampled => "sampled",
            Basis::Timed => "timed",
        }
    }

    /// That of what a profile counted and timed.
    pub fn of(profile: &Profile) -> Basis {
        let manifest = &profile.manifest;
        match (manifest.sampled.is_some(), manifest.exact) {
            (true, _) => Basis::Sampled,
            (false, true) => Basis::Exact,
            (false, false) => Basis::Timed,
        }
    }
}

/// Whether a profile knows by what the kernel was entered, and who got the CPU: one that was imported may have calls alone.
pub(crate) fn has_entries(profile: &Profile) -> bool {
    let manifest = &profile.manifest;
    let is_entry = |how| matches!(how, How::Interrupt | How::Exception | How::Syscall);
    let recorded = manifest.machine == "emulator" || manifest.sampled.is_some();
    manifest.capture.functions && (recorded || profile.tables.arcs.iter().any(|arc| is_entry(arc.how)))
}

/// What everything is gathered from.
pub(crate) struct Of<'a> {
    pub profile: &'a Profile,
    pub scope: &'a Scope,
    pub totals: &'a ScopeTotals,
    pub rates: &'a Rates,
}

/// Regions whose figures include those within them.
pub(crate) fn outermost<'a>(
    profile: &'a Profile,
    scope: &'a Scope,
) -> impl Iterator<Item = &'a RegionStats> + 'a {
    scope.outermost().iter().filter_map(|at| profile.tables.regions.get(*at as usize))
}

/// What figures are divided by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rates {
    /// Operations; none if there are none, or none of one kind.
    pub operations: Option<u64>,
    /// Names of the outermost regions, each once.
    pub kinds: Vec<String>,
    /// Time that passed: virtual time, or that of the wall if times are of several CPUs together.
    pub passed_ns: u64,
    /// What shares are of.
    pub busy_ns: u64,
}

impl Rates {
    pub fn new(profile: &Profile, scope: &Scope, totals: &ScopeTotals) -> Self {
        let mut kinds: Vec<String> = Vec::new();
        for row in outermost(profile, scope) {
            if !kinds.contains(&row.name) {
                kinds.push(row.name.clone());
            }
        }
        // The operations of several kinds of regions are not operations of one kind.
        let operations = Some(totals.operations).filter(|count| *count > 0 && kinds.len() == 1);
        let wall = profile.manifest.sampled.as_ref().map(|sampled| sampled.wall_ns.get());
        let passed_ns = wall.unwrap_or(totals.elapsed_ns.get());
        Self { operations, kinds, passed_ns, busy_ns: totals.busy_ns.get() }
    }

    pub fn per_operation(&self, figure: f64) -> Option<f64> {
        Some(figure / self.operations? as f64)
    }

    /// None if no time passed.
    pub fn per_second(&self, figure: f64) -> Option<f64> {
        (self.passed_ns > 0).then(|| figure * 1e9 / self.passed_ns as f64)
    }
}

/// How often something happened, and what it took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Event {
    pub name: String,
    /// None if it was not counted.
    pub count: Option<u64>,
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
    /// Those that ended.
    pub ended: u64,
    /// Time of those, with all that was called; in sampled profiles time on the stack.
    #[serde(rename = "elapsed")]
    pub elapsed_ns: u64,
    /// Its mean; none if none ended.
    #[serde(rename = "avg")]
    pub avg_ns: Option<u64>,
    /// That time in per cent of the busy time.
    pub percent_busy: f64,
    /// Standard error of a sampled time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "error")]
    pub error_ns: Option<u64>,
}

impl Event {
    pub fn new(
        profile: &Profile,
        name: impl Into<String>,
        count: Option<u64>,
        (ended, elapsed_ns): (u64, u64),
        rates: &Rates,
    ) -> Self {
        let per = |rate: &dyn Fn(f64) -> Option<f64>| count.and_then(|count| rate(count as f64));
        Self {
            name: name.into(),
            count,
            per_operation: per(&|figure| rates.per_operation(figure)),
            per_second: per(&|figure| rates.per_second(figure)),
            ended,
            elapsed_ns,
            avg_ns: elapsed_ns.saturating_add(ended / 2).checked_div(ended),
            percent_busy: share(elapsed_ns, rates.busy_ns),
            error_ns: sampled::error_ns(profile, elapsed_ns),
        }
    }
}

/// How often something happened that takes no time of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Count {
    pub name: String,
    pub kind: String,
    pub count: u64,
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
}

impl Count {
    pub fn new(name: impl Into<String>, kind: impl Into<String>, count: u64, rates: &Rates) -> Self {
        let (per_operation, per_second) = (rates.per_operation(count as f64), rates.per_second(count as f64));
        Self { name: name.into(), kind: kind.into(), count, per_operation, per_second }
    }
}

/// A time of an operation, for a line of text.
pub(crate) fn time(ns: f64) -> String {
    unit::readable(ns.round().max(0.0) as u64)
}
