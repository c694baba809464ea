//! Misses of the first-level instruction TLB by user code, by the front-end model.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 52,
    title: "user iTLB misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "user iTLB\n(model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::User,
    source: MetricSource::Counted(|region| region.user_itlb_misses),
};
