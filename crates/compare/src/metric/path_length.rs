//! Kernel instructions executed: the path length (Chen's word). Exact.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 0,
    title: "path length",
    unit: "instructions",
    per_operation: "instructions/op",
    head: "change ",
    better: MetricDirection::Lower,
    model: false,
    scope: CodeScope::Kernel,
    source: MetricSource::Counted(|region| region.kernel_instructions.get()),
};
