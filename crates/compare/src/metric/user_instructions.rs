//! Instructions executed in user mode. Exact.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 50,
    title: "user instructions",
    unit: "instructions",
    per_operation: "instructions/op",
    head: "user \ninstr. ",
    better: MetricDirection::Lower,
    model: false,
    scope: CodeScope::User,
    source: MetricSource::Counted(|region| region.user_instructions.get()),
};
