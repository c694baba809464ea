//! Compared metrics, one file for each.
//!
//! A file in this folder defines a metric, and nothing else names it: `path_length.rs` is
//! [`Metric::PathLength`], and `path_length` in JSON.

use kerntune_profile::{ModelEvent, RegionStats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Definition of a metric.
pub(crate) struct MetricSpec {
    /// Position in tables, lowest first.
    pub place: u8,
    /// Title in tables, `path length`.
    pub title: &'static str,
    /// Unit of a sum.
    pub unit: &'static str,
    /// Unit of the figure per operation.
    pub per_operation: &'static str,
    /// Column head in the table with a line for each operation.
    pub head: &'static str,
    /// Direction in which the metric improves.
    pub better: MetricDirection,
    /// True for figures of the front-end model, false for counts that a CPU would have as well.
    pub model: bool,
    /// Code that the metric covers.
    pub scope: CodeScope,
    /// Source of the figure.
    pub source: MetricSource,
}

/// Source of a metric's figure.
pub(crate) enum MetricSource {
    /// Counted: read from a region of a profile.
    Counted(fn(&RegionStats) -> u64),
    /// Computed from an operation's sums and the model's costs; `None` if a needed count is
    /// missing.
    Computed(fn(&OperationCounters, &ModelCosts) -> Option<f64>),
}

/// Code that a metric covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeScope {
    /// Kernel code, which is tuned.
    Kernel,
    /// User code of the programs.
    User,
    /// Kernel and user code: the whole path that a user waits for.
    Whole,
}

/// Direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricDirection {
    /// Less is better, as for misses.
    Lower,
    /// More is better, as for hits.
    Higher,
}

/// Type of `ENTRY` in the files of this folder, by the name that the generated registry uses.
type Entry = MetricSpec;

include!(concat!(env!("OUT_DIR"), "/metric.rs"));

pub use model_cycles::{EventCosts, ModelCosts};

macro_rules! metrics {
    ($($file:ident $name:ident,)*) => {
        /// Compared figure of an operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $(#[doc = concat!("`", stringify!($file), "` in JSON.")] $name,)*
        }

        impl Metric {
            fn entry(self) -> &'static MetricSpec {
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
    /// Kernel metrics of every recording with a front-end model, in the order of tables.
    pub const COUNTED: [Metric; 4] =
        [Metric::PathLength, Metric::TakenBranches, Metric::L1iMisses, Metric::ItlbMisses];

    /// The same metrics for kernel and user code together.
    pub const WHOLE: [Metric; 4] = [
        Metric::WholeInstructions,
        Metric::WholeTakenBranches,
        Metric::WholeL1iMisses,
        Metric::WholeItlbMisses,
    ];

    /// Returns all metrics in the order of tables.
    pub fn all() -> &'static [Metric] {
        static ALL: LazyLock<Vec<Metric>> = LazyLock::new(|| {
            let mut all = METRICS.to_vec();
            all.sort_by_key(|metric| metric.entry().place);
            all
        });
        &ALL
    }

    /// Returns the title in tables, `path length`.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// Returns the unit of a sum.
    pub fn unit(self) -> &'static str {
        self.entry().unit
    }

    /// Returns the unit of the figure per operation.
    pub fn unit_per_operation(self) -> &'static str {
        self.entry().per_operation
    }

    /// Returns the column head in the table with a line for each operation.
    pub fn head(self) -> &'static str {
        self.entry().head
    }

    /// Returns the direction in which the metric improves.
    pub fn better(self) -> MetricDirection {
        self.entry().better
    }

    /// Checks whether the figure comes from the front-end model, rather than being a count that a
    /// CPU would have as well.
    pub fn is_model(self) -> bool {
        self.entry().model
    }

    /// Returns the code that the metric covers.
    pub fn code_scope(self) -> CodeScope {
        self.entry().scope
    }

    /// Returns the counter of this metric; `None` if the metric is computed or was not counted.
    pub fn count(self, counters: &OperationCounters) -> Option<u64> {
        counters.counts.get(&self).copied()
    }

    /// Returns the counter of a region; `None` if the metric is computed.
    pub(crate) fn of(self, region: &RegionStats) -> Option<u64> {
        match self.entry().source {
            MetricSource::Counted(count) => Some(count(region)),
            MetricSource::Computed(_) => None,
        }
    }

    /// Computes the metric from an operation's sums; `None` if the metric is counted.
    pub(crate) fn computed(self, counters: &OperationCounters, costs: &ModelCosts) -> Option<f64> {
        match self.entry().source {
            MetricSource::Counted(_) => None,
            MetricSource::Computed(compute) => compute(counters, costs),
        }
    }
}

/// Events of a model's second-level cache and branch predictor; 0 for parts that the model lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelEvents {
    /// Lines that neither the L1I nor the L2 had.
    pub l2_misses: u64,
    /// Taken branches whose target only the second-level branch target buffer had.
    pub btb_l2_hits: u64,
    /// Taken calls, jumps and returns that no branch target buffer had.
    pub btb_misses: u64,
    /// Taken branches after which fetching went elsewhere.
    pub mispredictions: u64,
    /// Conditional branches with a mispredicted direction.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub direction_mispredictions: u64,
}

/// Checks whether serde skips the field: models without direction prediction have no such count.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ModelEvents {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Adds up events of each kind, given as counts in kernel and in user mode. Returns the sums of
    /// kernel code, and of kernel and user code.
    pub(crate) fn of(counted: impl Iterator<Item = (ModelEvent, u64, u64)>) -> [Self; 2] {
        let mut events = [Self::default(); 2];
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        for (event, kernel, user) in counted {
            add(events[0].of_kind(event), kernel);
            add(events[1].of_kind(event), kernel.saturating_add(user));
        }
        events
    }

    /// Adds events. Saturates, since figures may come from a damaged file.
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
    /// Name of the regions.
    pub operation: String,
    /// Number of operations done.
    pub operations: u64,
    /// Counted metrics, as opposed to computed ones.
    pub counts: BTreeMap<Metric, u64>,
    /// Model events of kernel code behind the first level.
    #[serde(default, skip_serializing_if = "ModelEvents::is_nothing")]
    pub events: ModelEvents,
    /// Model events of kernel and user code behind the first level.
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
        let of = |whose| metrics.iter().filter(|metric| metric.code_scope() == whose).count();
        assert_eq!([CodeScope::Kernel, CodeScope::User, CodeScope::Whole].map(of), [5, 3, 5]);
    }
}
