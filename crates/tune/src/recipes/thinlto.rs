//! Modifier `thinlto`: code is made when all objects are at hand.

use super::Entry;

/// ThinLTO. What it changes is how `clang-autofdo` links, and that asks for it.
pub const ENTRY: Entry = Entry {
    name: "thinlto",
    about_after: " with hot functions inlined across objects (ThinLTO)",
    place: 20,
    elsewhere: Err(
        "linked so, a kernel for User-Mode Linux compiles and panics when it boots (\"Segfault with no mm\", Linux 7.3)",
    ),
    follows: |before| matches!(before, [base] if base.name == super::clang_autofdo::ENTRY.name),
    ..Entry::USUAL
};
