//! Branches taken: jumps, calls and returns; interrupts are not branches. Exact.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 10,
    title: "taken branches",
    unit: "branches",
    per_operation: "branches/op",
    head: "taken \nbranches ",
    better: MetricDirection::Lower,
    model: false,
    scope: CodeScope::Kernel,
    source: MetricSource::Counted(|region| region.kernel_taken_branches),
};
