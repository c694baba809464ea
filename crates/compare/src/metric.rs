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
    /// The other four, and the [`ModelEvents`](crate::ModelEvents) of models that have more parts, each times what the
    /// front-end model says that it costs: cycles of a front end that never waits for data and predicts every
    /// direction. Of models that have [`Costs`].
    ModelCycles,
}

/// What one event of each metric costs, in cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// An instruction.
    pub path_length: f64,
    /// A branch taken.
    pub taken_branches: f64,
    /// A miss of the L1I.
    pub l1i_misses: f64,
    /// A miss of the iTLB.
    pub itlb_misses: f64,
    /// Of models that have more parts.
    #[serde(flatten)]
    pub events: EventCosts,
}

/// What one event behind the first level costs, in cycles; 0 of parts that the model does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct EventCosts {
    /// A miss of the L2.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub l2_misses: f64,
    /// A target that only the second-level branch target buffer has.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub btb_l2_hits: f64,
    /// A branch that no branch target buffer has.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub btb_misses: f64,
    /// A branch that went elsewhere than fetching did.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub mispredictions: f64,
}

fn is_nothing(cost: &f64) -> bool {
    *cost == 0.0
}

impl Costs {
    /// Cycles of an operation's sums.
    pub fn cycles(&self, counters: &OperationCounters) -> f64 {
        let Costs { path_length, taken_branches, l1i_misses, itlb_misses, events } = *self;
        let costs = [path_length, taken_branches, l1i_misses, itlb_misses];
        let counted = Metric::COUNTED.map(|metric| metric.count(counters).unwrap_or_default() as f64);
        let first: f64 = costs.iter().zip(counted).map(|(cost, count)| cost * count).sum();
        let EventCosts { l2_misses, btb_l2_hits, btb_misses, mispredictions } = events;
        let counted = &counters.events;
        let behind = [
            (l2_misses, counted.l2_misses),
            (btb_l2_hits, counted.btb_l2_hits),
            (btb_misses, counted.btb_misses),
            (mispredictions, counted.mispredictions),
        ];
        behind.iter().fold(first, |sum, (cost, count)| sum + cost * *count as f64)
    }
}

impl Metric {
    /// Those that are counted, in the order of tables.
    pub const COUNTED: [Metric; 4] =
        [Metric::PathLength, Metric::TakenBranches, Metric::L1iMisses, Metric::ItlbMisses];
    /// All of them, in the order of tables.
    pub const ALL: [Metric; 5] = [
        Metric::PathLength,
        Metric::TakenBranches,
        Metric::L1iMisses,
        Metric::ItlbMisses,
        Metric::ModelCycles,
    ];

    /// The name in JSON, `path_length`.
    pub fn name(self) -> &'static str {
        match self {
            Metric::PathLength => "path_length",
            Metric::TakenBranches => "taken_branches",
            Metric::L1iMisses => "l1i_misses",
            Metric::ItlbMisses => "itlb_misses",
            Metric::ModelCycles => "model_cycles",
        }
    }

    /// The words in tables, `path length`.
    pub fn title(self) -> &'static str {
        match self {
            Metric::PathLength => "path length",
            Metric::TakenBranches => "taken branches",
            Metric::L1iMisses => "L1I misses",
            Metric::ItlbMisses => "iTLB misses",
            Metric::ModelCycles => "model cycles",
        }
    }

    /// What is counted: the unit of a sum.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::PathLength => "instructions",
            Metric::TakenBranches => "branches",
            Metric::L1iMisses | Metric::ItlbMisses => "misses",
            Metric::ModelCycles => "cycles",
        }
    }

    /// The unit per operation.
    pub fn unit_per_operation(self) -> &'static str {
        match self {
            Metric::PathLength => "instructions/op",
            Metric::TakenBranches => "branches/op",
            Metric::L1iMisses | Metric::ItlbMisses => "misses/op",
            Metric::ModelCycles => "cycles/op",
        }
    }

    /// Whether the figure is a front-end model's and not what a CPU would count.
    pub fn is_model(self) -> bool {
        matches!(self, Metric::L1iMisses | Metric::ItlbMisses | Metric::ModelCycles)
    }

    /// The counter of this metric; none of what is computed.
    pub fn count(self, counters: &OperationCounters) -> Option<u64> {
        match self {
            Metric::PathLength => Some(counters.kernel_instructions),
            Metric::TakenBranches => Some(counters.taken_branches),
            Metric::L1iMisses => Some(counters.l1i_misses),
            Metric::ItlbMisses => Some(counters.itlb_misses),
            Metric::ModelCycles => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelEvents;

    #[test]
    fn events_behind_the_first_level_cost_too() {
        let events = ModelEvents { l2_misses: 3, btb_l2_hits: 7, btb_misses: 2, mispredictions: 5 };
        let counters = OperationCounters { kernel_instructions: 100, events, ..Default::default() };
        let plain = Costs { path_length: 0.25, ..Costs::default() };
        assert_eq!(plain.cycles(&counters), 25.0);
        let text = serde_json::to_string(&plain).unwrap();
        assert!(!text.contains("l2"), "{text}");
        assert_eq!(serde_json::from_str::<Costs>(&text).unwrap(), plain);
        let events = EventCosts { l2_misses: 30.0, btb_l2_hits: 1.0, btb_misses: 10.0, mispredictions: 20.0 };
        let costs = Costs { events, ..plain };
        assert_eq!(costs.cycles(&counters), 25.0 + 90.0 + 7.0 + 20.0 + 100.0);
        assert_eq!(serde_json::from_str::<Costs>(&serde_json::to_string(&costs).unwrap()).unwrap(), costs);
    }

    #[test]
    fn json_names_are_the_contract() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
        }
    }
}
