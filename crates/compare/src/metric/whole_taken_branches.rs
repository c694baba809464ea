//! Branches taken in kernel and user mode. Exact.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 61,
    title: "whole taken branches",
    unit: "branches",
    per_operation: "branches/op",
    head: "whole taken\nbranches ",
    better: Better::Lower,
    model: false,
    whose: Whose::Whole,
    sum: Sum::Counted(|region| region.kernel_taken_branches.saturating_add(region.user_taken_branches)),
};
