//! What is compared: a file for each metric.
//!
//! A file in this folder is a metric; nothing else names it. `path_length.rs` is [`Metric::PathLength`], `path_length` in JSON.

use kerntune_profile::{ModelEvent, RegionStats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A metric, of an operation.
pub(crate) struct Entry {
    /// Where it stands in tables: lowest first.
    pub place: u8,
    /// The words in tables, `path length`.
    pub title: &'static str,
    /// What is counted: the unit of a sum.
    pub unit: &'static str,
    /// The unit per operation.
    pub per_operation: &'static str,
    /// Its column's head in the table with a line for each operation.
    pub head: &'static str,
    /// Which way is better.
    pub better: Better,
    /// Whether it is a front-end model's and not what a CPU would count.
    pub model: bool,
    /// Whose code it is of.
    pub whose: Whose,
    /// How it is computed.
    pub sum: Sum,
}

/// How a metric is computed.
pub(crate) enum Sum {
    /// Counted: of a region as a profile has it.
    Counted(fn(&RegionStats) -> u64),
    /// Computed of an operation's sums and of what events cost, if the model says that; none if what it needs was not counted.
    Computed(fn(&OperationCounters, &Costs) -> Option<f64>),
}

/// Whose code a metric is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The kernel's: what is tuned.
    Kernel,
    /// The programs': what runs between.
    User,
    /// Both: the whole path, which is what a user waits for.
    Whole,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// As of misses.
    Lower,
    /// As of hits.
    Higher,
}

include!(concat!(env!("OUT_DIR"), "/metric.rs"));

pub use model_cycles::{Costs, EventCosts};

macro_rules! metrics {
    ($($file:ident $name:ident,)*) => {
        /// One figure of an operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $(#[doc = concat!("`", stringify!($file), "` in JSON.")] $name,)*
        }

        impl Metric {
            fn entry(self) -> &'static Entry {
                match self {
                    $(Metric::$name => &$file::ENTRY,)*
                }
            }
        }

        const METRICS: &[Metric] = &[$(Metric::$name,)*];
    };
}
entries!(metrics);

impl Metric {
    /// Those that every recording with a front-end model has, in the order of tables.
    pub const COUNTED: [Metric; 4] =
        [Metric::PathLength, Metric::TakenBranches, Metric::L1iMisses, Metric::ItlbMisses];

    /// The same of kernel and user code together.
    pub const WHOLE: [Metric; 4] = [
        Metric::WholeInstructions,
        Metric::WholeTakenBranches,
        Metric::WholeL1iMisses,
        Metric::WholeItlbMisses,
    ];

    /// All of them, in the order of tables.
    pub fn all() -> &'static [Metric] {
        static ALL: LazyLock<Vec<Metric>> = LazyLock::new(|| {
            let mut all = METRICS.to_vec();
            all.sort_by_key(|metric| metric.entry().place);
            all
        });
        &ALL
    }

    /// The words in tables, `path length`.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// What is counted: the unit of a sum.
    pub fn unit(self) -> &'static str {
        self.entry().unit
    }

    /// The unit per operation.
    pub fn unit_per_operation(self) -> &'static str {
        self.entry().per_operation
    }

    /// Its column's head in the table with a line for each operation.
    pub fn head(self) -> &'static str {
        self.entry().head
    }

    /// Which way is better.
    pub fn better(self) -> Better {
        self.entry().better
    }

    /// Whether the figure is a front-end model's and not what a CPU would count.
    pub fn is_model(self) -> bool {
        self.entry().model
    }

    /// Whose code it is of.
    pub fn whose(self) -> Whose {
        self.entry().whose
    }

    /// The counter of this metric; none of what is computed, or was not counted.
    pub fn count(self, counters: &OperationCounters) -> Option<u64> {
        counters.counts.get(&self).copied()
    }

    /// The counter of a region; none of what is computed.
    pub(crate) fn of(self, region: &RegionStats) -> Option<u64> {
        match self.entry().sum {
            Sum::Counted(count) => Some(count(region)),
            Sum::Computed(_) => None,
        }
    }

    /// What is computed of an operation's sums; none of what is counted.
    pub(crate) fn computed(self, counters: &OperationCounters, costs: &Costs) -> Option<f64> {
        match self.entry().sum {
            Sum::Counted(_) => None,
            Sum::Computed(compute) => compute(counters, costs),
        }
    }
}

