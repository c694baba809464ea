//! Misses of the first-level instruction TLB, by the front-end model.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 30,
    title: "iTLB misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "iTLB misses \n(model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::Kernel,
    sum: Sum::Counted(|region| region.kernel_itlb_misses),
};
