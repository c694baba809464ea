//! Misses of the first-level instruction cache, by the front-end model.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 20,
    title: "L1I misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "L1I misses \n(model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::Kernel,
    sum: Sum::Counted(|region| region.kernel_l1i_misses),
};
