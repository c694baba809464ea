//! Misses of the first-level instruction TLB by user code, by the front-end model.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 52,
    title: "user iTLB misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "user iTLB\n(model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::User,
    sum: Sum::Counted(|region| region.user_itlb_misses),
};
