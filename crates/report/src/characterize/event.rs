//! Counts, rates and times of events, and the basis of figures.

use crate::{sampled, unit};
use kerntune_profile::{CallKind, Profile, RegionScope, RegionStats, ScopeTotals};
use kerntune_table::share;
use serde::{Deserialize, Serialize};

/// Method by which a figure was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FigureBasis {
    /// Counted exactly; repeats to the instruction.
    Exact,
    /// Computed by a front-end model.
    Model,
    /// Sampled; times have a standard error.
    Sampled,
    /// Measured once on a machine that does not repeat exactly, or imported.
    Timed,
}

impl FigureBasis {
    /// Returns the name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            FigureBasis::Exact => "exact",
            FigureBasis::Model => "model",
            FigureBasis::Sampled => "sampled",
            FigureBasis::Timed => "timed",
        }
    }

    /// Returns the basis of a profile's counts and times.
    pub fn of(profile: &Profile) -> FigureBasis {
        let manifest = &profile.manifest;
        match (manifest.sampled.is_some(), manifest.exact) {
            (true, _) => FigureBasis::Sampled,
            (false, true) => FigureBasis::Exact,
            (false, false) => FigureBasis::Timed,
        }
    }
}

/// Checks whether the profile has kernel entries and context switches; imported profiles may have
/// calls only.
pub(crate) fn has_entries(profile: &Profile) -> bool {
    let manifest = &profile.manifest;
    let is_entry = |how| matches!(how, CallKind::Interrupt | CallKind::Exception | CallKind::Syscall);
    let recorded = manifest.machine == "emulator" || manifest.sampled.is_some();
    manifest.capture.functions && (recorded || profile.tables.arcs.iter().any(|arc| is_entry(arc.how)))
}

/// Profile, scope and sums from which figures are gathered.
pub(crate) struct CharacterInput<'a> {
    pub profile: &'a Profile,
    pub scope: &'a RegionScope,
    pub totals: &'a ScopeTotals,
    pub rates: &'a RateBase,
}

/// Returns the outermost regions, whose figures include those of the regions within.
pub(crate) fn outermost<'a>(
    profile: &'a Profile,
    scope: &'a RegionScope,
) -> impl Iterator<Item = &'a RegionStats> + 'a {
    scope.outermost().iter().filter_map(|at| profile.tables.regions.get(*at as usize))
}

/// Divisors of rates and shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RateBase {
    /// Number of operations; `None` without operations, or with operations of several kinds.
    pub operations: Option<u64>,
    /// Names of the outermost regions, without repeats.
    pub kinds: Vec<String>,
    /// Elapsed virtual time; wall-clock time if times are sums over several CPUs.
    pub passed_ns: u64,
    /// Busy time, the base of shares.
    pub busy_ticks: u64,
}

impl RateBase {
    pub fn new(profile: &Profile, scope: &RegionScope, totals: &ScopeTotals) -> Self {
        let mut kinds: Vec<String> = Vec::new();
        for row in outermost(profile, scope) {
            if !kinds.contains(&row.name) {
                kinds.push(row.name.clone());
            }
        }
        // Operations of different kinds of regions cannot be added up.
        let operations = Some(totals.operations).filter(|count| *count > 0 && kinds.len() == 1);
        let wall = profile.manifest.sampled.as_ref().map(|sampled| sampled.wall_ns.get());
        let passed_ns = wall.unwrap_or(totals.elapsed_ticks.get());
        Self { operations, kinds, passed_ns, busy_ticks: totals.busy_ticks.get() }
    }

    pub fn per_operation(&self, figure: f64) -> Option<f64> {
        Some(figure / self.operations? as f64)
    }

    /// Returns the rate per second; `None` if no time passed.
    pub fn per_second(&self, figure: f64) -> Option<f64> {
        (self.passed_ns > 0).then(|| figure * 1e9 / self.passed_ns as f64)
    }
}

/// Count, rates and times of a kind of event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct EventStats {
    pub name: String,
    /// `None` if not counted.
    pub count: Option<u64>,
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
    /// Number of events that ended.
    pub ended: u64,
    /// Total time of the events that ended, callees included; time on the stack in sampled
    /// profiles.
    #[serde(rename = "elapsed")]
    pub elapsed_ns: u64,
    /// Mean total time; `None` if no event ended.
    #[serde(rename = "avg")]
    pub avg_ns: Option<u64>,
    /// Total time in per cent of the busy time.
    pub percent_busy: f64,
    /// Standard error of a sampled time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "error")]
    pub error_ns: Option<u64>,
}

impl EventStats {
    pub fn new(
        profile: &Profile,
        name: impl Into<String>,
        count: Option<u64>,
        (ended, elapsed_ns): (u64, u64),
        rates: &RateBase,
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
            percent_busy: share(elapsed_ns, rates.busy_ticks),
            error_ns: sampled::error_ns(profile, elapsed_ns),
        }
    }
}

/// Count and rates of a kind of event without duration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct EventCount {
    pub name: String,
    pub kind: String,
    pub count: u64,
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
}

impl EventCount {
    pub fn new(name: impl Into<String>, kind: impl Into<String>, count: u64, rates: &RateBase) -> Self {
        let (per_operation, per_second) = (rates.per_operation(count as f64), rates.per_second(count as f64));
        Self { name: name.into(), kind: kind.into(), count, per_operation, per_second }
    }
}

/// Formats a time per operation for running text.
pub(crate) fn time(ns: f64) -> String {
    unit::readable(ns.round().max(0.0) as u64)
}
