//! Kernel instructions executed: the path length (Chen's word). Exact.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 0,
    title: "path length",
    unit: "instructions",
    per_operation: "instructions/op",
    head: "change ",
    better: Better::Lower,
    model: false,
    whose: Whose::Kernel,
    sum: Sum::Counted(|region| region.kernel_instructions.get()),
};
