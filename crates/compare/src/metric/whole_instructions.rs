//! Instructions executed in kernel and user mode: the whole path. Exact.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 60,
    title: "whole instructions",
    unit: "instructions",
    per_operation: "instructions/op",
    head: "whole path\ninstr. ",
    better: Better::Lower,
    model: false,
    whose: Whose::Whole,
    sum: Sum::Counted(|region| {
        region.kernel_instructions.get().saturating_add(region.user_instructions.get())
    }),
};
