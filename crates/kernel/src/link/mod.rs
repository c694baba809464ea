//! Kernels linked again from kept objects: reordered, mixed, or around rewritten code.
//!
//! Start from [`relink`] and [`borrowed`].

pub(crate) mod borrowed;
pub(crate) mod install;
pub(crate) mod link_script;
pub(crate) mod mix;
mod moved_sources;
pub(crate) mod order;
pub(crate) mod relink;
pub(crate) mod repack;
