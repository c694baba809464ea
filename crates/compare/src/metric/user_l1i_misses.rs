//! Misses of the first-level instruction cache by user code, by the front-end model: they show how
//! much of the cache the kernel leaves to the application.

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 51,
    title: "user L1I misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "user L1I\n(model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::User,
    source: MetricSource::Counted(|region| region.user_l1i_misses),
};
