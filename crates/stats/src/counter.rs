//! CPU and kernel counters that are recorded beside times.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Defines the counters, each with its name in JSON and in the guest's programs.
macro_rules! counters {
    (
        cpu { $($(#[$cpu_doc:meta])* $cpu:ident = $cpu_name:literal,)* }
        kernel { $($(#[$doc:meta])* $kernel:ident = $name:literal,)* }
    ) => {
        /// Counter of `embedded/guest/kt_counters.h`, of kernel code only, counted by `perf_event_open(2)`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum PerfCounter {
            $($(#[$cpu_doc])* #[serde(rename = $cpu_name)] $cpu,)*
            $($(#[$doc])* #[serde(rename = $name)] $kernel,)*
        }

        impl PerfCounter {
            /// Counters of the CPU, as opposed to those of the kernel.
            pub const HARDWARE: &'static [PerfCounter] = &[$(PerfCounter::$cpu,)*];

            /// Returns all counters in the order of tables.
            pub fn all() -> impl Iterator<Item = PerfCounter> {
                Self::HARDWARE.iter().copied().chain([$(PerfCounter::$kernel,)*])
            }

            /// Returns the name in JSON, which the guest's programs use as well.
            pub fn name(self) -> &'static str {
                match self {
                    $(PerfCounter::$cpu => $cpu_name,)*
                    $(PerfCounter::$kernel => $name,)*
                }
            }
        }
    };
}

counters! {
    cpu {
        /// Retired instructions.
        Instructions = "instructions",
        /// CPU cycles while not halted.
        Cycles = "cycles",
        /// Retired branches, taken or not.
        Branches = "branches",
        /// Mispredicted branches.
        BranchMisses = "branch_misses",
        /// Misses of the first-level instruction cache.
        L1iMisses = "l1i_misses",
        /// Misses of the first-level instruction TLB.
        ItlbMisses = "itlb_misses",
    }
    kernel {
        /// Page faults of user and kernel code; counted by the kernel, not the CPU.
        PageFaults = "page_faults",
        /// Context switches, counted by the kernel.
        ContextSwitches = "context_switches",
    }
}

impl fmt::Display for PerfCounter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PerfCounter {
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
        for counter in PerfCounter::all() {
            assert_eq!(counter.name().parse(), Ok(counter));
            assert_eq!(serde_json::to_string(&counter).unwrap(), format!("\"{counter}\""));
            let header = include_str!("../../../embedded/guest/kt_counters.h");
            assert!(
                header.contains(&format!("{{ \"{counter}\", ")),
                "the guest's programs do not know {counter}"
            );
        }
        assert!("icache".parse::<PerfCounter>().unwrap_err().contains("l1i_misses, itlb_misses"));
    }
}
