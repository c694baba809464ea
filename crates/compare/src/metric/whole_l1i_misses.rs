//! Misses of the first-level instruction cache by kernel and user code, by the front-end model.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 62,
    title: "whole L1I misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "whole L1I\n(model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::Whole,
    sum: Sum::Counted(|region| region.kernel_l1i_misses.saturating_add(region.user_l1i_misses)),
};