/// What a model with a second-level cache or a branch predictor counted there; 0 of parts that it does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelEvents {
    /// Lines that neither the L1I nor the L2 had.
    pub l2_misses: u64,
    /// Taken branches whose target only the second-level branch target buffer had.
    pub btb_l2_hits: u64,
    /// Taken calls, jumps and returns that no branch target buffer had.
    pub btb_misses: u64,
    /// Taken branches after which something else was fetched.
    pub mispredictions: u64,
    /// Conditional branches whose direction was guessed wrong.
    #[serde(default, skip_serializing_if = "none")]
    pub direction_mispredictions: u64,
}

/// Models of before directions were guessed have none.
fn none(count: &u64) -> bool {
    *count == 0
}

impl ModelEvents {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Sums of what was counted of each kind in the kernel and in user mode: of kernel code, and of kernel and user code.
    pub(crate) fn of(counted: impl Iterator<Item = (ModelEvent, u64, u64)>) -> [Self; 2] {
        let mut events = [Self::default(); 2];
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        for (event, kernel, user) in counted {
            add(events[0].of_kind(event), kernel);
            add(events[1].of_kind(event), kernel.saturating_add(user));
        }
        events
    }

    /// Saturates: figures may come from a damaged file.
    pub(crate) fn add(&mut self, more: &Self) {
        for (sum, figure) in [
            (&mut self.l2_misses, more.l2_misses),
            (&mut self.btb_l2_hits, more.btb_l2_hits),
            (&mut self.btb_misses, more.btb_misses),
            (&mut self.mispredictions, more.mispredictions),
            (&mut self.direction_mispredictions, more.direction_mispredictions),
        ] {
            *sum = sum.saturating_add(figure);
        }
    }

    fn of_kind(&mut self, kind: ModelEvent) -> &mut u64 {
        match kind {
            ModelEvent::L2Miss => &mut self.l2_misses,
            ModelEvent::BtbL2Hit => &mut self.btb_l2_hits,
            ModelEvent::BtbMiss => &mut self.btb_misses,
            ModelEvent::Misprediction => &mut self.mispredictions,
            ModelEvent::DirectionMisprediction => &mut self.direction_mispredictions,
        }
    }
}

/// Sums over all regions of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounters {
    /// The regions' name.
    pub operation: String,
    /// Operations done.
    pub operations: u64,
    /// Those metrics that are counted.
    pub counts: BTreeMap<Metric, u64>,
    /// Model: events of kernel code behind the first level.
    #[serde(default, skip_serializing_if = "ModelEvents::is_nothing")]
    pub events: ModelEvents,
    /// Model: the same of kernel and user code.
    #[serde(default, skip_serializing_if = "ModelEvents::is_nothing")]
    pub whole_events: ModelEvents,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_the_contract() {
        let kernel = ["path_length", "taken_branches", "l1i_misses", "itlb_misses", "model_cycles"];
        let user = ["user_instructions", "user_l1i_misses", "user_itlb_misses"];
        let whole = ["instructions", "taken_branches", "l1i_misses", "itlb_misses", "cycles"];
        let whole = whole.map(|name| format!("whole_{name}"));
        let names: Vec<&str> =
            kernel.into_iter().chain(user).chain(whole.iter().map(String::as_str)).collect();
        let metrics: Vec<Metric> =
            names.iter().map(|name| serde_json::from_str(&format!("\"{name}\"")).unwrap()).collect();
        assert_eq!(metrics, Metric::all()[..13]);
        assert_eq!((&metrics[..4], &metrics[8..12]), (&Metric::COUNTED[..], &Metric::WHOLE[..]));
        let of = |whose| metrics.iter().filter(|metric| metric.whose() == whose).count();
        assert_eq!([Whose::Kernel, Whose::User, Whose::Whole].map(of), [5, 3, 5]);
    }
}
