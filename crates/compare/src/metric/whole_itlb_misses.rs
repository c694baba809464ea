//! Misses of the first-level instruction TLB by kernel and user code, by the front-end model.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 63,
    title: "whole iTLB misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "whole iTLB\n(model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::Whole,
    sum: Sum::Counted(|region| region.kernel_itlb_misses.saturating_add(region.user_itlb_misses)),
};
