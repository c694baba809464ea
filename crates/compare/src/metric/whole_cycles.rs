//! [`model_cycles`](super::model_cycles) of kernel and user code: cycles of the whole path in a
//! front end that never waits for data. Only for models with [`ModelCosts`](crate::ModelCosts).

use super::{CodeScope, MetricDirection, MetricSource, MetricSpec};

pub const ENTRY: MetricSpec = MetricSpec {
    place: 64,
    title: "whole model cycles",
    unit: "cycles",
    per_operation: "cycles/op",
    head: "whole path\ncycles (model) ",
    better: MetricDirection::Lower,
    model: true,
    scope: CodeScope::Whole,
    source: MetricSource::Computed(|counters, costs| costs.whole_cycles(counters)),
};
