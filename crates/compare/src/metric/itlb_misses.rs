//! Misses of the first-level instruction TLB, by the front-end model.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 30,
    title: "iTLB misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "iTLB misses \n(model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::Kernel,
    source: MetricSource::Counted(|region| region.kernel_itlb_misses),
};
