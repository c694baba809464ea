//! Instructions executed in user mode. Exact.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 50,
    title: "user instructions",
    unit: "instructions",
    per_operation: "instructions/op",
    head: "user \ninstr. ",
    better: Better::Lower,
    model: false,
    whose: Whose::User,
    sum: Sum::Counted(|region| region.user_instructions.get()),
};
