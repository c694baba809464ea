//! Counters of a CPU, and of the kernel, that stand beside times.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Each with its name in JSON, which is the one that the guest's programs know it by.
macro_rules! counters {
    (
        cpu { $($(#[$cpu_doc:meta])* $cpu:ident = $cpu_name:literal,)* }
        kernel { $($(#[$doc:meta])* $kernel:ident = $name:literal,)* }
    ) => {
        /// One of `guest/kt_counters.h`, of kernel code, as `perf_event_open(2)` counts it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Counter {
            $($(#[$cpu_doc])* #[serde(rename = $cpu_name)] $cpu,)*
            $($(#[$doc])* #[serde(rename = $name)] $kernel,)*
        }

        impl Counter {
            /// Those of the CPU.
            pub const HARDWARE: &'static [Counter] = &[$(Counter::$cpu,)*];

            /// All of them, in the order of tables.
            pub fn all() -> impl Iterator<Item = Counter> {
                Self::HARDWARE.iter().copied().chain([$(Counter::$kernel,)*])
            }

            /// As in JSON, and as the guest's programs know it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Counter::$cpu => $cpu_name,)*
                    $(Counter::$kernel => $name,)*
                }
            }
        }
    };
}

counters! {
    cpu {
        /// Retired.
        Instructions = "instructions",
        /// While the CPU was not halted.
        Cycles = "cycles",
        /// Retired, taken or not.
        Branches = "branches",
        /// Predicted wrongly.
        BranchMisses = "branch_misses",
        /// Of the first-level instruction cache.
        L1iMisses = "l1i_misses",
        /// Of the first-level instruction TLB.
        ItlbMisses = "itlb_misses",
    }
    kernel {
        /// Of user code and of the kernel's own: the kernel counts them, not the CPU.
        PageFaults = "page_faults",
        /// Likewise.
        ContextSwitches = "context_switches",
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
            let header = include_str!("../../../guest/kt_counters.h");
            assert!(
                header.contains(&format!("{{ \"{counter}\", ")),
                "the guest's programs do not know {counter}"
            );
        }
        assert!("icache".parse::<Counter>().unwrap_err().contains("l1i_misses, itlb_misses"));
    }
}
