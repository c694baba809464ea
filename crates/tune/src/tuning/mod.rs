//! Tuning of a kernel by recipes, from one recipe to all of them, and the result as a package.

pub mod auto;
pub mod cross;
pub mod instrument;
pub mod optimize;
pub mod package;
pub mod quality;
pub mod tune;
