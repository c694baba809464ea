//! The recipes and their modifiers, a file each: name, needs, steps, evidence.
//!
//! A file in this folder is a recipe or a modifier; nothing else names it. It has
//!
//! ```text
//! pub const ENTRY: Entry = Entry { name: "gcc-pgo", …, make, ..Entry::USUAL };
//! ```
//!
//! Which of them go together each says itself ([`Entry::follows`]); [`crate::Recipe`] puts them together.

/// A recipe or modifier.
pub use crate::part::Part as Entry;

include!(concat!(env!("OUT_DIR"), "/recipes.rs"));
