//! Kernels of a work directory with their manifests, and the trust check for others.
//!
//! Start from [`store`] and [`manifest`].

pub(crate) mod build_id;
pub(crate) mod kept;
pub(crate) mod manifest;
pub(crate) mod modules;
pub(crate) mod profile_tree;
pub(crate) mod store;
#[cfg(test)]
mod test_module;
pub(crate) mod untrusted;
mod variables;
