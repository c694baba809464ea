//! What is compared.

use crate::OperationCounters;
use serde::{Deserialize, Serialize};

/// One figure of an operation. All are of kernel code only; user code is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Kernel instructions executed: the path length (Chen's word). Exact.
    PathLength,
    /// Branches taken: jumps, calls and returns; interrupts are not branches. Exact.
    TakenBranches,
    /// Misses of the first-level instruction cache, by the front-end model.
    L1iMisses,
    /// Misses of the first-level instruction TLB, by the front-end model.
    ItlbMisses,
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Metric; 4] =
        [Metric::PathLength, Metric::TakenBranches, Metric::L1iMisses, Metric::ItlbMisses];

    /// The name in JSON, `path_length`.
    pub fn name(self) -> &'static str {
        match self {
            Metric::PathLength => "path_length",
            Metric::TakenBranches => "taken_branches",
            Metric::L1iMisses => "l1i_misses",
            Metric::ItlbMisses => "itlb_misses",
        }
    }

    /// The words in tables, `path length`.
    pub fn title(self) -> &'static str {
        match self {
            Metric::PathLength => "path length",
            Metric::TakenBranches => "taken branches",
            Metric::L1iMisses => "L1I misses",
            Metric::ItlbMisses => "iTLB misses",
        }
    }

    /// What is counted: the unit of a sum.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::PathLength => "instructions",
            Metric::TakenBranches => "branches",
            Metric::L1iMisses | Metric::ItlbMisses => "misses",
        }
    }

    /// The unit per operation.
    pub fn unit_per_operation(self) -> &'static str {
        match self {
            Metric::PathLength => "instructions/op",
            Metric::TakenBranches => "branches/op",
            Metric::L1iMisses | Metric::ItlbMisses => "misses/op",
        }
    }

    /// Whether the figure is a front-end model's and not what a CPU would count.
    pub fn is_model(self) -> bool {
        matches!(self, Metric::L1iMisses | Metric::ItlbMisses)
    }

    /// The counter of this metric.
    pub fn of(self, counters: &OperationCounters) -> u64 {
        match self {
            Metric::PathLength => counters.kernel_instructions,
            Metric::TakenBranches => counters.taken_branches,
            Metric::L1iMisses => counters.l1i_misses,
            Metric::ItlbMisses => counters.itlb_misses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_the_contract() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
        }
    }
}
