//! Misses of the first-level instruction cache by kernel and user code, by the front-end model.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 62,
    title: "whole L1I misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "whole L1I\n(model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::Whole,
    source: MetricSource::Counted(|region| region.kernel_l1i_misses.saturating_add(region.user_l1i_misses)),
};
