//! [`model_cycles`](super::model_cycles) of kernel and user code: a front end that never waits for data, all of the way. Of models that
//! have [`Costs`](crate::Costs).

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 64,
    title: "whole model cycles",
    unit: "cycles",
    per_operation: "cycles/op",
    head: "whole path\ncycles (model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::Whole,
    sum: Sum::Computed(|counters, costs| costs.whole_cycles(counters)),
};
