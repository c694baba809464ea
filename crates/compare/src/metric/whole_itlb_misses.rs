//! Misses of the first-level instruction TLB by kernel and user code, by the front-end model.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 63,
    title: "whole iTLB misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "whole iTLB\n(model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::Whole,
    source: MetricSource::Counted(|region| region.kernel_itlb_misses.saturating_add(region.user_itlb_misses)),
};
