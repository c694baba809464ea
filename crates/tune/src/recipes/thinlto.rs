//! Modifier `thinlto`: code is generated at link time.

use super::Entry;

/// ThinLTO. It has no steps: `clang-autofdo` looks for it and links differently.
pub const ENTRY: Entry = Entry {
    name: "thinlto",
    about_after: " with hot functions inlined across objects (ThinLTO)",
    place: 20,
    elsewhere: Err(
        "linked so, a kernel for User-Mode Linux compiles and panics when it boots (\"Segfault with no mm\", Linux 7.3)",
    ),
    follows: |before| matches!(before, [base] if base.name == super::clang_autofdo::ENTRY.name),
    ..Entry::DEFAULT
};
