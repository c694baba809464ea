//! Recipes and modifiers, one per file: name, tools, steps, proof.
//!
//! Nothing else names a file of this folder. Each has an `ENTRY` that is a [`RecipePart`]:
//!
//! ```text
//! pub const ENTRY: Bolt = Bolt;
//! ```
//!
//! Each part says what it can follow ([`RecipePart::follows`]); [`crate::Recipe`] combines them.

use crate::recipe_parts::part::RecipePart;

/// A recipe or modifier.
pub type Entry = dyn RecipePart;

include!(concat!(env!("OUT_DIR"), "/recipes.rs"));
