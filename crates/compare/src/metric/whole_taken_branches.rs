//! Branches taken in kernel and user mode. Exact.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 61,
    title: "whole taken branches",
    unit: "branches",
    per_operation: "branches/op",
    head: "whole taken\nbranches ",
    better: MetricDirection::Lower,
    model: false,
    scope: CodeScope::Whole,
    source: MetricSource::Counted(|region| {
        region.kernel_taken_branches.saturating_add(region.user_taken_branches)
    }),
};
