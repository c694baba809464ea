//! Instructions executed in kernel and user mode: the whole path. Exact.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 60,
    title: "whole instructions",
    unit: "instructions",
    per_operation: "instructions/op",
    head: "whole path\ninstr. ",
    better: MetricDirection::Lower,
    model: false,
    scope: CodeScope::Whole,
    source: MetricSource::Counted(|region| {
        region.kernel_instructions.get().saturating_add(region.user_instructions.get())
    }),
};
