//! A function's time per call, of a profile.

use crate::SelfOrChild;
use kerntune_profile::{Profile, Scope};

/// What a function cost in the measured regions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// Calls that ended.
    pub calls: u64,
    /// Time in it in these calls, nanoseconds of the exact machine, where an instruction takes one.
    pub self_ns: u64,
    /// Time in what it called.
    pub child_ns: u64,
}

impl Calls {
    /// Those of all symbols of that name; None if no call of it ended.
    pub fn of(profile: &Profile, function: &str) -> Option<Self> {
        let scope = Scope::all(&profile.tables);
        let mut sum = Self { calls: 0, self_ns: 0, child_ns: 0 };
        for totals in profile.tables.totals(|region| scope.contains(region)) {
            let symbol = profile.tables.symbols.iter().find(|symbol| symbol.function == totals.function);
            if symbol.is_some_and(|symbol| symbol.name == function) {
                sum.calls += totals.ended;
                sum.self_ns += totals.ended_net_ns.0;
                sum.child_ns += totals.elapsed_ns.0.saturating_sub(totals.ended_net_ns.0);
            }
        }
        (sum.calls > 0).then_some(sum)
    }

    /// Nanoseconds per call.
    pub fn per_call(&self, part: SelfOrChild) -> f64 {
        let ns = match part {
            SelfOrChild::Itself => self.self_ns,
            SelfOrChild::Child => self.child_ns,
            SelfOrChild::Total => self.self_ns + self.child_ns,
        };
        ns as f64 / self.calls as f64
    }
}
