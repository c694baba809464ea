//! Misses of the first-level instruction cache by user code, by the front-end model: what the kernel leaves of the cache to
//! the application.

use super::{Better, Entry, Sum, Whose};

pub const ENTRY: Entry = Entry {
    place: 51,
    title: "user L1I misses",
    unit: "misses",
    per_operation: "misses/op",
    head: "user L1I\n(model) ",
    better: Better::Lower,
    model: true,
    whose: Whose::User,
    sum: Sum::Counted(|region| region.user_l1i_misses),
};
