//! The counted metrics, and the [`ModelEvents`](crate::ModelEvents) of models that have more parts, each times what the front-end
//! model says that it costs: cycles of a front end that never waits for data. Of models that have [`Costs`](crate::Costs).

use super::{Better, Entry, Metric, ModelEvents, OperationCounters, Sum, Whose};
use serde::{Deserialize, Serialize};

pub const ENTRY: Entry = Entry {
    place: 40,
    title: "model cycles",
    unit: "cycles",
    per_operation: "cycles/op",
    head: "cycles \n(model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::Kernel,
    sum: Sum::Computed(|counters, costs| Some(costs.cycles(counters))),
};

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
    /// A branch that went elsewhere than fetching did, or whether or not its direction was guessed.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub mispredictions: f64,
}

fn is_nothing(cost: &f64) -> bool {
    *cost == 0.0
}

impl Costs {
    /// Cycles of the kernel's code, of an operation's sums.
    pub fn cycles(&self, counters: &OperationCounters) -> f64 {
        let counted = Metric::COUNTED.map(|metric| metric.count(counters).unwrap_or_default());
        self.of(counted, &counters.events)
    }

    /// Cycles of kernel and user code; none if user code was not counted.
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
        let plain = Costs { path_length: 0.25, ..Costs::default() };
        assert_eq!(plain.cycles(&counters), 25.0);
        let text = serde_json::to_string(&plain).unwrap();
        assert!(!text.contains("l2"), "{text}");
        assert_eq!(serde_json::from_str::<Costs>(&text).unwrap(), plain);
        let events = EventCosts { l2_misses: 30.0, btb_l2_hits: 1.0, btb_misses: 10.0, mispredictions: 20.0 };
        let costs = Costs { events, ..plain };
        assert_eq!(costs.cycles(&counters), 25.0 + 90.0 + 7.0 + 20.0 + 100.0);
        assert_eq!(costs.whole_cycles(&counters), None, "user code was not counted");
        let counts = Metric::WHOLE.into_iter().zip([300, 0, 0, 0]).collect();
        let whole = OperationCounters { counts, whole_events: events_of(6), ..Default::default() };
        assert_eq!(costs.whole_cycles(&whole), Some(75.0 + 180.0));
        assert_eq!(serde_json::from_str::<Costs>(&serde_json::to_string(&costs).unwrap()).unwrap(), costs);
    }
}
