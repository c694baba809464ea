//! Builds with a compiler: from a request or a manifest to a kernel, and modules for kernels.
//!
//! Start from [`attempt`]; [`configure`] gives it the final configuration.

pub(crate) mod attempt;
mod build_clock;
mod configure;
mod copied_objects;
pub(crate) mod module;
pub(crate) mod preview;
pub(crate) mod rebuild;
pub(crate) mod structures;
pub(crate) mod untrusted_request;
