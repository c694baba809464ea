//! Cycles of a front end that never waits for data: each counted metric, and each of the
//! [`ModelEvents`](crate::ModelEvents), times its cost in the front-end model. Only for models with
//! [`ModelCosts`](crate::ModelCosts).

use super::{CodeScope, Metric, MetricDirection, MetricSource, MetricSpec, ModelEvents, OperationCounters};
use serde::{Deserialize, Serialize};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 40,
    title: "model cycles",
    unit: "cycles",
    per_operation: "cycles/op",
    head: "cycles \n(model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::Kernel,
    source: MetricSource::Computed(|counters, costs| Some(costs.cycles(counters))),
};

/// Costs of events of each metric, in cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCosts {
    /// Cost of an instruction.
    pub path_length: f64,
    /// Cost of a taken branch.
    pub taken_branches: f64,
    /// Cost of an L1I miss.
    pub l1i_misses: f64,
    /// Cost of an iTLB miss.
    pub itlb_misses: f64,
    /// Costs in models with further parts.
    #[serde(flatten)]
    pub events: EventCosts,
}

/// Costs of events behind the first level, in cycles; 0 for parts that the model lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct EventCosts {
    /// Cost of an L2 miss.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub l2_misses: f64,
    /// Cost of a target that only the second-level branch target buffer has.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub btb_l2_hits: f64,
    /// Cost of a branch that no branch target buffer has.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub btb_misses: f64,
    /// Cost of a branch after which fetching went elsewhere, for a wrong target or a wrong
    /// direction.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub mispredictions: f64,
}

fn is_nothing(cost: &f64) -> bool {
    *cost == 0.0
}

impl ModelCosts {
    /// Returns the cycles of kernel code for an operation's sums.
    pub fn cycles(&self, counters: &OperationCounters) -> f64 {
        let counted = Metric::COUNTED.map(|metric| metric.count(counters).unwrap_or_default());
        self.of(counted, &counters.events)
    }

    /// Returns the cycles of kernel and user code; `None` if user code was not counted.
    pub fn whole_cycles(&self, counters: &OperationCounters) -> Option<f64> {
        let [Some(instructions), Some(branches), Some(l1i), Some(itlb)] =
            Metric::WHOLE.map(|metric| metric.count(counters))
        else {
            return None;
        };
        Some(self.of([instructions, branches, l1i, itlb], &counters.whole_events))
    }

    fn of(&self, counted: [u64; 4], events: &ModelEvents) -> f64 {
        let costs = [self.path_length, self.taken_branches, self.l1i_misses, self.itlb_misses];
        let first: f64 = costs.iter().zip(counted).map(|(cost, count)| cost * count as f64).sum();
        let EventCosts { l2_misses, btb_l2_hits, btb_misses, mispredictions } = self.events;
        let counted = events;
        let behind = [
            (l2_misses, counted.l2_misses),
            (btb_l2_hits, counted.btb_l2_hits),
            (btb_misses, counted.btb_misses),
            (mispredictions, counted.mispredictions),
            (mispredictions, counted.direction_mispredictions),
        ];
        behind.iter().fold(first, |sum, (cost, count)| sum + cost * *count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelEvents;

    fn events_of(l2_misses: u64) -> ModelEvents {
        ModelEvents { l2_misses, ..ModelEvents::default() }
    }

    #[test]
    fn events_behind_the_first_level_cost_too() {
        let events = ModelEvents {
            l2_misses: 3,
            btb_l2_hits: 7,
            btb_misses: 2,
            mispredictions: 4,
            direction_mispredictions: 1,
        };
        let counts = [(Metric::PathLength, 100)].into();
        let counters = OperationCounters { counts, events, ..Default::default() };
        let plain = ModelCosts { path_length: 0.25, ..ModelCosts::default() };
        assert_eq!(plain.cycles(&counters), 25.0);
        let text = serde_json::to_string(&plain).unwrap();
        assert!(!text.contains("l2"), "{text}");
        assert_eq!(serde_json::from_str::<ModelCosts>(&text).unwrap(), plain);
        let events = EventCosts { l2_misses: 30.0, btb_l2_hits: 1.0, btb_misses: 10.0, mispredictions: 20.0 };
        let costs = ModelCosts { events, ..plain };
        assert_eq!(costs.cycles(&counters), 25.0 + 90.0 + 7.0 + 20.0 + 100.0);
        assert_eq!(costs.whole_cycles(&counters), None, "user code was not counted");
        let counts = Metric::WHOLE.into_iter().zip([300, 0, 0, 0]).collect();
        let whole = OperationCounters { counts, whole_events: events_of(6), ..Default::default() };
        assert_eq!(costs.whole_cycles(&whole), Some(75.0 + 180.0));
        assert_eq!(
            serde_json::from_str::<ModelCosts>(&serde_json::to_string(&costs).unwrap()).unwrap(),
            costs
        );
    }
}
