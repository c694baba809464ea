//! Branches taken: jumps, calls and returns; interrupts are not branches. Exact.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 10,
    title: "taken branches",
    unit: "branches",
    per_operation: "branches/op",
    head: "taken \nbranches ",
    better: Better::Lower,
    model: false,
    whose: Whose::Kernel,
    sum: Sum::Counted(|region| region.kernel_taken_branches),
};
