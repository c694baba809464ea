//! Misses of the first-level instruction cache, by the front-end model.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 20,
    title: "L1I misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "L1I misses \n(model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::Kernel,
    source: MetricSource::Counted(|region| region.kernel_l1i_misses),
};
