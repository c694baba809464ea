//! Time per call of a function in a profile.

use crate::SelfOrChild;
use kerntune_profile::{Profile, RegionScope};

/// Calls and times of a function in the measured regions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimes {
    /// Calls that ended.
    pub calls: u64,
    /// Self time of these calls, in nanoseconds of the exact machine (one for each instruction).
    pub self_ns: u64,
    /// Time in the callees of these calls.
    pub child_ns: u64,
}

impl CallTimes {
    /// Sums the calls of all symbols of a name; returns `None` if no call of it ended.
    pub fn of(profile: &Profile, function: &str) -> Option<Self> {
        let scope = RegionScope::all(&profile.tables);
        let mut sum = Self { calls: 0, self_ns: 0, child_ns: 0 };
        for totals in profile.tables.totals(|region| scope.contains(region)) {
            let symbol = profile.tables.symbols.iter().find(|symbol| symbol.function == totals.function);
            if symbol.is_some_and(|symbol| symbol.name == function) {
                sum.calls += totals.ended;
                sum.self_ns += totals.ended_self_ticks.0;
                sum.child_ns += totals.total_ticks.0.saturating_sub(totals.ended_self_ticks.0);
            }
        }
        (sum.calls > 0).then_some(sum)
    }

    /// Returns nanoseconds per call.
    pub fn per_call(&self, part: SelfOrChild) -> f64 {
        let ns = match part {
            SelfOrChild::Itself => self.self_ns,
            SelfOrChild::Child => self.child_ns,
            SelfOrChild::Total => self.self_ns + self.child_ns,
        };
        ns as f64 / self.calls as f64
    }
}
