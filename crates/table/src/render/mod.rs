//! Forms of a document, a file each.

mod csv;
mod docs;
mod html;
mod json;
mod markdown;
mod text;

pub use csv::csv;
pub use docs::docs;
pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use text::text;
