//! Recipes and modifiers, one per file: name, tools, steps, proof.
//!
//! Nothing else names a file of this folder. Each has
//!
//! ```text
//! pub const ENTRY: Entry = Entry { name: "gcc-pgo", …, make, ..Entry::DEFAULT };
//! ```
//!
//! Each part says what it can follow ([`Entry::follows`]); [`crate::Recipe`] combines them.

/// A recipe or modifier.
pub use crate::recipe_parts::recipe_spec::RecipeSpec as Entry;

include!(concat!(env!("OUT_DIR"), "/recipes.rs"));
