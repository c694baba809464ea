//! Counters of a CPU, and of the kernel, that stand beside times.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One of `guest/kt_counters.h`, of kernel code, as `perf_event_open(2)` counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Retired.
    Instructions,
    /// While the CPU was not halted.
    Cycles,
    /// Retired, taken or not.
    Branches,
    /// Predicted wrongly.
    BranchMisses,
    /// Of the first-level instruction cache.
    #[serde(rename = "l1i_misses")]
    L1iMisses,
    /// Of the first-level instruction TLB.
    ItlbMisses,
    /// Of user code and of the kernel's own: the kernel counts them, not the CPU.
    PageFaults,
    /// Likewise.
    ContextSwitches,
}

impl Counter {
    /// Those of the CPU.
    pub const HARDWARE: [Counter; 6] = [
        Counter::Instructions,
        Counter::Cycles,
        Counter::Branches,
        Counter::BranchMisses,
        Counter::L1iMisses,
        Counter::ItlbMisses,
    ];

    /// All of them, in the order of tables.
    pub fn all() -> impl Iterator<Item = Counter> {
        Self::HARDWARE.into_iter().chain([Counter::PageFaults, Counter::ContextSwitches])
    }

    /// As in JSON, and as the guest's programs know it.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Instructions => "instructions",
            Counter::Cycles => "cycles",
            Counter::Branches => "branches",
            Counter::BranchMisses => "branch_misses",
            Counter::L1iMisses => "l1i_misses",
            Counter::ItlbMisses => "itlb_misses",
            Counter::PageFaults => "page_faults",
            Counter::ContextSwitches => "context_switches",
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Counter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|counter| counter.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            format!("there is no such counter; there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_name() {
        for counter in Counter::all() {
            assert_eq!(counter.name().parse(), Ok(counter));
            assert_eq!(serde_json::to_string(&counter).unwrap(), format!("\"{counter}\""));
        }
        assert!("icache".parse::<Counter>().unwrap_err().contains("l1i_misses, itlb_misses"));
    }
}
